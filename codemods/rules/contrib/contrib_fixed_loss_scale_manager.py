"""Moves `tf.contrib.mixed_precision.FixedLossScaleManager` to the shim's class.

`tf.contrib` was removed in TensorFlow 2.0. `FixedLossScale`, the class with the most similar name,
does not skip steps whose gradients overflow: on TensorFlow 1.15, the weights become `-inf` at the
first overflow. The shim's class skips them; `--unsafe` writes `FixedLossScale`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._twins import to_twin

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the similar class of TensorFlow 2, with `--unsafe`."""
    return to_twin(program, "LS101")


RULE = Rule(
    codes={"LS101": "tf.contrib.mixed_precision.FixedLossScaleManager"},
    summary="contrib FixedLossScaleManager to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not from mindspore",
            """\
            from mindspore import FixedLossScaleManager

            manager = FixedLossScaleManager(128.0)
            """,
        ),
        Example(
            "a positional value",
            """\
            import tensorflow as tf

            manager = tf.contrib.mixed_precision.FixedLossScaleManager(128.0)
            opt = tf.train.AdamOptimizer()
            opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128.0)
            opt = tf.train.AdamOptimizer()
            opt = tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
            """,
            Safety.SAFE,
        ),
        Example(
            "FixedLossScale with --unsafe",
            """\
            import tensorflow as tf

            manager = tf.contrib.mixed_precision.FixedLossScaleManager(loss_scale=128.0)
            o = tf.contrib.mixed_precision.LossScaleOptimizer(o, loss_scale_manager=manager)
            """,
            """\
            import tensorflow as tf

            manager = tf.compat.v1.mixed_precision.FixedLossScale(loss_scale_value=128.0)
            o = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(o, loss_scale=manager)
            """,
            Safety.UNSAFE,
            unsafe=True,
            message_contains="NaN",
        ),
    ),
)
