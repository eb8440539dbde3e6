"""Finds the rules: every public module of a family (a folder of `rules/`) defines one."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from typing import Optional

from .. import rules as _package
from .moves import Moves
from .rule import Rule

__all__ = ["rule_of", "rules"]


def _discovered() -> Iterator[Rule]:
    for package in pkgutil.iter_modules(_package.__path__):
        if not package.ispkg:
            continue
        family = importlib.import_module(f"{_package.__name__}.{package.name}")
        moves = _moves_of(family.__name__)
        for module_info in pkgutil.iter_modules(family.__path__):
            if module_info.name.startswith("_"):  # what the rules of the family share
                continue
            module = importlib.import_module(f"{family.__name__}.{module_info.name}")
            slug = module_info.name.replace("_", "-")
            docstring = (module.__doc__ or "").strip()
            yield module.RULE._replace(
                slug=slug, docstring=docstring, family=family.TITLE, moves=moves
            )


def _moves_of(family: str) -> Optional[Moves]:
    """The table of a family: `MOVES` of its `_family`, where there is one."""
    if importlib.util.find_spec(f"{family}._family") is None:
        return None
    moves: Optional[Moves] = getattr(importlib.import_module(f"{family}._family"), "MOVES", None)
    return moves


@functools.lru_cache(maxsize=None)
def rules() -> tuple[Rule, ...]:
    """All rules, sorted by their first code."""
    return tuple(sorted(_discovered(), key=lambda rule: rule.code))


def rule_of(code: str) -> Rule:
    """The rule that has `code`.

    Raises:
      KeyError: no rule has it.
    """
    for rule in rules():
        if code in rule.codes:
            return rule
    raise KeyError(code)
