"""Finds the rules: every module in `rules/` that defines `RULE`."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator

from . import rules as _package
from .rule import Rule

__all__ = ["rule_of", "rules"]


def _discovered() -> Iterator[Rule]:
    for module_info in pkgutil.iter_modules(_package.__path__):
        module = importlib.import_module(f"{_package.__name__}.{module_info.name}")
        docstring = (module.__doc__ or "").strip()
        yield module.RULE._replace(slug=module_info.name.replace("_", "-"), docstring=docstring)


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
