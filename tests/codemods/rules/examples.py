"""Further examples of the rules, by the slug of the rule; its own file has the first few."""

from typing import Iterator, Tuple

from tf_lossscale_codemods.model import Safety, Target
from tf_lossscale_codemods.rules.codes import rules
from tf_lossscale_codemods.rules.rule import Example, Rule
from verbs import edited, reported

__all__ = ["EXAMPLES", "all_examples"]

EXAMPLES = {
    "contrib-classes": (
        edited(
            "FixedLossScale with --unsafe",
            """
              import tensorflow as tf

            - scale = tf.contrib.mixed_precision.FixedLossScaleManager(loss_scale=128.0)
            - o = tf.contrib.mixed_precision.LossScaleOptimizer(o, loss_scale_manager=scale)
            + scale = tf.compat.v1.mixed_precision.FixedLossScale(loss_scale_value=128.0)
            + o = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(o, loss_scale=scale)
            """,
            Safety.UNSAFE,
            unsafe=True,
            message_contains="NaN",
        ),
        edited(
            "a lazy import stays in its function",
            """
              import tensorflow as tf

              def gpu(optimizer, scale):
            -     from tensorflow.contrib.mixed_precision import FixedLossScaleManager
            -     from tensorflow.contrib.mixed_precision import LossScaleOptimizer
            +     from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager
            +     from tf_lossscale.contrib.mixed_precision import LossScaleOptimizer
                  return LossScaleOptimizer(optimizer, FixedLossScaleManager(scale))

              def npu(optimizer, scale):
                  from npu_bridge.npu_init import FixedLossScaleManager
                  from npu_bridge.npu_init import NPULossScaleOptimizer
                  return NPULossScaleOptimizer(optimizer, FixedLossScaleManager(scale))
            """,
        ),
        edited(
            "a deep import",
            """
            - from tensorflow_core.contrib.mixed_precision.python.loss_scale_manager import (
            + from tf_lossscale.contrib.mixed_precision import (
                  ExponentialUpdateLossScaleManager as Manager,
              )

              manager = Manager(init_loss_scale=2**32, incr_every_n_steps=1000)
            """,
            target=Target.SHIM,
        ),
        edited(
            "unsafe where both classes use the same numbers",
            """
              import tensorflow.compat.v1 as tf

            - manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(
            -     init_loss_scale=2.0 ** 15,
            -     incr_every_n_steps=2000,  # as in the paper
            -     decr_every_n_nan_or_inf=1,
            -     incr_ratio=4.0,
            -     decr_ratio=0.25,
            + manager = tf.mixed_precision.DynamicLossScale(
            +     initial_loss_scale=2.0 ** 15,
            +     increment_period=2000,  # as in the paper
            +     multiplier=4.0,
              )
            """,
            Safety.UNSAFE,
            unsafe=True,
            message_contains="checkpoints",
        ),
        edited(
            "moved to the shim where the numbers differ, even with --unsafe",
            """
            - from tensorflow.contrib import mixed_precision as mp
            + from tf_lossscale.contrib import mixed_precision as mp

              manager = mp.ExponentialUpdateLossScaleManager(2**32, 1000, 2, decr_ratio=0.5)
            """,
            unsafe=True,
        ),
    ),
    "keras-experimental-loss-scale-optimizer": (
        edited(
            "a line for each argument, though one contains a comment",
            """
              import tensorflow as tf

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
            + opt = tf.keras.mixed_precision.LossScaleOptimizer(
                  make(  # as before
                      0.1,
                  ),
            -     tf.train.experimental.DynamicLossScale(1024.0, 500),
            +     initial_scale=1024.0,
            +     dynamic_growth_steps=500,
              )
            """,
        ),
        edited(
            "a comment stays, once",
            """
              import tensorflow as tf

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
            + opt = tf.keras.mixed_precision.LossScaleOptimizer(
                  opt,  # as before
            -     tf.train.experimental.DynamicLossScale(1024.0, 500),
            +     initial_scale=1024.0, dynamic_growth_steps=500,
              )
            """,
        ),
        edited(
            "at run time where the multiplier is not two",
            """
              import tensorflow as tf
            - mp = tf.keras.mixed_precision.experimental
            + import tf_lossscale as tfls
            + mp = tf.keras.mixed_precision

            - scale = tf.mixed_precision.experimental.DynamicLossScale(multiplier=3.0)
            - opt = mp.LossScaleOptimizer(opt, scale)
            + scale = tf.compat.v1.mixed_precision.DynamicLossScale(multiplier=3.0)
            + opt = tfls.keras.mixed_precision.from_loss_scale(opt, scale)
              print(isinstance(opt, mp.LossScaleOptimizer))
            """,
            message_contains="at run time",
        ),
        edited(
            "reported where compile may have made the tested optimizer",
            """
              import tensorflow as tf
            - from tensorflow.keras.mixed_precision import experimental as prec
            + from tf_lossscale.keras.mixed_precision import experimental as prec

              prec.set_policy("mixed_float16")
              model.compile("sgd", "mse")
              print(isinstance(model.optimizer, prec.LossScaleOptimizer))
            """,
            Safety.MANUAL,
            message_contains="both classes",
        ),
        edited(
            "at run time where two optimizers share one loss scale",
            """
              import tensorflow as tf
            - from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
            + from tf_lossscale.keras.mixed_precision import from_loss_scale

            - scale = tf.train.experimental.DynamicLossScale()
            - first = LossScaleOptimizer(first, scale)
            - second = LossScaleOptimizer(second, scale)
            + scale = tf.compat.v1.mixed_precision.DynamicLossScale()
            + first = from_loss_scale(first, scale)
            + second = from_loss_scale(second, scale)
            """,
            message_contains="at run time",
        ),
        edited(
            "on the shim where it is called through an attribute",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              class Trainer:
            -     wrapper = tf.keras.mixed_precision.experimental.LossScaleOptimizer
            +     wrapper = tfls.keras.mixed_precision.experimental.LossScaleOptimizer

                  def wrap(self, opt):
                      return self.wrapper(opt, "dynamic")
            """,
            message_contains="passed on",
        ),
        edited(
            "at run time where a loss scale of the program's own is passed",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - class Halving(tf.mixed_precision.experimental.DynamicLossScale):
            + class Halving(tf.compat.v1.mixed_precision.DynamicLossScale):
                  def update(self, grads):
                      return super().update(grads)

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, Halving())
            + opt = tfls.keras.mixed_precision.from_loss_scale(opt, Halving())
            """,
            message_contains="at run time",
        ),
        edited(
            "at run time where the loss scale is None",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, None)
            + opt = tfls.keras.mixed_precision.from_loss_scale(opt, None)
            """,
            message_contains="at run time",
        ),
        edited(
            "one loss scale for every optimizer of a loop",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - prec = tf.keras.mixed_precision.experimental
            - scale = tf.mixed_precision.experimental.DynamicLossScale(8)
            + prec = tfls.keras.mixed_precision
            + scale = tf.compat.v1.mixed_precision.DynamicLossScale(8)
              for opt in optimizers:
            -     wrapped.append(prec.LossScaleOptimizer(opt, scale))
            +     wrapped.append(prec.from_loss_scale(opt, scale))
            """,
            message_contains="at run time",
        ),
        edited(
            "arguments of both classes",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
            + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(
                  opt, dynamic=True, loss_scale="dynamic"
              )
            """,
            message_contains="go to the shim",
        ),
        edited(
            "on the shim beside a suppressed isinstance check",
            """
              from tensorflow.keras.mixed_precision import experimental as prec
            + import tf_lossscale as tfls

            - opt = prec.LossScaleOptimizer(opt, "dynamic")
            + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
              if isinstance(opt, prec.LossScaleOptimizer):  # lossscale: ignore[LS301] 2.3 only
                  scale = True
            """,
        ),
        edited(
            "dynamic by keyword, with checks",
            """
            - from tensorflow.keras.mixed_precision import experimental as mixed_precision
            + from tensorflow.keras import mixed_precision

            - opt = mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")
            + opt = mixed_precision.LossScaleOptimizer(opt)
              if isinstance(opt, mixed_precision.LossScaleOptimizer):
                  loss = opt.get_scaled_loss(loss)
            """,
        ),
        edited(
            "a number, which is a fixed loss scale",
            """
            - import tensorflow.keras.mixed_precision.experimental as mp
            + import tensorflow.keras.mixed_precision as mp

            - opt = mp.LossScaleOptimizer(opt, loss_scale=2 ** 10)
            + opt = mp.LossScaleOptimizer(opt, dynamic=False, initial_scale=2 ** 10)
            """,
        ),
        edited(
            "a dynamic loss scale in a variable that is used once",
            """
            - import tensorflow as tf
            - from tensorflow.keras.mixed_precision import experimental as mp
            + from tensorflow.keras import mixed_precision as mp

              def wrap(opt):
            -     loss_scale = tf.mixed_precision.experimental.DynamicLossScale(
            -         initial_loss_scale=2.0**22, increment_period=20
            -     )
            -     opt = mp.LossScaleOptimizer(opt, loss_scale)
            +     opt = mp.LossScaleOptimizer(opt, initial_scale=2.0**22, dynamic_growth_steps=20)
                  return opt
            """,
        ),
        edited(
            "a loss scale that is only known at run time",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              def wrap(opt, loss_scale):
            -     return tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, loss_scale)
            +     return tfls.keras.mixed_precision.from_loss_scale(opt, loss_scale)
            """,
            message_contains="run time",
        ),
        edited(
            "an imported name that is called and checked",
            """
            - from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
            + from tensorflow.keras.mixed_precision import LossScaleOptimizer
            + from tf_lossscale.keras.mixed_precision import from_loss_scale

              def wrap(opt, loss_scale):
                  if isinstance(opt, LossScaleOptimizer):
                      return opt
            -     return LossScaleOptimizer(opt, loss_scale)
            +     return from_loss_scale(opt, loss_scale)
            """,
        ),
        edited(
            "starred arguments that may contain the loss scale",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, **settings)
            + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, **settings)
            """,
        ),
        edited(
            "comments among the arguments stay",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
            + opt = tfls.keras.mixed_precision.from_loss_scale(
                  opt,  # wrapped
                  loss_scale='dynamic',  # grows
              )
            """,
        ),
    ),
    "keras-loss-scale-call": (
        edited(
            "an optimizer that from_config makes",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.LossScaleOptimizer.from_config(config)
            - print(opt.loss_scale())
            + opt = tfls.keras.mixed_precision.LossScaleOptimizer.from_config(config)
            + print(opt.loss_scale)
            """,
        ),
        reported(
            "a call in a file whose other names are migrated already",
            """\
            import tf_lossscale as tfls

            policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16")
            print(opt.loss_scale())
            """,
            target=Target.SHIM,
            message_contains="drop the parentheses",
        ),
        reported(
            "reported for the shim where the value is kept",
            """\
            from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

            opt = LossScaleOptimizer(opt, "dynamic")
            before = opt.loss_scale()
            after = opt.loss_scale() if is_dynamic else 1.0
            """,
            target=Target.SHIM,
            message_contains="tf.identity(opt.loss_scale)",
        ),
        reported(
            "reported for the shim where a function keeps the value",
            """\
            import tensorflow as tf
            from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

            opt = LossScaleOptimizer(opt, "dynamic")
            logs.update(scale=opt.loss_scale())
            scales = dict(now=opt.loss_scale(), value=tf.keras.backend.get_value(opt.loss_scale()))
            """,
            target=Target.SHIM,
            message_contains="tf.identity(opt.loss_scale)",
        ),
        reported(
            "a test of what kind of object the loss scale is",
            """\
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            print(hasattr(opt.loss_scale, "multiplier"))
            """,
            message_contains="is a tensor",
        ),
        Example(
            "not where each version has its own form",
            """\
            import tensorflow as tf
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            def scale_of(opt: LossScaleOptimizer):
                if tf.__version__ < "2.4":
                    return opt.loss_scale()
                return opt.loss_scale

            def ask(opt: LossScaleOptimizer):
                return opt.loss_scale() if callable(opt.loss_scale) else opt.loss_scale

            def read(opt: LossScaleOptimizer):
                try:
                    return opt.loss_scale()
                except TypeError:
                    return opt.loss_scale
            """,
        ),
        reported(
            "reported after it was unwrapped under the check",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            def log(opt):
                if isinstance(opt, LossScaleOptimizer):
                    opt = opt.inner_optimizer
                    print(opt.loss_scale())
            """,
        ),
        reported(
            "reported where a comment or a word touches the parentheses",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            scale = opt.loss_scale(  # now
            )
            scales = [opt.loss_scale()for _ in range(2)]
            """,
        ),
        edited(
            "an attribute of the class",
            """
            - from tensorflow.keras.mixed_precision import experimental
            + from tensorflow.keras import mixed_precision

              class Trainer:
                  def __init__(self, optimizer):
            -         self.optimizer = experimental.LossScaleOptimizer(optimizer, "dynamic")
            +         self.optimizer = mixed_precision.LossScaleOptimizer(optimizer)

                  def log(self):
            -         return self.optimizer.loss_scale()
            +         return self.optimizer.loss_scale
            """,
        ),
        reported(
            "of a parameter, under an isinstance check",
            """\
            import tensorflow as tf
            from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

            def _log(opt):
                return opt.loss_scale() if isinstance(opt, LossScaleOptimizer) else 1.0

            _log(LossScaleOptimizer(tf.keras.optimizers.SGD(), "dynamic"))
            """,
            target=Target.SHIM,
        ),
    ),
    "keras-final-loss-scale-optimizer": (
        Example(
            "not a Keras 3 initial scale by position",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, 1024.0)
            """,
        ),
        Example(
            "not the final class's own arguments by position",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, True, 1024)
            """,
        ),
        reported(
            "a program of keras alone, which may run on another backend",
            """\
            import keras

            opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())
            """,
            Safety.UNSAFE,
            keras=3,
            message_contains="backend",
        ),
        Example(
            "not tf_keras, which stays Keras 2",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            """,
            keras=3,
        ),
        Example(
            "not a loop written for Keras 3",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.scale_loss(loss_of(model(x), y))
            """,
            keras=3,
        ),
        Example(
            "not tf_keras for the shim, either",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            """,
            target=Target.SHIM,
        ),
        edited(
            "for the shim, which runs on Keras 2 and Keras 3",
            """
            - from tensorflow.keras.mixed_precision import LossScaleOptimizer
            + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

              opt = LossScaleOptimizer(SGD())
              if isinstance(opt, LossScaleOptimizer):
                  loss = opt.get_scaled_loss(loss)
            """,
            target=Target.SHIM,
        ),
        edited(
            "an optimizer that compile may have wrapped",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

              class Scaled(tf.keras.Model):
                  def train_step(self, data):
                      with tf.GradientTape() as tape:
                          loss = self.loss_of(data)
                          if isinstance(
            -                 self.optimizer, tf.keras.mixed_precision.LossScaleOptimizer
            +                 self.optimizer, tfls.keras.mixed_precision.LossScaleOptimizer
                          ):
                              loss = self.optimizer.get_scaled_loss(loss)
            """,
            Safety.MANUAL,
            keras=3,
            message_contains="before compile",
        ),
    ),
    "cross-shard": (
        reported(
            "not rewritten at its last path; the finding notes that it needs a TPU",
            """\
            import tensorflow as tf
            import tensorflow.compat.v1 as tf1

            opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)
            opt = tf1.tpu.CrossShardOptimizer(opt)
            """,
            Safety.SAFE,
            message_contains="--to shim",
        ),
        edited(
            "compat.v1 stays in the paths of the shim, but for contrib below it",
            """
            - import tensorflow.compat.v1 as tf
            + import tf_lossscale as tfls

            - opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)
            - opt = tf.contrib.tpu.CrossShardOptimizer(opt)
            - scale = tf.train.experimental.DynamicLossScale(8)
            + opt = tfls.compat.v1.tpu.CrossShardOptimizer(opt)
            + opt = tfls.contrib.tpu.CrossShardOptimizer(opt)
            + scale = tfls.compat.v1.train.experimental.DynamicLossScale(8)
            """,
            target=Target.SHIM,
        ),
        edited(
            "a path that never existed in TensorFlow",
            """
              import tensorflow.compat.v1 as tf
            - import tensorflow.compat.v1.estimator as tf_estimator

            - optimizer = tf_estimator.tpu.CrossShardOptimizer(optimizer)
            + optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            """,
            message_contains="never existed",
        ),
    ),
    "policies": (
        edited(
            "on the shim where the function is replaced, which each run reports",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - tf.keras.mixed_precision.experimental.set_policy = print
            + tfls.keras.mixed_precision.experimental.set_policy = print
            """,
            Safety.MANUAL,
            message_contains="in the place of this symbol",
        ),
        edited(
            "reported where TensorFlow removed the policy",
            """
              import tensorflow as tf

            - tf.keras.mixed_precision.experimental.set_policy("infer_float32_vars")
            + tf.keras.mixed_precision.set_global_policy("infer_float32_vars")
            """,
            Safety.MANUAL,
            message_contains="of this name",
        ),
        edited(
            "an import that other files may read",
            """
            - from tensorflow.keras.mixed_precision.experimental import get_layer_policy
            + from tf_lossscale.keras.mixed_precision.experimental import get_layer_policy

              __all__ = ["get_layer_policy"]
            """,
        ),
        edited(
            "reported where the policy has a fixed loss scale",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=8)
            + policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=8)
            """,
            Safety.MANUAL,
            message_contains="wrap the optimizer",
        ),
        edited(
            "under compat.v1, which has no final policy function before 2.16",
            """
              import tensorflow.compat.v1 as tf

            - tf.compat.v2.keras.mixed_precision.experimental.set_policy("mixed_float16")
            - tf.keras.mixed_precision.experimental.set_policy("float32")
            + tf.compat.v2.keras.mixed_precision.set_global_policy("mixed_float16")
            + tf.compat.v2.keras.mixed_precision.set_global_policy("float32")
            """,
        ),
        edited(
            "reported where None resets the policy, which Keras 3 refuses",
            """
              import tensorflow as tf

            - tf.keras.mixed_precision.experimental.set_policy(None)
            + tf.keras.mixed_precision.set_global_policy(None)
            """,
            Safety.MANUAL,
            keras=3,
            message_contains="float32",
        ),
        edited(
            "an imported name is renamed where it is called",
            """
            - from tensorflow.keras.mixed_precision.experimental import Policy, set_policy
            + from tensorflow.keras.mixed_precision import Policy, set_global_policy

            - set_policy(Policy("mixed_bfloat16"))
            + set_global_policy(Policy("mixed_bfloat16"))
            """,
        ),
        edited(
            "a name that never existed in TensorFlow",
            """
              from tensorflow.keras import mixed_precision

            - mixed_precision.set_policy("mixed_float16")
            + mixed_precision.set_global_policy("mixed_float16")
            """,
            message_contains="never existed",
        ),
        edited(
            "reported where None meant no scaling",
            """
            - from tensorflow.keras.mixed_precision.experimental import Policy
            + from tf_lossscale.keras.mixed_precision.experimental import Policy

              policy = Policy("mixed_float16", loss_scale=None)
              other = Policy("float32")
            """,
            Safety.MANUAL,
            message_contains="None",
        ),
        edited(
            "to the shim, with a loss scale that it refuses from TensorFlow 2.9 on",
            """
            - from tensorflow.keras.mixed_precision.experimental import Policy
            + from tf_lossscale.keras.mixed_precision.experimental import Policy

              policy = Policy("mixed_float16", loss_scale=128)
            """,
            Safety.MANUAL,
            target=Target.SHIM,
            unsafe=True,
        ),
        edited(
            "a test of the class",
            """
            - from tensorflow.keras.mixed_precision.experimental import Policy
            + from tf_lossscale.keras.mixed_precision.experimental import Policy

              def is_mixed(layer):
                  return isinstance(layer.dtype_policy, Policy)
            """,
            unsafe=True,
            message_contains="go to the shim",
        ),
    ),
    "policy-loss-scale": (
        edited(
            "a read of what is called a policy, beside the experimental API",
            """
            - from tensorflow.keras.mixed_precision import experimental as prec
            + from tf_lossscale.keras.mixed_precision import experimental as prec

              def setup(policy):
                  prec.set_policy(policy)
                  return policy.loss_scale is not None
            """,
            Safety.MANUAL,
            message_contains="if this is a Keras policy",
        ),
        edited(
            "a read of the experimental policy's loss scale keeps the policies on the shim",
            """
            - from tensorflow.keras.mixed_precision import experimental as prec
            + from tf_lossscale.keras.mixed_precision import experimental as prec

              prec.set_policy("mixed_float16")
              print(prec.global_policy().loss_scale)
            """,
            Safety.MANUAL,
            message_contains="optimizer",
        ),
        Example(
            "not for the shim, whose policies have a loss scale",
            """\
            from tf_lossscale.keras.mixed_precision import experimental

            print(experimental.global_policy().loss_scale)
            """,
            target=Target.SHIM,
        ),
    ),
    "unclear-origin": (
        edited(
            "another library's class in the other branch",
            """
              try:
                  from npu_bridge.npu_init import FixedLossScaleManager
              except ImportError:
            -     from tensorflow.contrib.mixed_precision import FixedLossScaleManager
            +     from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

              manager = FixedLossScaleManager(8)
            """,
            message_contains="go to the shim",
        ),
        reported(
            "a star import of the project's own module",
            """\
            import tensorflow as tf
            from utilities import *

            opt = CrossShardOptimizer(opt)
            """,
            message_contains="utilities",
        ),
        reported(
            "a relative import of the same name",
            """\
            from .optimizers import LossScaleOptimizer

            opt = LossScaleOptimizer(opt, 'dynamic')
            """,
            message_contains="`.optimizers`",
        ),
        reported(
            "a comparison with the type of an optimizer",
            """\
            from compat import mp

            print(type(opt) is mp.LossScaleOptimizer)
            """,
            message_contains="use isinstance",
        ),
        reported(
            "a class test of what compile may have made",
            """\
            import tensorflow as tf
            from compat import mp

            tf.keras.mixed_precision.set_global_policy("mixed_float16")
            model.compile("sgd", "mse")
            print(isinstance(model.optimizer, mp.LossScaleOptimizer))
            """,
            message_contains="both classes",
        ),
        reported(
            "several names through one module",
            """\
            from lingvo import compat as tf

            y = tf.tpu.cross_replica_sum(x)
            opt = tf.tpu.CrossShardOptimizer(opt)
            scale = tf.train.experimental.DynamicLossScale()
            """,
            message_contains="`CrossShardOptimizer` and `DynamicLossScale` from `lingvo.compat`",
        ),
        reported(
            "a module from a table of names",
            """\
            mp = globals()["tf"].keras.mixed_precision.experimental
            mp.set_policy("float32")
            """,
            message_contains="cannot be resolved",
        ),
        reported(
            "modules that are kept in attributes and tables",
            """\
            import tensorflow as tf

            class Context:
                mp = tf.keras.mixed_precision

                def wrap(self, opt):
                    return self.mp.experimental.LossScaleOptimizer(opt, 2.0)

            modules = {"mp": tf.mixed_precision}
            scale = modules["mp"].experimental.FixedLossScale(9.0)
            """,
            message_contains="cannot be resolved",
        ),
        Example(
            "not an attribute of self",
            """\
            import tensorflow as tf

            class Trainer:
                def wrap(self, opt):
                    return self.LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "not where both meanings are the same symbol",
            """\
            try:
                import tensorflow.compat.v1 as tf
            except ImportError:
                import tensorflow as tf

            scale = tf.compat.v1.mixed_precision.DynamicLossScale()
            """,
        ),
    ),
    "keras3-plain-loop": (
        Example(
            "not in a loop whose gradients are not scaled",
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            loss = opt.get_scaled_loss(loss)
            grads = opt.get_unscaled_gradients(tape.gradient(loss, variables))
            opt.apply_gradients(zip(grads, variables))
            opt.apply_gradients(zip(others, variables))
            """,
            keras=3,
            unsafe=True,
        ),
        edited(
            "a clipped loop stays on the shim's class",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
              with tf.GradientTape() as tape:
                  loss = opt.get_scaled_loss(model(x))
              grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
              grads, _ = tf.clip_by_global_norm(grads, 1.0)
              opt.apply_gradients(zip(grads, model.variables))
            """,
            keras=3,
            unsafe=True,
        ),
        edited(
            "not where a part of the step is conditional",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)

              def step():
                  with tf.GradientTape() as tape:
                      loss = loss_of()
                      if USE:
                          loss = opt.get_scaled_loss(loss)
                  grads = tape.gradient(loss, variables)
                  if USE:
                      grads = opt.get_unscaled_gradients(grads)
                  opt.apply_gradients(zip(grads, variables))
            """,
            keras=3,
            unsafe=True,
            message_contains="LossScaleOptimizer",
        ),
        edited(
            "a loop that scales a function stays on the shim's class",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
              scaled_loss = opt.get_scaled_loss(lambda: model(x))
              with tf.GradientTape() as tape:
                  loss = scaled_loss()
              grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
              opt.apply_gradients(zip(grads, model.variables))
            """,
            keras=3,
            unsafe=True,
        ),
    ),
    "keras-inner-optimizer": (
        Example(
            "not what every version passes on, nor the same attributes of other objects",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
            opt.learning_rate = 0.5
            layer = tf.keras.layers.BatchNormalization()
            layer.momentum = 0.5
            """,
        ),
        Example(
            "not what the wrapper has never passed on",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(0.1))
            opt.epsilon = 0.5
            """,
        ),
        Example(
            "not what a loop sets in layers",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
            for layer in build_model().layers:
                if hasattr(layer, "momentum"):
                    layer.momentum = 0.9
                    setattr(*parts, "momentum")
            """,
        ),
        Example(
            "not what is set in the inner optimizer",
            """\
            import tensorflow as tf

            def schedule(opt, target_opt):
                opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
                opt.inner_optimizer.momentum = 0.9
                inner_opt = target_opt.inner_optimizer
                inner_opt.momentum = 0.9
            """,
        ),
        edited(
            "a certain one whose name looks like an argument's",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - target_opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            + target_opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
              setattr(target_opt, "momentum", 0.5)
            """,
            message_contains="when it is set",
        ),
        edited(
            "whatever a loop sets",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
            + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
              for name, value in changes.items():
                  setattr(opt, name, value)
            """,
            message_contains="does not pass `name` on",
        ),
        Example(
            "not parsed options, an inner optimizer by its name, or what a test unwraps",
            """\
            import tensorflow as tf

            opt = TrainOptions().parse()
            opt.momentum = 0.5
            base_optimizer = build(opt)
            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(base_optimizer)
            base_optimizer.momentum = 0.3
            getattr(optimizer, "inner_optimizer", optimizer).momentum = 0.2
            """,
        ),
        Example(
            "not an unwrapped parameter",
            """\
            import tensorflow as tf

            def wrapped(optimizer):
                optimizer.momentum = 0.5
                return tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
            """,
        ),
        edited(
            "wrapped on some path, under any name",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              sgd = make()
              if fp16:
            -     sgd = tf.keras.mixed_precision.LossScaleOptimizer(sgd)
            +     sgd = tfls.keras.mixed_precision.LossScaleOptimizer(sgd)
              sgd.momentum = 0.3
            """,
            message_contains="when it is set",
        ),
        edited(
            "an optimizer that a property returns",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              class Trainer:
                  def __init__(self):
            -         self._opt = tf.keras.mixed_precision.LossScaleOptimizer(make())
            +         self._opt = tfls.keras.mixed_precision.LossScaleOptimizer(make())

                  @property
                  def opt(self):
                      return self._opt

                  def cool(self):
                      self.opt.momentum = 0.5
            """,
            message_contains="when it is set",
        ),
        Example(
            "not the optimizers of tf_keras, which have never passed it on",
            """\
            import tf_keras

            opt = tf_keras.mixed_precision.LossScaleOptimizer(tf_keras.optimizers.SGD(0.1))
            opt.momentum = 0.5
            """,
        ),
        Example(
            "not an attribute of self",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Wrapper:
                def lr(self):
                    return self._optimizer.lr
            """,
        ),
        Example(
            "not an assignment",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            opt._optimizer = other
            """,
        ),
        edited(
            "on the shim where the program reads a config",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8.0)
            + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8.0)
              print(opt.get_config()["loss_scale"])
            """,
            message_contains="go to the shim",
        ),
    ),
    "version-guard": (
        edited(
            "a loop that only old versions enter",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

              while tf.__version__ < "2.4":
            -     opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            +     opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
                  break
            """,
            Safety.MANUAL,
            message_contains="nothing here scales the loss",
        ),
        edited(
            "a name that the old branch uses keeps its arguments",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

            - LossScaleOptimizer = tf.keras.mixed_precision.experimental.LossScaleOptimizer
            + LossScaleOptimizer = tfls.keras.mixed_precision.experimental.LossScaleOptimizer

              if tuple(int(n) for n in tf.__version__.split(".")[:2]) >= (2, 4):
                  opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
              else:
                  opt = LossScaleOptimizer(opt, "dynamic")
            """,
            Safety.MANUAL,
            message_contains="removable",
        ),
    ),
    "namespace-as-value": (
        reported(
            "an import of a private module that current TensorFlow lacks",
            """\
            from tensorflow.python.keras.mixed_precision.experimental import (
                device_compatibility_check,
            )
            """,
            message_contains="no such name",
        ),
        Example(
            "not the final module",
            """\
            import tensorflow as tf

            setup(tf.keras.mixed_precision)
            """,
        ),
        edited(
            "a module under a name that only other files read",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - mp = tf.keras.mixed_precision.experimental
            + mp = tfls.keras.mixed_precision.experimental
            """,
        ),
        edited(
            "what binds a name, and not its uses, where it is not always the module",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              def main(mp=None):
                  if mp is None:
            -         mp = tf.keras.mixed_precision.experimental
            +         mp = tfls.keras.mixed_precision.experimental
                  use(mp)

              def nested(context):
                  with context as mp:
                      use(mp)
            -     mp = tf.contrib.mixed_precision
            +     mp = tfls.contrib.mixed_precision
                  use(mp)

              def chosen(other, flag):
                  if flag:
            -         mp = tf.contrib.mixed_precision
            +         mp = tfls.contrib.mixed_precision
                  else:
                      mp = other.mixed_precision
                  use(mp)
            """,
        ),
        reported(
            "a module below a name that is not always TensorFlow's",
            """\
            import tensorflow as tf
            import other

            K = tf.keras.mixed_precision if flag else other
            use(K.experimental)
            """,
            message_contains="this name can mean",
        ),
        edited(
            "a name of the module that is replaced",
            """
              from unittest import mock
            - import tensorflow as tf
            + import tf_lossscale as tfls

            - with mock.patch.object(tf.keras.mixed_precision.experimental, "set_policy"):
            + with mock.patch.object(tfls.keras.mixed_precision.experimental, "set_policy"):
                  pass
            """,
        ),
        Example(
            "not a module with other contents",
            """\
            import tensorflow as tf

            setup(tf.train.experimental, "mixed_precision")
            """,
        ),
    ),
    "strings": (
        reported(
            "a fetch by name",
            """\
            import tensorflow as tf
            from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

            manager = FixedLossScaleManager(128)
            scale = graph.get_tensor_by_name("tower/loss_scale:0")
            """,
            message_contains="is a handle",
        ),
        reported(
            "a fetch of the value that a variable of TensorFlow 1 is read as",
            """\
            import tensorflow as tf
            from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

            manager = FixedLossScaleManager(128)
            scale = graph.get_tensor_by_name("tower/loss_scale/read:0")
            """,
            message_contains="fetch the tensor",
        ),
        Example(
            "not a name that all versions have, for the shim",
            """\
            import tensorflow as tf

            is_scaled = type(opt).__name__ == "MixedPrecisionLossScaleOptimizer"
            """,
            target=Target.SHIM,
        ),
    ),
    "keras3-compiled-optimizer": (
        Example(
            "not the optimizer of a checkpoint",
            """\
            import tensorflow as tf

            class Trainer:
                def __init__(self, opt):
                    self.saved = tf.train.Checkpoint(optimizer=opt)

                def scaled(self, loss):
                    return self.saved.optimizer.get_scaled_loss(loss)
            """,
            keras=3,
        ),
        Example(
            "not where the optimizer is always wrapped before compile",
            """\
            import tensorflow as tf
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            class Scaled(tf.keras.Model):
                def train_step(self, data):
                    return self.optimizer.get_scaled_loss(self.loss_of(data))

            model = Scaled()
            model.compile(LossScaleOptimizer(tf.keras.optimizers.SGD()))
            """,
            keras=3,
        ),
        reported(
            "the loss scale of a compiled model",
            """\
            from tensorflow.keras import mixed_precision

            mixed_precision.set_global_policy("mixed_float16")
            model.compile("sgd", "mse")
            print(float(model.optimizer.loss_scale))
            """,
            keras=3,
            message_contains="no loss_scale",
        ),
        Example(
            "not the loss scale of a configuration",
            """\
            from tensorflow.keras import mixed_precision

            mixed_precision.set_global_policy("mixed_float16")
            scale = config.optimizer.loss_scale
            """,
            keras=3,
        ),
    ),
    "keras3-methods": (
        Example(
            "not a check for what the file itself makes, under another name",
            """\
            from tf_lossscale.keras.mixed_precision import from_loss_scale as wrapped
            import tensorflow as tf

            def make(base, scale):
                return wrapped(base, scale)

            opt = make(tf.keras.optimizers.SGD(0.1), 8.0)
            if hasattr(opt, "get_scaled_loss"):
                loss = opt.get_scaled_loss(loss)
            """,
            keras=3,
        ),
        reported(
            "never scaled, beside a flag called scale_loss",
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            loss = loss * 2.0 if FLAGS.scale_loss else loss
            opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
            """,
            keras=3,
            message_contains="inner_optimizer",
        ),
        reported(
            "a check beside load_model, which may make another optimizer",
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            model = tf.keras.models.load_model(path)

            def scaled(optimizer, loss):
                if hasattr(optimizer, "get_scaled_loss"):
                    return optimizer.get_scaled_loss(loss)
                return loss
            """,
            keras=3,
            message_contains="isinstance",
        ),
        Example(
            "not a check for another attribute",
            """\
            print("get_scaled_loss")
            names = getattr(opt, "names", "get_scaled_loss")
            """,
            keras=3,
        ),
        Example(
            "not beside scale_loss of the optimizer",
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            loss = opt.scale_loss(loss)
            opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
            """,
            keras=3,
        ),
        Example(
            "not where the file makes the optimizer, which becomes the shim's",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            if hasattr(opt, "get_scaled_loss"):
                loss = opt.get_scaled_loss(loss)
            """,
            keras=3,
        ),
        Example(
            "not an optimizer without loss scaling",
            """\
            from tensorflow.keras.mixed_precision import Policy

            opt = SGD()
            opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
            """,
            keras=3,
        ),
        edited(
            "on Keras 2, where fit calls it",
            """
            - from tensorflow.keras.mixed_precision import LossScaleOptimizer
            + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

              class Logging(LossScaleOptimizer):
                  def get_scaled_loss(self, loss):
                      return super().get_scaled_loss(loss)
            """,
        ),
    ),
    "v1-loss-scales": (
        edited(
            "on the shim where one of several optimizers is Keras's",
            """
              import tensorflow as tf
            + import tf_lossscale as tfls

              OPTIMIZERS = {"sgd": tf.compat.v1.train.GradientDescentOptimizer}

              def wrap(name):
                  opt = OPTIMIZERS[name](0.1) if name in OPTIMIZERS else tf.keras.optimizers.SGD()
            -     return tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            +     return tfls.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            """,
            message_contains="2.11",
        ),
        edited(
            "on the shim where the optimizer is a parameter",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              def wrap(optimizer):
            -     return tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)
            +     return tfls.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)
            """,
            message_contains="cannot be determined",
        ),
        edited(
            "on the shim where one path uses it as an optimizer of tf.train",
            """
            - import tensorflow as tf
            + import tf_lossscale as tfls

              def train(opt, loss, step):
            -     opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            +     opt = tfls.train.experimental.enable_mixed_precision_graph_rewrite(opt)
                  if step is not None:
                      return opt.minimize(loss, global_step=step)
                  return opt
            """,
        ),
        edited(
            "a v1 optimizer",
            """
              import tensorflow as tf

              opt = tf.compat.v1.train.AdamOptimizer()
            - opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt, 128)
            + opt = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt, 128)
            """,
        ),
        edited(
            "called only for its side effect",
            """
              import tensorflow as tf

              class LAMBOptimizer(tf.compat.v1.train.Optimizer):
                  pass

            - dummy_op = tf.train.experimental.enable_mixed_precision_graph_rewrite(
            -     LAMBOptimizer(learning_rate=0.0), tf.train.experimental.FixedLossScale(1)
            + dummy_op = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(
            +     LAMBOptimizer(learning_rate=0.0), tf.compat.v1.mixed_precision.FixedLossScale(1)
              )
            """,
        ),
        edited(
            "an annotation under TYPE_CHECKING",
            """
              from typing import TYPE_CHECKING

              if TYPE_CHECKING:
            -     from tensorflow.python.training.experimental.loss_scale import LossScale
            +     from tf_lossscale.train.experimental import LossScale

              def update(scale: 'LossScale'):
                  scale.update([])
            """,
            target=Target.SHIM,
        ),
    ),
    "gradients-past-optimizer": (
        reported(
            "not with a cross-shard optimizer, which sums the gradients on purpose",
            """\
            import tensorflow.compat.v1 as tf

            def train(opt, loss, variables):
                opt = tf.tpu.CrossShardOptimizer(opt)
                gradients = tf.gradients(loss, variables)
                return opt.apply_gradients(zip(gradients, variables))
            """,
            Safety.SAFE,
            message_contains="needs a TPU",
        ),
    ),
}


def all_examples() -> Iterator[Tuple[Rule, Example]]:
    """Every example with its rule: those of its file, then the further ones."""
    for rule in rules():
        for example in [*rule.examples, *EXAMPLES.get(rule.slug, ())]:
            yield rule, example
