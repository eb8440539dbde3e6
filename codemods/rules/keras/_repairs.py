"""Repairs calls of the final class that have the argument of the experimental one (LS304)."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.legacy_symbols import is_of_shim
from ...rewrite.arguments import argument_of_scale, has_loss_scale
from ..rule import Proposal, Reference
from ._final_class import FinalClass

__all__ = ["repairs"]

_NAME = "LossScaleOptimizer"
_BUG = "the final class never took loss_scale, in any TensorFlow"
_WRITE = "write LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)"


def repairs(final: FinalClass) -> Iterator[Proposal]:
    """The calls of TensorFlow's class, and those of the shim's that a first run has written."""
    program = final.program
    for reference in program.references_to("LS401"):
        call = program.call_of(reference.node)
        if call is not None and has_loss_scale(call):
            yield _repaired(final, reference, call)
    for node, name in program.migrated:
        call = program.call_of(node)
        is_certain = all(map(is_of_shim, program.paths_of(node)))
        if name == _NAME and is_certain and call is not None and has_loss_scale(call):
            yield _repaired_on_shim(final, call)


def _repaired_on_shim(final: FinalClass, call: cst.Call) -> Proposal:
    """The call of the shim's final class, which keeps its path."""
    made = final.plan(call)
    if made.problem or made.path or final.options.to_shim:
        return _report(call)
    message = f"{_BUG}; {made.message}"
    return Proposal.edited(call, "LS304", _NAME, message, made.edits, made.removed)


def _repaired(final: FinalClass, reference: Reference, call: cst.Call) -> Proposal:
    """The call with the final class's own arguments; `--to shim` edits no arguments."""
    made = final.plan(call)
    if made.problem or final.options.to_shim:
        return _report(call)
    path = made.path or final.path
    if reference.legacy.root == "tf_keras" and not made.path:
        path = ""
    message = f"{_BUG}; {made.message}"
    repaired = Proposal.safe(reference, message, path=path, edits=made.edits, removed=made.removed)
    return repaired._replace(code="LS304")


def _report(call: cst.Call) -> Proposal:
    return Proposal.report(argument_of_scale(call), "LS304", _NAME, f"{_BUG}: {_WRITE}")
