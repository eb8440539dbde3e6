"""Finds the rules, and all their codes with descriptions; there is no other list of them.

Every public module of a family, a folder of `rules/`, defines one rule.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterator
from typing import NamedTuple

from .. import rules as _package
from .rule import Rule

__all__ = ["Code", "codes", "nearest", "rules", "unknown_prefixes"]


class Code(NamedTuple):
    """One code of a rule.

    Attributes:
      code: such as `LS301`.
      words: one line that describes it.
      text: what the rule does and the upstream change that makes it necessary.
      rule: the rule.
    """

    code: str
    words: str
    text: str
    rule: Rule


def _discovered() -> Iterator[Rule]:
    """Imports the modules of rules; yields each rule with its slug, docstring and family."""
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


def codes() -> list[Code]:
    """Every code, in order."""
    return sorted(
        Code(code, words, f"{rule.docstring}\n\nUpstream: {rule.upstream}", rule)
        for rule in rules()
        for code, words in rule.codes.items()
    )


def unknown_prefixes(prefixes: tuple[str, ...]) -> list[str]:
    """Those that no code starts with."""
    known = [code.code for code in codes()]
    return [prefix for prefix in prefixes if not any(code.startswith(prefix) for code in known)]


def nearest(name: str) -> list[str]:
    """The codes that an unknown code could mean.

    Those that begin as it does, for as long as any does (none that share only "LS"), or else those
    of similar spelling.
    """
    known = [code.code for code in codes()]
    for end in range(len(name), len("LS"), -1):
        near = [code for code in known if code.startswith(name[:end])]
        if near:
            return near
    return difflib.get_close_matches(name, known, 3, 0.75)
