"""Moves the v1 loss scales and their optimizer to `tf.compat.v1.mixed_precision`.

TensorFlow 2.9 removed `LossScale`, `FixedLossScale` and `DynamicLossScale` from
`tf.train.experimental` and `tf.mixed_precision.experimental`. TensorFlow 1.14 and 1.15 alone have
`tf.train.experimental.MixedPrecisionLossScaleOptimizer`. The same classes are in
`tf.compat.v1.mixed_precision` since 2.4. A loss scale that is only passed to a Keras optimizer
becomes arguments of that optimizer instead (LS301). Subclasses of `LossScale` keep working with
`MixedPrecisionLossScaleOptimizer`; Keras optimizers have not accepted them since 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Group, Safety
from ...resolve.places import Reference
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import V1, references
from ..findings import moved, safe
from ..keras._constructors import plan_constructors
from ..rule import Example, Rule

__all__ = ["RULE", "at_last_path"]

_CODES = {
    "LS201": "tf.train.experimental.LossScale",
    "LS202": "tf.train.experimental.FixedLossScale",
    "LS203": "tf.train.experimental.DynamicLossScale",
    "LS204": "tf.train.experimental.MixedPrecisionLossScaleOptimizer",
}
_MESSAGE = "the same, in TensorFlow 2.4 and later"
_INLINED = "becomes arguments of the Keras optimizer"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the last path, or for a loss scale the arguments of its Keras optimizer."""
    plans = program.cached(plan_constructors).values()
    inlined = {reference for plan in plans for reference in plan.removed}
    for reference in references(program, *_CODES):
        if reference in inlined:
            yield safe(reference, _INLINED, group=Group.KERAS_OPTIMIZERS)
        else:
            yield from at_last_path(program, reference)


def at_last_path(program: Program, reference: Reference) -> Iterator[Proposal]:
    """Proposes the last path of one reference, unless it is there already."""
    path = f"{V1}.mixed_precision.{reference.legacy.name}"
    proposal = moved(program, reference, path, _MESSAGE)
    if proposal is not None:
        yield proposal


RULE = Rule(
    codes=_CODES,
    summary="v1 loss scales to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not at its last path",
            """\
            from tensorflow.compat.v1.mixed_precision import FixedLossScale

            scale = FixedLossScale(8)
            """,
        ),
        Example(
            "a base class, and a loss scale passed to the v1 optimizer",
            """\
            import tensorflow as tf

            class Mine(tf.train.experimental.LossScale):
                def __call__(self) -> tf.Tensor:
                    return self._scale

            train_op = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
                opt,  # float32 inside
                tf.train.experimental.DynamicLossScale(),
            ).minimize(loss)
            """,
            """\
            import tensorflow as tf

            class Mine(tf.compat.v1.mixed_precision.LossScale):
                def __call__(self) -> tf.Tensor:
                    return self._scale

            train_op = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
                opt,  # float32 inside
                tf.compat.v1.mixed_precision.DynamicLossScale(),
            ).minimize(loss)
            """,
            Safety.SAFE,
        ),
    ),
)
