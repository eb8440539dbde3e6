"""Decides what is done at each place: which proposals are edits, and which need the shim."""

from __future__ import annotations

from collections.abc import Container, Sequence

import libcst as cst

from ..model import Group, Safety
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import Proposal
from ..rewrite.respell import respell
from .comments import mark_edits

__all__ = ["edits_of", "is_done", "reasons_for_shim", "without_edits"]

_SUPPRESSED = "a comment suppresses the finding"
_KEPT = "not rewritten, because the class of this object is not: migrate both, or neither"
_SAME_SYMBOLS = (Group.V1, Group.CROSS_SHARD)
"""The groups of which the final API has the very same symbols as the legacy one."""


def reasons_for_shim(
    program: Program, proposals: Sequence[Proposal], silenced: Sequence[Proposal]
) -> list[Proposal]:
    """What sends further groups of symbols to the shim, because the final API does not fit there.

    A place that a comment suppresses keeps the legacy symbol, which only the shim's fits, and so
    does one that can only be rewritten with `--unsafe`.
    """
    ids = set(map(id, silenced))
    reasons = []
    for one in proposals:
        if one.group is not None and not one.stays and not program.goes_to_shim(one.group):
            waits = one.outcome is Safety.UNSAFE and not program.options.unsafe
            if id(one) in ids and one.group not in _SAME_SYMBOLS:
                reasons.append(one._replace(message=_SUPPRESSED))
            elif one.blocks or waits:
                reasons.append(one)
    return reasons


def without_edits(proposals: Sequence[Proposal], kept: Sequence[Proposal]) -> list[Proposal]:
    """The proposals, of which none edits what is called on an object whose class is kept.

    A class is kept if its proposal is silenced or not selected.
    """
    groups = {one.group for one in kept if one.moves and not one.stays}
    return [
        one._replace(outcome=Safety.MANUAL, message=_KEPT, edits=())
        if one.group in groups and one.edits and not one.moves
        else one
        for one in proposals
    ]


def is_done(program: Program, proposal: Proposal) -> bool:
    """Whether the edits of a proposal are made."""
    is_unsafe = proposal.outcome is Safety.UNSAFE and program.options.unsafe
    return not proposal.stays and (is_unsafe or proposal.outcome is Safety.SAFE)


def edits_of(
    program: Program, proposals: Sequence[Proposal], kept: Container[cst.CSTNode]
) -> dict[cst.CSTNode, list[Edit]]:
    """The edits of the proposals, and the comments of `--mark`.

    Args:
      program: the program.
      proposals: what is to be edited or reported.
      kept: nodes that keep their spelling.
    """
    done = [one for one in proposals if is_done(program, one)]
    moves = {reference: path for one in done for reference, path in one.moves}
    removed = {reference for one in done for reference in one.removed}
    edits = respell(program, moves, removed, kept) if moves or removed else {}
    for one in done:
        for node, edit in one.edits:
            edits.setdefault(node, []).append(edit)
    if program.options.mark:
        for node, edit in mark_edits(program, proposals):
            edits.setdefault(node, []).append(edit)
    return edits
