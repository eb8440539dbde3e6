"""All rule codes with their descriptions, for `rules`, `explain`, SARIF and the pages."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from .registry import rules
from .rule import Rule

__all__ = ["Code", "codes", "nearest", "unknown_prefixes"]


class Code(NamedTuple):
    """One code of a rule.

    Attributes:
      code: such as `LS301`.
      words: one line that describes it.
      summary: one line on its rule.
      text: what the rule does and the upstream change that makes it necessary.
      rule: the rule.
    """

    code: str
    words: str
    summary: str
    text: str
    rule: Rule


def codes() -> list[Code]:
    """Every code, in order."""
    return sorted(
        Code(code, words, rule.summary, f"{rule.docstring}\n\nUpstream: {rule.upstream}", rule)
        for rule in rules()
        for code, words in rule.codes.items()
    )


def unknown_prefixes(prefixes: tuple[str, ...]) -> list[str]:
    """Those that no code starts with."""
    known = [code.code for code in codes()]
    return [one for one in prefixes if not any(code.startswith(one) for code in known)]


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
