"""Makes the findings of rules: what is rewritten safely, what can differ, what a person must do."""

from __future__ import annotations

from typing import Optional

import libcst as cst

from ..model import Safety
from ..resolve.program import Program, Reference
from ..resolve.tree import Edit
from ..rewrite.proposal import Group, Proposal
from .groups import group_of

__all__ = ["OR_TO_SHIM", "manual", "on_shim", "report", "safe", "unsafe"]

OR_TO_SHIM = ", or use --to shim"
"""The end of a message about a place that works on the shim."""
_STAYS = "stays on the shim; for the final API: "

Edits = tuple[tuple[cst.CSTNode, Edit], ...]


def safe(
    reference: Reference,
    message: str,
    *,
    path: str = "",
    edits: Edits = (),
    removed: tuple[Reference, ...] = (),
    group: Optional[Group] = None,
) -> Proposal:
    """A rewrite that keeps the behavior.

    Args:
      reference: the place.
      message: what is done, and why.
      path: what the reference means afterwards; empty where it keeps its meaning or goes.
      edits: further edits, each at a node; its children are already edited.
      removed: the references that the edits take away.
      group: what is rewritten together with it, or not at all; None: the places of its symbol.
    """
    if reference.legacy.never_existed:
        message = f"this path never existed in TensorFlow; {message}"
    return _proposal(reference, message, group)._replace(
        moves=((reference, path),) if path else (), edits=edits, removed=removed
    )


def unsafe(
    reference: Reference,
    caveat: str,
    *,
    path: str,
    edits: Edits = (),
    removed: tuple[Reference, ...] = (),
    group: Optional[Group] = None,
) -> Proposal:
    """A rewrite that is made with `--unsafe` only; `caveat` says how the behavior can differ."""
    made = safe(reference, caveat, path=path, edits=edits, removed=removed, group=group)
    return made._replace(outcome=Safety.UNSAFE)


def manual(reference: Reference, guidance: str, *, group: Optional[Group] = None) -> Proposal:
    """A place that a person must decide; the rest of its group waits for it."""
    made = _proposal(reference, guidance, group)
    return made._replace(outcome=Safety.MANUAL, blocks=True)


def on_shim(program: Program, proposal: Proposal) -> Proposal:
    """The proposal, worded for a place that is on the shim already."""
    reference = program.by_node.get(proposal.node)
    if reference is None or not reference.legacy.is_on_shim or proposal.outcome is Safety.SAFE:
        return proposal
    message = proposal.message.replace(OR_TO_SHIM, "")
    stays = proposal.outcome is Safety.MANUAL
    return proposal._replace(message=_STAYS + message if stays else message)


def report(node: cst.CSTNode, code: str, symbol: str, guidance: str) -> Proposal:
    """A place without a legacy symbol that a person must look at; nothing waits for it."""
    return Proposal(node, code, symbol, Safety.MANUAL, guidance)


def _proposal(reference: Reference, message: str, group: Optional[Group]) -> Proposal:
    legacy = reference.legacy
    return Proposal(
        node=reference.node,
        code=legacy.rule,
        symbol=legacy.name,
        outcome=Safety.SAFE,
        message=message,
        group=group_of(legacy) if group is None else group,
    )
