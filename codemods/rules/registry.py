"""Finds the rules: every public module of a family (a folder of `rules/`) defines one."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator

from .. import rules as _package
from .rule import Rule

__all__ = ["rules"]


def _discovered() -> Iterator[Rule]:
    for package in pkgutil.iter_modules(_package.__path__):
        if not package.ispkg:
            continue
        family = importlib.import_module(f"{_package.__name__}.{package.name}")
        title = (family.__doc__ or "").rstrip(".")
        for module_info in pkgutil.iter_modules(family.__path__):
            if module_info.name.startswith("_"):  # what the rules of the family share
                continue
            module = importlib.import_module(f"{family.__name__}.{module_info.name}")
            slug = module_info.name.replace("_", "-")
            docstring = (module.__doc__ or "").strip()
            yield module.RULE._replace(slug=slug, docstring=docstring, family=title)


@functools.lru_cache(maxsize=None)
def rules() -> tuple[Rule, ...]:
    """All rules, sorted by their first code."""
    return tuple(sorted(_discovered(), key=lambda rule: rule.code))
