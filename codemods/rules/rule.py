"""Defines rules: codes, descriptions, examples, and a function that makes proposals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Callable, NamedTuple, Optional

from ..model import Options, Safety, Target
from ..resolve.reaching_values import is_stored
from .exported_names import held_for_others
from .findings import on_shim
from .left_imports import with_left_import

if TYPE_CHECKING:
    from ..resolve.program import Program
    from ..rewrite.proposal import Proposal
    from .moves import Moves

__all__ = ["Example", "Rule"]

_REPLACED = (
    "the program puts something else in the place of this symbol: do so under its new name, then "
    "migrate again"
)


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
      message_contains: a part of the message of a finding.
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


class Rule(NamedTuple):
    """One rule. Each module of a family defines one, as `RULE`.

    Attributes:
      codes: `{"LS101": "one line of words"}`; a code never changes its meaning.
      summary: one line for `tf-lossscale rules`.
      upstream: the release note or change that makes the rule necessary (a link or a citation).
      examples: no-ops first, then rewrites.
      check: yields the rule's proposals for one program (a file, or the cells of a notebook).
        None: the table of the family has them. Where the family has such a table, `check` is
        called for `--to final` only.
      moves: the table of its family, filled in by the registry.
      slug: the name of the rule's file, filled in by the registry.
      docstring: that of the rule's file, filled in by the registry.
      family: the title of its family, filled in by the registry.
    """

    codes: Mapping[str, str]
    summary: str
    upstream: str
    examples: tuple[Example, ...]
    check: Optional[Callable[[Program], Iterable[Proposal]]] = None
    moves: Optional[Moves] = None
    slug: str = ""
    docstring: str = ""
    family: str = ""

    @property
    def code(self) -> str:
        """The first code, by which rules are sorted."""
        return min(self.codes)

    def proposals(self, program: Program) -> Iterator[Proposal]:
        """The proposals for one program, from `check` or from the table of the family."""
        for proposal in self._proposals(program):
            stopped = _stopped_where_replaced(program, proposal)
            held = held_for_others(program, on_shim(program, stopped))
            yield with_left_import(program, held)

    def _proposals(self, program: Program) -> Iterator[Proposal]:
        to_shim = program.options.target is Target.SHIM
        if self.moves is not None and (self.check is None or to_shim):
            for code in self.codes:
                yield from self.moves.check(program, code)
        elif self.check is not None:
            yield from self.check(program)


def _stopped_where_replaced(program: Program, proposal: Proposal) -> Proposal:
    """The proposal; manual if the program assigns another value to the legacy symbol itself."""
    if not any(is_stored(program, reference.node) for reference, _ in proposal.moves):
        return proposal
    return proposal._replace(
        outcome=Safety.MANUAL, message=_REPLACED, moves=(), removed=(), edits=(), blocks=True
    )
