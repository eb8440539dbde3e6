"""Moves `CrossShardOptimizer` from any legacy path to `tf.compat.v1.tpu` (or to the shim).

TensorFlow 2.0 removed `tf.contrib.tpu` and `tf.tpu`; `tf.compat.v1.tpu.CrossShardOptimizer` has
been the same class since 1.14. It needs a TPU: on GPUs and CPUs its collective has no kernel
(`No OpKernel ... CrossReplicaSum`). A finding says so even if the path needs no change. The shim's
class (`--to shim`) also runs there. Both sum gradients from `tf.gradients` instead of averaging
them, as the original always did.

`--to shim` replaces the class by another one, so `isinstance` is False for an optimizer that
TensorFlow's own class made, and the program may wrap it twice. Evidence for safe: every optimizer
that is tested is made in the same file by a class that is known. Otherwise the edit is unsafe.

On the way to the final API, a program on the shim stays there, with a note; `--unsafe` writes
`tf.compat.v1.tpu`.
"""

from __future__ import annotations

from ...model import Safety, Target
from ..rule import Example, Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={"LS501": "CrossShardOptimizer"},
    summary="CrossShardOptimizer to tf.compat.v1.tpu",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    examples=(
        Example(
            "not rewritten at its last path; the finding notes that it needs a TPU",
            """\
            import tensorflow as tf
            import tensorflow.compat.v1 as tf1

            opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)
            opt = tf1.tpu.CrossShardOptimizer(opt)
            """,
            None,
            Safety.SAFE,
            message_contains="--to shim",
        ),
        Example(
            "not a local module with the same name",
            """\
            import tpu_optimizer

            opt = tpu_optimizer.Optimizer(opt)  # no CrossShardOptimizer
            """,
        ),
        Example(
            "not in comments",
            """\
            import tensorflow as tf

            # opt = tf.contrib.tpu.CrossShardOptimizer(opt)
            """,
        ),
        Example(
            "not in an f-string's text",
            """\
            import tensorflow as tf

            print(f"use tf.contrib.tpu.CrossShardOptimizer, not {tf.__version__}")
            """,
        ),
        Example(
            "unsafe for the shim if an isinstance check sees optimizers made elsewhere",
            """\
            import tensorflow as tf

            def wrap(opt):
                if isinstance(opt, tf.tpu.CrossShardOptimizer):
                    return opt
                return tf.tpu.CrossShardOptimizer(opt)
            """,
            None,
            Safety.UNSAFE,
            target=Target.SHIM,
            message_contains="test for both classes",
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
            "an imported module with other uses",
            """\
            import tensorflow.compat.v1 as tf
            from tensorflow.contrib import tpu as contrib_tpu

            optimizer = contrib_tpu.CrossShardOptimizer(optimizer)
            spec = contrib_tpu.TPUEstimatorSpec(mode)
            """,
            """\
            import tensorflow.compat.v1 as tf
            from tensorflow.contrib import tpu as contrib_tpu

            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            spec = contrib_tpu.TPUEstimatorSpec(mode)
            """,
            Safety.SAFE,
        ),
        Example(
            "an imported module without other uses",
            """\
            from tensorflow.contrib.tpu.python.tpu import tpu_optimizer

            optimizer = tpu_optimizer.CrossShardOptimizer(optimizer)
            """,
            """\
            from tensorflow.compat.v1 import tpu

            optimizer = tpu.CrossShardOptimizer(optimizer)
            """,
            Safety.SAFE,
        ),
        Example(
            "a path that never existed in TensorFlow",
            """\
            import tensorflow.compat.v1 as tf
            import tensorflow.compat.v1.estimator as tf_estimator

            optimizer = tf_estimator.tpu.CrossShardOptimizer(optimizer)
            """,
            """\
            import tensorflow.compat.v1 as tf

            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            """,
            Safety.SAFE,
            message_contains="never existed",
        ),
        Example(
            "an alias by assignment, and the check that uses it",
            """\
            import tensorflow as tf

            CrossShardOptimizer = tf.contrib.tpu.CrossShardOptimizer

            def wrap(opt):
                return opt if isinstance(opt, CrossShardOptimizer) else CrossShardOptimizer(opt)
            """,
            """\
            import tensorflow as tf

            CrossShardOptimizer = tf.compat.v1.tpu.CrossShardOptimizer

            def wrap(opt):
                return opt if isinstance(opt, CrossShardOptimizer) else CrossShardOptimizer(opt)
            """,
            Safety.SAFE,
        ),
        Example(
            "several compat modules in one path",
            """\
            import tensorflow.compat.v1 as tf

            opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.compat.v1.tpu.CrossShardOptimizer(opt)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "an isinstance check of an optimizer that the file makes",
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            if use_tpu:
                opt = tf.tpu.CrossShardOptimizer(opt)
            print(isinstance(opt, tf.tpu.CrossShardOptimizer))
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tf.compat.v1.train.AdamOptimizer()
            if use_tpu:
                opt = tfls.tpu.CrossShardOptimizer(opt)
            print(isinstance(opt, tfls.tpu.CrossShardOptimizer))
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "contrib below compat.v1, as tf_upgrade_v2 leaves it",
            """\
            import tensorflow.compat.v1 as tf

            opt = tf.contrib.tpu.CrossShardOptimizer(opt)
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.contrib.tpu.CrossShardOptimizer(opt)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
        Example(
            "one of two, chosen at run time",
            """\
            from tensorflow.contrib.tpu import CrossShardOptimizer

            def keep(opt):
                return opt

            wrap = CrossShardOptimizer if use_tpu else keep
            opt = wrap(opt)
            """,
            """\
            from tf_lossscale.contrib.tpu import CrossShardOptimizer

            def keep(opt):
                return opt

            wrap = CrossShardOptimizer if use_tpu else keep
            opt = wrap(opt)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
