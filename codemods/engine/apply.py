"""Carries out what is decided about a file: chooses the proposals, and makes edits and findings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from ..facts import Decision
from ..model import Finding, Options, Safety
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import Proposal
from ..rewrite.respell import respell
from .comments import Suppressions, mark_edits
from .render import Source

__all__ = ["Outcome"]

_INLINED = "becomes arguments of the Keras optimizer"
_NOT_SELECTED = "the selected rules find nothing in it; others do"
_SILENCED = "comments silence all findings in it"


class Outcome:
    """What becomes of the proposals for a file.

    Attributes:
      note: which options or comments hide all findings, if that is so.

    Args:
      program: the file.
      proposals: the proposals of all rules.
      kept: the places that keep their symbols.
      sources: the sources, in which the nodes of the proposals are located.
      options: how to rewrite the file.
      decision: what is decided about it.
    """

    def __init__(
        self,
        program: Program,
        proposals: Sequence[Proposal],
        kept: Collection[cst.CSTNode],
        sources: Sequence[Source],
        options: Options,
        decision: Decision,
    ) -> None:
        self._program = program
        self._kept = kept
        self._options = options
        self._decision = decision
        self._places = {node: at for source in sources for node, at in source.places.items()}
        self._suppressions = Suppressions.of_sources(sources)
        selected = [proposal for proposal in proposals if options.selects(proposal.code)]
        self._silenced = [proposal for proposal in selected if self._is_silenced(proposal)]
        silenced = set(map(id, self._silenced))
        shown = [
            proposal
            for proposal in selected
            if id(proposal) not in silenced and self._is_left(proposal)
        ]
        self._shown = _without_moves_of_removed(shown)
        self.note = ""
        if len(selected) < len(proposals):
            self.note = _NOT_SELECTED
        if self._silenced:
            self.note = _SILENCED

    def _is_silenced(self, proposal: Proposal) -> bool:
        return self._suppressions.silence(proposal.code, self._places[proposal.node])

    def _is_left(self, proposal: Proposal) -> bool:
        """Whether a proposal counts.

        Names that come through other files can be right there. What binds a name that a silenced
        place reads stays with it.
        """
        if proposal.moves and all(place.node in self._kept for place, _ in proposal.moves):
            return False
        if not proposal.beside.isdisjoint(self._kept):
            return False
        return not proposal.through or not self._decision.settled.issuperset(proposal.through)

    def _is_done(self, proposal: Proposal) -> bool:
        """Whether the edits of a proposal are made."""
        is_unsafe = proposal.outcome is Safety.UNSAFE and self._options.unsafe
        return not proposal.stays and (is_unsafe or proposal.outcome is Safety.SAFE)

    def edits(self) -> dict[cst.CSTNode, list[Edit]]:
        """The edits, with the comments of `--mark`."""
        program = self._program
        done = [proposal for proposal in self._shown if self._is_done(proposal)]
        moves = {reference: path for proposal in done for reference, path in proposal.moves}
        removed = {reference for proposal in done for reference in proposal.removed}
        edits: dict[cst.CSTNode, list[Edit]] = {}
        if moves or removed:
            edits = respell(program, moves, removed, self._decision, self._kept)
        more = [edit for proposal in done for edit in proposal.edits]
        if self._options.mark:
            more += mark_edits(program, self._shown)
        for node, edit in more:
            edits.setdefault(node, []).append(edit)
        return edits

    def findings(self, path: str) -> list[tuple[int, Finding]]:
        """The findings in the order of the sources, each with the index of its source."""
        found: list[tuple[int, Finding]] = []
        for proposal in self._shown:
            place, done = self._places[proposal.node], self._is_done(proposal)
            finding = place.finding(path, proposal.code, proposal.symbol, proposal.message)
            found.append((place.source, finding._replace(outcome=proposal.outcome, applied=done)))
        found += self._suppressions.unused(self._options, path)
        return sorted(dict.fromkeys(found), key=_order)


def _without_moves_of_removed(proposals: Sequence[Proposal]) -> list[Proposal]:
    """The proposals, none of which gives a new path to what the edits of another one remove."""
    removed = {reference for proposal in proposals for reference in proposal.removed}
    if not removed:
        return list(proposals)
    found = []
    for proposal in proposals:
        moved = {place for place, _ in proposal.moves}
        if moved and not proposal.removed and moved <= removed:
            proposal = proposal._replace(moves=(), message=_INLINED)
        found.append(proposal)
    return found


def _order(item: tuple[int, Finding]) -> tuple[int, int, int, str, str, str]:
    index, finding = item
    return (
        index, finding.line, finding.column, finding.code, finding.symbol, finding.message,
    )  # fmt: skip
