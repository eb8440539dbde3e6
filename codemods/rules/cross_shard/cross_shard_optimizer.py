"""Moves `CrossShardOptimizer` from any legacy path to `tf.compat.v1.tpu` (or to the shim).

TensorFlow 2.0 removed `tf.contrib.tpu` and `tf.tpu`; `tf.compat.v1.tpu.CrossShardOptimizer` has
been the same class since 1.14. It needs a TPU: on GPUs and CPUs its collective has no kernel
(`No OpKernel ... CrossReplicaSum`). A finding says so even if the path needs no change. The shim's
class (`--to shim`) also runs there. Both sum gradients from `tf.gradients`; they do not average.

`--to shim` is always safe, because `isinstance` treats the shim's class and TensorFlow's as one.

Without `--to shim`, a program that already uses the shim's class keeps it, with a note. `--unsafe`
writes `tf.compat.v1.tpu`.
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
    return to_last_path(program, "LS501")


RULE = Rule(
    codes={"LS501": "CrossShardOptimizer"},
    summary="CrossShardOptimizer to tf.compat.v1.tpu",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not a local module with the same name",
            """\
            import tpu_optimizer

            opt = tpu_optimizer.Optimizer(opt)  # no CrossShardOptimizer
            """,
        ),
        Example(
            "under a flag",
            """\
            import tensorflow as tf

            if use_tpu:
                optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
            """,
            """\
            import tensorflow as tf

            if use_tpu:
                optimizer = tf.compat.v1.tpu.CrossShardOptimizer(optimizer)
            """,
            Safety.SAFE,
            message_contains="--to shim",
        ),
        Example(
            "for the shim, with an isinstance check of optimizers made elsewhere",
            """\
            import tensorflow as tf

            def wrap(opt):
                if isinstance(opt, tf.tpu.CrossShardOptimizer):
                    return opt
                return tf.tpu.CrossShardOptimizer(opt)
            """,
            """\
            import tf_lossscale as tfls

            def wrap(opt):
                if isinstance(opt, tfls.tpu.CrossShardOptimizer):
                    return opt
                return tfls.tpu.CrossShardOptimizer(opt)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
