"""The table of the v1 loss scales, their optimizer and the graph rewrite."""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Target
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import V1
from ..findings import safe
from ..groups import KERAS_OPTIMIZERS
from ..keras._constructors import plan_constructors
from ..moves import Move, Moves, Safe

__all__ = ["MOVES"]

_V1 = f"{V1}.mixed_precision"
_MESSAGE = "the same, in TensorFlow 2.4 and later"
_LOSS_SCALES = Group("v1-loss-scales")
_OPTIMIZERS = Group("v1-optimizers")


class _V1Moves(Moves):
    """Loss scales beside Keras optimizers may become arguments of those, and wait for them."""

    def proposals(self, program: Program, reference: Reference) -> Iterator[Proposal]:
        """The last path, or for a loss scale the arguments of its Keras optimizer."""
        if program.options.target is Target.SHIM:
            yield self.to_shim_of(program, reference, _shim_group(program, reference))
        elif reference in program.cached(_inlined):
            message = "becomes arguments of the Keras optimizer"
            yield safe(reference, message, group=KERAS_OPTIMIZERS)
        else:
            waits = reference.legacy.is_loss_scale and program.cached(_beside_keras)
            yield from self.to_final(program, reference, KERAS_OPTIMIZERS if waits else None)


MOVES = _V1Moves(
    [
        Move(symbol, Safe(f"{_V1}.{symbol}", _MESSAGE))
        for symbol in (
            "LossScale",
            "FixedLossScale",
            "DynamicLossScale",
            "MixedPrecisionLossScaleOptimizer",
            "enable_mixed_precision_graph_rewrite",
            "disable_mixed_precision_graph_rewrite",
        )
    ],
    shim="it behaves as in TensorFlow 2.21, on every TensorFlow",
)


def _shim_group(program: Program, reference: Reference) -> Group:
    """What moves to the shim together, so that class tests fit the class that they test.

    The graph rewrite makes optimizers of both APIs.
    """
    if program.cached(_beside_keras):
        return KERAS_OPTIMIZERS
    return _LOSS_SCALES if reference.legacy.is_loss_scale else _OPTIMIZERS


def _beside_keras(program: Program) -> bool:
    """Whether what is here may belong to a Keras optimizer, and must wait for it."""
    return any(one.legacy.is_experimental_optimizer for one in program.references)


def _inlined(program: Program) -> frozenset[Reference]:
    """The loss scales that become arguments of Keras optimizers."""
    wraps = program.cached(plan_constructors)
    return frozenset(reference for wrap in wraps.values() for reference in wrap.removed)
