"""Moves `FixedLossScale` from its experimental paths to `tf.compat.v1.mixed_precision`.

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
    return to_last_path(program, "LS202")


RULE = Rule(
    codes={"LS202": "tf.train.experimental.FixedLossScale"},
    summary="FixedLossScale to tf.compat.v1.mixed_precision",
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
            "by name",
            """\
            from tensorflow.train.experimental import FixedLossScale

            scale = FixedLossScale(8)
            scale.update([])
            """,
            """\
            from tensorflow.compat.v1.mixed_precision import FixedLossScale

            scale = FixedLossScale(8)
            scale.update([])
            """,
            Safety.SAFE,
        ),
        Example(
            "several compat modules in the path",
            """\
            import tensorflow.compat.v1 as tf

            scale = tf.compat.v2.mixed_precision.experimental.FixedLossScale(8)
            """,
            """\
            import tf_lossscale as tfls

            scale = tfls.mixed_precision.experimental.FixedLossScale(8)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
