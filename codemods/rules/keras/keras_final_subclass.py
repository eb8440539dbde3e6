"""Reports subclasses that override what `fit` on Keras 3 does not call.

A subclass of a loss-scale optimizer keeps its base, in the shim. But `fit` on Keras 3 makes a step
from `scale_loss` and `apply`. An override of `get_scaled_loss`, `get_unscaled_gradients` or
`apply_gradients` has no effect there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from ...model import Safety, Target
from ...resolve.classes import inherits, may_inherit, own_classes
from ...resolve.program import Program
from ...resolve.values import class_named
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_OF_KERAS_2 = frozenset(
    ["apply_gradients", "get_scaled_loss", "get_unscaled_gradients", "minimize"]
)
_OF_WRAPPERS = frozenset(["get_scaled_loss", "get_unscaled_gradients"])
"""Methods that only a loss-scale optimizer has, if another file has its base class."""
_MESSAGE = (
    "fit on Keras 3 does not call {}: override scale_loss and apply there as well, or train in a "
    "loop that calls the methods itself"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each subclass that overrides one of the methods, itself or by another base."""
    if not program.options.for_keras_3 and program.options.target is not Target.SHIM:
        return
    for owner in own_classes(program):
        bases = [class_named(program, base.value) for base in owner.bases]
        defined = {name for one in [owner, *bases] if one is not None for name in _methods(one)}
        names = sorted(defined & _OF_KERAS_2)
        if not inherits(program, owner) and not _may_wrap(program, owner, names):
            continue
        if names:
            message = _MESSAGE.format(" and ".join(names))
            yield report(owner.name, "LS405", owner.name.value, message)


def _may_wrap(program: Program, owner: cst.ClassDef, names: Sequence[str]) -> bool:
    return may_inherit(program, owner) and not _OF_WRAPPERS.isdisjoint(names)


def _methods(owner: cst.ClassDef) -> set[str]:
    return {one.name.value for one in owner.body.body if isinstance(one, cst.FunctionDef)}


RULE = Rule(
    codes={"LS405": "a subclass of tf.keras.mixed_precision.LossScaleOptimizer"},
    summary="subclasses that override what fit on Keras 3 does not call, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "on Keras 2, where fit calls it",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Logging(LossScaleOptimizer):
                def get_scaled_loss(self, loss):
                    return super().get_scaled_loss(loss)
            """,
            """\
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            class Logging(LossScaleOptimizer):
                def get_scaled_loss(self, loss):
                    return super().get_scaled_loss(loss)
            """,
            Safety.SAFE,
        ),
        Example(
            "a subclass that overrides a method of Keras 2",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Logging(LossScaleOptimizer):
                def get_scaled_loss(self, loss):
                    return super().get_scaled_loss(loss)
            """,
            """\
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            class Logging(LossScaleOptimizer):
                def get_scaled_loss(self, loss):
                    return super().get_scaled_loss(loss)
            """,
            Safety.MANUAL,
            keras=3,
            message_contains="scale_loss",
        ),
    ),
)
