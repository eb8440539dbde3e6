"""The traps that codemods fall into, each once: what must be left, and what must come out right."""

import operator
import sys

import pytest
from tf_lossscale_codemods.rules.rule import examples
from verbs import check

NO_OPS = examples('''
    # strings, comments and docstrings that name a symbol
      """Uses tf.contrib.tpu.CrossShardOptimizer."""
      import tensorflow as tf

      NAMES = ["use tf.contrib.tpu.CrossShardOptimizer", "LossScale"]  # LossScaleManager

    # both npu_bridge and TensorFlow in one file
      import tensorflow as tf
      from npu_bridge.npu_init import *

      manager = FixedLossScaleManager(loss_scale=2 ** 10)
      opt = NPULossScaleOptimizer(tf.train.AdamOptimizer(), manager)
    ''')

LEFT = examples("""
    # a name that is bound to two things
    > safe: use tfls.contrib
    - import tensorflow as tf
    + import tf_lossscale as tfls

      if fp16:
    -     Wrapper = tf.contrib.mixed_precision.LossScaleOptimizer
    +     Wrapper = tfls.contrib.mixed_precision.LossScaleOptimizer
      else:
          Wrapper = make_wrapper()
      opt = Wrapper(opt, manager)

    # one place of a symbol holds back the others
    > safe: at run time
      import tensorflow as tf
    - LSO = tf.keras.mixed_precision.experimental.LossScaleOptimizer
    + from tf_lossscale.keras.mixed_precision import from_loss_scale
    + LSO = tf.keras.mixed_precision.LossScaleOptimizer

    - first = LSO(first, "dynamic")
    - second = LSO(second, tf.train.experimental.DynamicLossScale(4.0, 9, 4))
    - print(first.loss_scale(), isinstance(first, LSO))
    + first = LSO(first)
    + second = from_loss_scale(second, tf.compat.v1.mixed_precision.DynamicLossScale(4.0, 9, 4))
    + print(first.loss_scale, isinstance(first, LSO))

    # a loss scale that is read after it was wrapped
      import tensorflow as tf
    - from tensorflow.keras.mixed_precision import experimental as prec
    + from tf_lossscale.keras import mixed_precision as prec

      def build(opt):
    -     scale = tf.mixed_precision.experimental.DynamicLossScale()
    -     opt = prec.LossScaleOptimizer(opt, scale)
    +     scale = tf.compat.v1.mixed_precision.DynamicLossScale()
    +     opt = prec.from_loss_scale(opt, scale)
          return opt, scale()

    # a policy of a module that a caller passes, or a function returns
    > manual: statically
      def configure(tf):
          tf.keras.mixed_precision.experimental.set_policy("mixed_float16")

      loaded = load("tensorflow")
      loaded.keras.mixed_precision.experimental.set_policy("mixed_float16")
    """)

REWRITES = examples('''
    # an import that another module may take from here
      import tensorflow as tf
      from tensorflow.compat.v1.mixed_precision import FixedLossScale as scaler

      __all__ = ["scaler"]
    - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, scaler(2.0))
    + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=2.0)

    # an import left for names that are not ours
    - from tensorflow.contrib import layers, mixed_precision as mp, tpu
    + from tensorflow.contrib import layers
    + from tf_lossscale.contrib import mixed_precision as mp
    + from tensorflow.compat.v1 import tpu

      opt = tpu.CrossShardOptimizer(mp.LossScaleOptimizer(opt, mp.FixedLossScaleManager(8)))
      layers.optimize_loss(opt)

    # one-line suites
    > --to shim
      def wrap(opt):
    -     if tpu: import tensorflow as tf; opt = tf.contrib.tpu.CrossShardOptimizer(opt)
    +     if tpu: import tf_lossscale as tfls; opt = tfls.contrib.tpu.CrossShardOptimizer(opt)
          return opt

    # the only statement of a block
      import tensorflow as tf

      def wrap(opt, fp16):
          if fp16:
    -         scale = "dynamic"
    -     return tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, scale)
    +         pass
    +     return tf.keras.mixed_precision.LossScaleOptimizer(opt)

    # after a docstring and a future import
      """Trains."""
      from __future__ import absolute_import

    - import tensorflow as tf
    + import tf_lossscale as tfls

    - opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
    + opt = tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)

    # TensorFlow bound by either arm of a try
      try:
          import tensorflow.compat.v1 as tf
    +     import tf_lossscale as tfls
      except ImportError:
          import tensorflow as tf
    +     import tf_lossscale as tfls

    - opt = tf.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
    + opt = tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)
      tf.Session()

    # a module alias whose last use goes
      import tensorflow as tf
    - scales = tf.train.experimental

      opt = tf.keras.optimizers.SGD()
    - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
    -     opt, scales.DynamicLossScale(8)
    + opt = tf.keras.mixed_precision.LossScaleOptimizer(
    +     opt, initial_scale=8
      )

    # a comment inside a chain of attributes
      import tensorflow as tf

    - opt = (tf.keras.mixed_precision
    -        # the experimental one
    -        .experimental.LossScaleOptimizer(opt, "dynamic"))
    + opt = (tf.keras.mixed_precision  # the experimental one
    +     .LossScaleOptimizer(opt))

    # dotted imports go with the uses that need them
      import tensorflow
    + import tf_lossscale as tfls
      import tensorflow.contrib.resampler
    - import tensorflow.contrib.mixed_precision
    - import tensorflow.contrib.tpu

    - opt = tensorflow.contrib.tpu.CrossShardOptimizer(opt)
    - opt = tensorflow.contrib \\
    + opt = tensorflow.compat.v1.tpu.CrossShardOptimizer(opt)
    + opt = tfls.contrib \\
          .mixed_precision.LossScaleOptimizer(opt, manager)

    # comments above an import that goes
      import os
      # the framework
    - import tensorflow as tf  # noqa
    + import tf_lossscale as tfls  # noqa

    - print(os.name, tf.contrib.mixed_precision.FixedLossScaleManager(8))
    + print(os.name, tfls.contrib.mixed_precision.FixedLossScaleManager(8))

    # a plain loop stays on the shim if its optimizer comes from a caller
    > --keras 3, --unsafe
      import tensorflow as tf
    + import tf_lossscale as tfls

    - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
    + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)

      def step(opt):
          with tf.GradientTape() as tape:
              loss = opt.get_scaled_loss(loss_of())
          grads = tape.gradient(loss, variables)
          grads = opt.get_unscaled_gradients(grads)
          opt.apply_gradients(zip(grads, variables))

    # an imported flag says nothing about the version
      try:
          from typing import TYPE_CHECKING
          import tensorflow as tf

          if TYPE_CHECKING:
    -         scale = tf.train.experimental.FixedLossScale(2.0)
    +         scale = tf.compat.v1.mixed_precision.FixedLossScale(2.0)
      except ImportError:
          raise SystemExit("this needs TensorFlow")

    # imports that become equal in blocks of their own
      try:
    -     from tensorflow.python.keras.mixed_precision.experimental import policy
    +     from tf_lossscale.keras.mixed_precision import experimental
      except ImportError:
    -     from tensorflow.python.keras.mixed_precision.experimental import policy
    +     from tf_lossscale.keras.mixed_precision import experimental

    - policy.set_policy('mixed_float16')
    + experimental.set_policy('mixed_float16')
    ''')

NEWER = examples("""
    # a match statement
    - import tensorflow as tf
    + import tf_lossscale as tfls

      match opt:
    -     case tf.keras.mixed_precision.experimental.LossScaleOptimizer():
    +     case tfls.keras.mixed_precision.experimental.LossScaleOptimizer():
              opt = opt.inner_optimizer
          case {"opt": opt, **rest}:
              pass
    """)


name = operator.attrgetter("id")


@pytest.mark.parametrize("example", [*NO_OPS, *LEFT, *REWRITES], ids=name)
def test_trap(example):
    check(example)


@pytest.mark.skipif(
    sys.version_info < (3, 10), reason="the examples need Python 3.10 to be checked"
)
@pytest.mark.parametrize("example", NEWER, ids=name)
def test_newer_syntax(example):
    check(example)
