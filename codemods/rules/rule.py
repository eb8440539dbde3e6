"""What a rule is: codes, words, examples, and a function from a file's syntax to proposals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Callable, NamedTuple, Optional

from ..model import Options, Safety, Target

if TYPE_CHECKING:
    from ..resolve.program import Program
    from ..rewrite.proposal import Proposal

__all__ = ["Example", "Rule"]


class Example(NamedTuple):
    """One input of a rule and what becomes of it; feeds the tests, `explain` and the docs page.

    Attributes:
      id: a sentence, unique within the rule ("not from another library").
      before: the source.
      after: the source afterwards, or None where nothing is edited.
      outcome: the outcome of the rule's findings, or None where it has none to report.
      target: `--to`.
      keras: `--keras`.
      unsafe: `--unsafe`.
      message_contains: words that must stand in the message of a finding.
    """

    id: str
    before: str
    after: Optional[str] = None
    outcome: Optional[Safety] = None
    target: Target = Target.FINAL
    keras: int = 2
    unsafe: bool = False
    message_contains: str = ""

    @property
    def options(self) -> Options:
        """The options that the example runs under."""
        return Options(target=self.target, keras=self.keras, unsafe=self.unsafe)


class Rule(NamedTuple):
    """One rule. Each module in `rules/` defines one, as `RULE`.

    Attributes:
      codes: `{"LS101": "one line of words"}`; a code never changes its meaning.
      summary: one line for `tf-lossscale rules`.
      upstream: the release note or change that makes the rule necessary (a link or a citation).
      check: yields the rule's proposals for one program (a file, or the cells of a notebook).
      examples: no-ops first, then rewrites.
      slug: the name of the rule's file, filled in by the registry.
      docstring: that of the rule's file, filled in by the registry.
    """

    codes: Mapping[str, str]
    summary: str
    upstream: str
    check: Callable[[Program], Iterable[Proposal]]
    examples: tuple[Example, ...]
    slug: str = ""
    docstring: str = ""

    @property
    def code(self) -> str:
        """The first code, by which rules are sorted."""
        return min(self.codes)
