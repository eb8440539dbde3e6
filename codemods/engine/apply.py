"""Decides what is done at each place: what is edited or reported, and what needs the shim."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import libcst as cst

from ..model import Finding, Group, Safety, with_followers
from ..resolve.classes import may_compile
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import Proposal
from ..rewrite.respell import respell
from .comments import Suppressions, mark_edits
from .render import Source

__all__ = ["Decision"]

_SUPPRESSED = "a comment suppresses the finding"
_KEPT = "not rewritten, because the class of this object is not: migrate both, or neither"
_SAME_SYMBOLS = (Group.V1, Group.CROSS_SHARD)
"""The groups of which the final API has the very same symbols as the legacy one."""

_NOTHING = "no symbol to migrate in it: its names are not TensorFlow's, or migrated already"
_NOT_SELECTED = "the selected rules find nothing in it; others do"
_SILENCED = "comments silence all findings in it"


class Decision:
    """What is done at each place of a program.

    Attributes:
      program: the program.
      reasons: what sends further groups of symbols to the shim; then `next_program` is the one to
        decide about.
      note: why nothing is edited and nothing found, if that is so.

    Args:
      program: the program, with the groups of symbols on the shim that are known to need it.
      selected: the proposals of the rules that `--select` and `--ignore` leave.
      left_out: those of the other rules.
      sources: the sources, in which the nodes of the selected proposals are located.
    """

    def __init__(
        self,
        program: Program,
        selected: Sequence[Proposal],
        left_out: Sequence[Proposal],
        sources: Sequence[Source],
    ) -> None:
        self.program = program
        self._places = {node: at for source in sources for node, at in source.places.items()}
        self._suppressions = Suppressions(sources)
        self._silenced = [
            one for one in selected if self._suppressions.silence(one.code, self._places[one.node])
        ]
        ids = set(map(id, self._silenced))
        self.reasons = list(self._reasons(selected, ids))
        shown = [one for one in selected if id(one) not in ids]
        self._shown = _without_edits(shown, [*left_out, *self._silenced])
        self.note = _NOT_SELECTED if left_out else _NOTHING
        if self._silenced:
            self.note = _SILENCED

    def next_program(self) -> Program:
        """The program with further groups on the shim."""
        groups = frozenset(one.group for one in self.reasons if one.group is not None)
        by_node = {one.node: one for one in reversed(self.reasons)}  # the first counts
        groups = with_followers(groups, may_compile(self.program))
        return self.program.with_on_shim(groups, by_node)

    def _reasons(
        self, selected: Sequence[Proposal], silenced: Container[int]
    ) -> Iterator[Proposal]:
        """The proposals that the final API does not fit; `silenced` has the ids of some.

        A place that a comment suppresses keeps the legacy symbol, which only the shim's fits, and
        so does one that can only be rewritten with `--unsafe`.
        """
        program = self.program
        for one in selected:
            if one.group is not None and not one.stays and not program.goes_to_shim(one.group):
                waits = one.outcome is Safety.UNSAFE and not program.options.unsafe
                if id(one) in silenced and one.group not in _SAME_SYMBOLS:
                    yield one._replace(message=_SUPPRESSED)
                elif one.blocks or waits:
                    yield one

    def _is_done(self, proposal: Proposal) -> bool:
        """Whether the edits of a proposal are made."""
        is_unsafe = proposal.outcome is Safety.UNSAFE and self.program.options.unsafe
        return not proposal.stays and (is_unsafe or proposal.outcome is Safety.SAFE)

    def edits(self) -> dict[cst.CSTNode, list[Edit]]:
        """The edits, with the comments of `--mark`."""
        program = self.program
        done = [one for one in self._shown if self._is_done(one)]
        moves = {reference: path for one in done for reference, path in one.moves}
        removed = {reference for one in done for reference in one.removed}
        kept = {one.node for one in self._silenced}
        edits = respell(program, moves, removed, kept) if moves or removed else {}
        more = [edit for one in done for edit in one.edits]
        if program.options.mark:
            more += mark_edits(program, self._shown)
        for node, edit in more:
            edits.setdefault(node, []).append(edit)
        return edits

    def findings(self, path: str) -> list[tuple[int, Finding]]:
        """The findings in the order of the sources, each with the index of its source."""
        found: list[tuple[int, Finding]] = []
        for one in self._shown:
            place, done = self._places[one.node], self._is_done(one)
            finding = place.finding(path, one.code, one.symbol, one.message)
            finding = finding._replace(outcome=one.outcome, applied=done, through=one.through)
            found.append((place.source, finding))
        found += self._suppressions.unused(self.program.options, path)
        return sorted(dict.fromkeys(found), key=_order)


def _without_edits(proposals: Sequence[Proposal], kept: Sequence[Proposal]) -> list[Proposal]:
    """The proposals, none of which edits a call on an object whose class stays as it is."""
    groups = {one.group for one in kept if one.moves and not one.stays}
    return [
        one._replace(outcome=Safety.MANUAL, message=_KEPT, edits=())
        if one.group in groups and one.edits and not one.moves
        else one
        for one in proposals
    ]


def _order(item: tuple[int, Finding]) -> tuple[int, int, int, str, str, str]:
    index, one = item
    return index, one.line, one.column, one.code, one.symbol, one.message
