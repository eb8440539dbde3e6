"""Moves `tf.contrib.mixed_precision.LossScaleOptimizer` to the shim's class of the same behavior.

`tf.contrib` was removed in TensorFlow 2.0 (release notes, "tf.contrib has been removed"), and no
later class behaves like this one: it skips a step with a non-finite gradient whatever the manager,
and does not advance `global_step` on it. With `--unsafe` it becomes
`tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer`, if every manager of the file has a
similar class there.
"""

from __future__ import annotations

from ...model import Safety, Target
from ..rule import Example, Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={"LS103": "tf.contrib.mixed_precision.LossScaleOptimizer"},
    summary="contrib LossScaleOptimizer to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
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
            "not from npu_bridge",
            """\
            from npu_bridge.estimator.npu.npu_loss_scale_optimizer import NPULossScaleOptimizer
            from npu_bridge.npu_init import *

            opt = NPULossScaleOptimizer(opt, FixedLossScaleManager(128.0))
            """,
        ),
        Example(
            "not an attribute of another object named tf",
            """\
            import threefive as tf

            opt = tf.mixed_precision.scale(opt)
            """,
        ),
        Example(
            "not in comments and strings",
            '''\
            import tensorflow as tf

            # opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
            """See tf.contrib.mixed_precision.LossScaleOptimizer for how."""
            ''',
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
        Example(
            "a base class, whose overridden methods keep their names",
            """\
            import tensorflow as tf

            class Logged(tf.contrib.mixed_precision.LossScaleOptimizer):
                pass
            """,
            """\
            import tf_lossscale as tfls

            class Logged(tfls.contrib.mixed_precision.LossScaleOptimizer):
                pass
            """,
            Safety.SAFE,
        ),
    ),
)
