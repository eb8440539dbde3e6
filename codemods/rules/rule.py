"""Defines rules: codes, descriptions, examples, and a function that makes proposals.

What every rule needs can be imported from here.
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable, NamedTuple, Optional

from ..facts import Decision, When
from ..model import Options, Safety, Target
from ..resolve.mentions import Mention
from ..resolve.places import Reference
from ..resolve.program import Program
from ..rewrite.proposal import Obstacle, Proposal
from .to_shim import RENAMED, needs_of_exports, renames

__all__ = [
    "Decision",
    "Example",
    "Mention",
    "Named",
    "Obstacle",
    "Options",
    "Program",
    "Proposal",
    "Reference",
    "Rule",
    "Safety",
    "When",
    "examples",
]


_OPTIONS: dict[str, dict[str, Any]] = {
    "--to shim": {"target": Target.SHIM},
    "--keras 3": {"keras": 3},
    "--unsafe": {"unsafe": True},
}


class Example(NamedTuple):
    """One input of a rule and its result, for the tests, `explain` and the rule's page.

    Attributes:
      id: a sentence, unique within the rule ("not from another library").
      before: the source.
      after: the source afterwards, or None where nothing is edited.
      outcome: the outcome of the rule's findings, or None where it has none to report.
      target: `--to`.
      keras: the Keras version to target: 2, 3, or None for both.
      unsafe: `--unsafe`.
      message_contains: a part of the message of a finding, for the tests.
    """

    id: str
    before: str
    after: Optional[str] = None
    outcome: Optional[Safety] = None
    target: Target = Target.FINAL
    keras: Optional[int] = 2
    unsafe: bool = False
    message_contains: str = ""

    @property
    def options(self) -> Options:
        """The options that the example runs under."""
        return Options(target=self.target, keras=self.keras, unsafe=self.unsafe)


@functools.lru_cache(maxsize=None)
def examples(text: str) -> tuple[Example, ...]:
    """The examples in a text: for each, `# ` and its id, then its source as a diff.

    `> ` begins a line with the outcome, the options of the command, and after a colon a part of a
    message. Without an outcome, an edit is safe, and a source that stays has no finding.
    """
    blocks = re.split(r"^# ", textwrap.dedent(text), flags=re.MULTILINE)[1:]
    return tuple(_example(*block.rstrip().split("\n", 1)) for block in blocks)


def _example(name: str, text: str) -> Example:
    """Reads one example of a rule.

    Args:
      name: what is above it, after `#`.
      text: a first line `> options: part of the message`, if there is one; then the code, with `-`
        before lines that are removed, and `+` before those that are added.
    """
    words, message = "", ""
    if text.startswith("> "):
        first, text = text[2:].split("\n", 1)
        words, _, message = first.partition(": ")
    lines = text.split("\n")
    before = "".join(f"{line[2:]}\n" for line in lines if not line.startswith("+"))
    after = "".join(f"{line[2:]}\n" for line in lines if not line.startswith("-"))
    made = Example(name, before, message_contains=message)
    if before != after:
        made = made._replace(after=after, outcome=Safety.SAFE)
    for word in filter(None, words.split(", ")):
        made = made._replace(**_OPTIONS.get(word) or {"outcome": Safety(word)})
    return made


class Named(NamedTuple):
    """A legacy path in a text that is not Python.

    Attributes:
      start, end: where it stands.
      code, symbol, message: as in a finding.
    """

    start: int
    end: int
    code: str
    symbol: str
    message: str


_Needs = Callable[[Program, Options], Iterable[Obstacle]]
_Check = Callable[[Program, Options, Decision], Iterable[Proposal]]
_InData = Callable[[str, Options], Iterable[Named]]


class Rule(NamedTuple):
    """One rule. Each module of a family defines one, as `RULE`.

    Attributes:
      codes: `{"LS101": "one line of words"}`; a code never changes its meaning.
      summary: one line for `tf-lossscale rules`.
      upstream: the release note or change that makes the rule necessary (a link or a citation).
      cases: the text of its examples, no-ops first, then rewrites; see `examples`.
      needs: yields the places of a file that the final API does not fit. They send a group of
        symbols to the shim, in the whole program.
      check: yields the rule's proposals for a file. For a rule about a symbol of the shim, it is
        called where the symbol goes to the final API; elsewhere the symbol is renamed, whatever the
        place.
      reports: yields findings beside them, wherever the symbol goes.
      in_data: yields what a line of a file names that is not Python.
      slug: the name of the rule's file, filled in by `codes.rules`.
      docstring: the docstring of the rule's file, filled in by `codes.rules`.
      family: the title of its family, filled in by `codes.rules`.
    """

    codes: Mapping[str, str]
    summary: str
    upstream: str
    cases: str
    needs: Optional[_Needs] = None
    check: Optional[_Check] = None
    reports: Optional[_Check] = None
    in_data: Optional[_InData] = None
    slug: str = ""
    docstring: str = ""
    family: str = ""

    @property
    def examples(self) -> tuple[Example, ...]:
        """The examples of the rule."""
        return examples(self.cases)

    @property
    def code(self) -> str:
        """The first code, by which rules are sorted."""
        return min(self.codes)

    @property
    def renamed(self) -> list[str]:
        """The codes of which the symbols have a twin in the shim."""
        return [code for code in self.codes if code in RENAMED]

    def obstacles(self, program: Program, options: Options) -> Iterator[Obstacle]:
        """The places of a file that the final API does not fit."""
        for code in self.renamed:
            yield from needs_of_exports(program, code)
        if self.needs is not None:
            yield from self.needs(program, options)

    def proposals(
        self, program: Program, options: Options, decision: Decision
    ) -> Iterator[Proposal]:
        """The proposals for one file, after the decision about its program."""
        renamed = self.renamed
        if renamed and decision.goes_to_shim(RENAMED[renamed[0]]):
            for code in renamed:
                yield from renames(program, code, options, decision)
        elif self.check is not None:
            yield from self.check(program, options, decision)
        if self.reports is not None:
            yield from self.reports(program, options, decision)
