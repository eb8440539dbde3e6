"""Finds the rules: every module of a family (a folder of `rules/`) that defines `RULE`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator

from .. import rules as _package
from .rule import Rule

__all__ = ["rule_of", "rules"]


def _discovered() -> Iterator[Rule]:
    for package in pkgutil.iter_modules(_package.__path__):
        if not package.ispkg:
            continue
        family = importlib.import_module(f"{_package.__name__}.{package.name}")
        for module_info in pkgutil.iter_modules(family.__path__):
            if module_info.name.startswith("_"):  # what the rules of the family share
                continue
            module = importlib.import_module(f"{family.__name__}.{module_info.name}")
            slug = module_info.name.replace("_", "-")
            yield module.RULE._replace(slug=slug, docstring=(module.__doc__ or "").strip())


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
