"""Moves `cross_replica_sum` from any legacy path to `tf.compat.v1.tpu` (or to the shim).

TensorFlow 2.0 removed `tf.contrib.tpu` and `tf.tpu`, and `tensorflow.python.tpu.ops.tpu_ops` is
private. `tf.compat.v1.tpu.cross_replica_sum` is the same function with the same arguments.
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
    return to_last_path(program, "LS502")


RULE = Rule(
    codes={"LS502": "cross_replica_sum"},
    summary="cross_replica_sum to tf.compat.v1.tpu",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not a function that the program defines",
            """\
            import tensorflow as tf

            def cross_replica_sum(x):
                return x

            y = cross_replica_sum(x)
            """,
        ),
        Example(
            "from the private module that defines it",
            """\
            import tensorflow.compat.v1 as tf
            from tensorflow.python.tpu.ops import tpu_ops

            def mean(t, groups, size):
                return tpu_ops.cross_replica_sum(t, groups) / tf.cast(size, t.dtype)
            """,
            """\
            import tensorflow.compat.v1 as tf
            from tensorflow.compat.v1 import tpu

            def mean(t, groups, size):
                return tpu.cross_replica_sum(t, groups) / tf.cast(size, t.dtype)
            """,
            Safety.SAFE,
        ),
        Example(
            "in a lambda, a default and a decorator",
            """\
            import tensorflow as tf

            def reduce(x, by=tf.tpu.cross_replica_sum):
                return (lambda t: tf.contrib.tpu.cross_replica_sum(t))(by(x))
            """,
            """\
            import tf_lossscale as tfls

            def reduce(x, by=tfls.tpu.cross_replica_sum):
                return (lambda t: tfls.contrib.tpu.cross_replica_sum(t))(by(x))
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
