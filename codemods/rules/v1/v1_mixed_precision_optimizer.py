"""Moves `MixedPrecisionLossScaleOptimizer` to `tf.compat.v1.mixed_precision`.

`tf.train.experimental.MixedPrecisionLossScaleOptimizer` is in TensorFlow 1.14 and 1.15 only; the
same class is in `tf.compat.v1.train.experimental` and, since 2.4, in
`tf.compat.v1.mixed_precision`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._paths import to_last_path

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the last path."""
    return to_last_path(program, "LS204")


RULE = Rule(
    codes={"LS204": "tf.train.experimental.MixedPrecisionLossScaleOptimizer"},
    summary="MixedPrecisionLossScaleOptimizer to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a class that the program defines",
            """\
            import tensorflow as tf

            class MixedPrecisionLossScaleOptimizer:
                pass

            opt = MixedPrecisionLossScaleOptimizer()
            """,
        ),
        Example(
            "in a chain of calls, with a comment among the arguments",
            """\
            import tensorflow as tf

            train_op = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
                opt,  # float32 inside
                tf.train.experimental.DynamicLossScale(),
            ).minimize(loss)
            """,
            """\
            import tensorflow as tf

            train_op = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
                opt,  # float32 inside
                tf.compat.v1.mixed_precision.DynamicLossScale(),
            ).minimize(loss)
            """,
            Safety.SAFE,
        ),
        Example(
            "around Horovod, in the same order",
            """\
            import horovod.tensorflow as hvd
            import tensorflow as tf

            opt = hvd.DistributedOptimizer(opt)
            opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, "dynamic")
            """,
            """\
            import horovod.tensorflow as hvd
            import tf_lossscale as tfls

            opt = hvd.DistributedOptimizer(opt)
            opt = tfls.train.experimental.MixedPrecisionLossScaleOptimizer(opt, "dynamic")
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
