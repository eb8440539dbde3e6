"""The last path of the v1 loss scales and of their optimizer, which are the same classes there."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Group
from ...resolve.places import Reference
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import V1, references
from ..findings import moved, safe
from ..keras._constructors import plan_constructors

__all__ = ["at_last_path", "to_last_path"]

_MESSAGE = "the same, in TensorFlow 2.4 and later"
_INLINED = "becomes arguments of the Keras optimizer"


def to_last_path(program: Program, code: str) -> Iterator[Proposal]:
    """Proposes the last path, or for a loss scale the arguments of its Keras optimizer."""
    for reference in references(program, code):
        if reference in program.cached(_inlined):
            yield safe(reference, _INLINED, group=Group.KERAS_OPTIMIZERS)
        else:
            yield from at_last_path(program, reference)


def at_last_path(program: Program, reference: Reference) -> Iterator[Proposal]:
    """Proposes the last path of one reference, unless it is there already."""
    path = f"{V1}.mixed_precision.{reference.legacy.name}"
    proposal = moved(program, reference, path, _MESSAGE)
    if proposal is not None:
        yield proposal


def _inlined(program: Program) -> frozenset[Reference]:
    """The loss scales that become arguments of Keras optimizers."""
    plans = program.cached(plan_constructors)
    return frozenset(reference for plan in plans.values() for reference in plan.removed)
