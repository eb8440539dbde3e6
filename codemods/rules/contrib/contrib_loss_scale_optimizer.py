"""Moves `tf.contrib.mixed_precision.LossScaleOptimizer` to the shim's class of the same behavior.

`tf.contrib` was removed in TensorFlow 2.0 (release notes, "tf.contrib has been removed"). No later
class behaves like this one: with every manager, it skips a step with a non-finite gradient, and
does not advance `global_step` on it. With `--unsafe` it becomes
`tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer`, if every manager of the file has a
similar class there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._twins import to_twin

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the similar class of TensorFlow 2, with `--unsafe`."""
    return to_twin(program, "LS103")


RULE = Rule(
    codes={"LS103": "tf.contrib.mixed_precision.LossScaleOptimizer"},
    summary="contrib LossScaleOptimizer to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not a class that the program defines",
            """\
            import tensorflow as tf

            class LossScaleOptimizer(tf.train.Optimizer):
                pass

            opt = LossScaleOptimizer()
            """,
        ),
        Example(
            "the arguments stay the same",
            """\
            import tensorflow as tf

            opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
            tf.train.Saver()
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
            tf.train.Saver()
            """,
            Safety.SAFE,
        ),
        Example(
            "an import of the class",
            """\
            from tensorflow.contrib.mixed_precision import LossScaleOptimizer as LSO

            opt = LSO(opt, manager)
            """,
            """\
            from tf_lossscale.contrib.mixed_precision import LossScaleOptimizer as LSO

            opt = LSO(opt, manager)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
