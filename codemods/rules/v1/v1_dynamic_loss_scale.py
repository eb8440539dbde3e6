"""Moves `DynamicLossScale` from its experimental paths to `tf.compat.v1.mixed_precision`.

TensorFlow 2.9 removed it from `tf.train.experimental` and `tf.mixed_precision.experimental`; the
class is in `tf.compat.v1.mixed_precision` since 2.4. A loss scale that is only passed to a Keras
optimizer becomes arguments of that optimizer instead (LS301).
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
    return to_last_path(program, "LS203")


RULE = Rule(
    codes={"LS203": "tf.train.experimental.DynamicLossScale"},
    summary="DynamicLossScale to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not at its last path",
            """\
            import tensorflow.compat.v1 as tf

            scale = tf.mixed_precision.DynamicLossScale()
            """,
        ),
        Example(
            "called to read its value",
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            scaler = tf.train.experimental.DynamicLossScale(2 ** 32, multiplier=2.0)
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt, scaler)
            loss_scale = tf.identity(scaler(), name="scale")
            """,
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            scaler = tf.compat.v1.mixed_precision.DynamicLossScale(2 ** 32, multiplier=2.0)
            opt = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt, scaler)
            loss_scale = tf.identity(scaler(), name="scale")
            """,
            Safety.SAFE,
        ),
        Example(
            "from compat.v1 to the shim",
            """\
            import tensorflow.compat.v1 as tf

            scale = tf.train.experimental.DynamicLossScale(8)
            """,
            """\
            import tf_lossscale as tfls

            scale = tfls.compat.v1.train.experimental.DynamicLossScale(8)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
