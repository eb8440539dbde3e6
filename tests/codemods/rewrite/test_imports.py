"""Import statements: retargeted, dropped or added where an edit needs it."""

import pytest
from tf_lossscale_codemods.model import Options
from tf_lossscale_codemods.rules.rule import examples
from verbs import check, transformed

IMPORTS = examples("""
    # the last of several modules
    > --to shim
    - import os, tensorflow as tf
    + import os
    + import tf_lossscale as tfls

    - opt = tf.contrib.tpu.CrossShardOptimizer(opt)
    + opt = tfls.contrib.tpu.CrossShardOptimizer(opt)

    # one name of several lines
    - from tensorflow.keras.mixed_precision.experimental import (
    -     LossScaleOptimizer,
    -     Policy,
    + from tf_lossscale.keras.mixed_precision import (
    +     from_loss_scale,
      )
    + from tensorflow.keras.mixed_precision import Policy

    - opt = LossScaleOptimizer(opt, 8.0 if a else b)
    + opt = from_loss_scale(opt, 8.0 if a else b)
      policy = Policy('float32')

    # the shim is imported under another name
    > --to shim
    - import tensorflow as tf
      import tf_lossscale as s

    - opt = tf.contrib.tpu.CrossShardOptimizer(s.tpu.CrossShardOptimizer(opt))
    + opt = s.contrib.tpu.CrossShardOptimizer(s.tpu.CrossShardOptimizer(opt))

    # the new name is taken
    - from tensorflow.keras.mixed_precision.experimental import set_policy
    + from tensorflow.keras.mixed_precision import set_global_policy as set_policy

      set_policy('float32')
      set_global_policy = 1

    # the new name is bound in a function, and read
    - from tensorflow.keras.mixed_precision.experimental import set_policy
    + from tensorflow.keras.mixed_precision import set_global_policy as set_policy

      set_policy('float32')

      def f(set_global_policy):
          pass

      print(set_global_policy)

    # in __all__
    - from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
    + from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

      __all__ = [u'LossScaleOptimizer']
      opt = LossScaleOptimizer(opt, scale)

    # a dotted module that is still read
    > --to shim
      import tensorflow.contrib.tpu
    - import tensorflow.contrib.mixed_precision
    + import tf_lossscale as tfls

    - opt = tensorflow.contrib.tpu.CrossShardOptimizer(opt)
    - scale = tensorflow.contrib.mixed_precision.FixedLossScaleManager(8)
    + opt = tfls.contrib.tpu.CrossShardOptimizer(opt)
    + scale = tfls.contrib.mixed_precision.FixedLossScaleManager(8)
      tensorflow.contrib.tpu.TPUConfig()

    # a function that is imported already
      import tensorflow as tf
      from tf_lossscale.keras.mixed_precision import from_loss_scale

    - LSO = tf.keras.mixed_precision.experimental.LossScaleOptimizer
    + LSO = tf.keras.mixed_precision.LossScaleOptimizer
      first = from_loss_scale(first, scale)
    - second = LSO(second, scale)
    + second = from_loss_scale(second, scale)

    # comments of names that go stand above, and semicolons stay
    > --keras 3
    + # scales
    + # the policy
      from tensorflow.keras.mixed_precision import (  # both
          # the wrapper
    -     LossScaleOptimizer,  # scales
    -     # the policy
          Policy,  # of a layer
          # the end
      )  # noqa
    - import tensorflow.keras.mixed_precision.experimental as mp;
    - opt = mp.LossScaleOptimizer(LossScaleOptimizer, Policy)
    + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer
    + import tf_lossscale.keras.mixed_precision as mp;
    + opt = mp.from_loss_scale(LossScaleOptimizer, Policy)

    # an import of the shim below the use
    > manual, --to shim
      from tensorflow.contrib import tpu
    + import tf_lossscale

    - opt = tpu.CrossShardOptimizer(opt)
    + opt = tf_lossscale.contrib.tpu.CrossShardOptimizer(opt)
      import tf_lossscale as tfls

      print(tpu, tfls)

    # both names of the shim are taken
    > --to shim
    - import tensorflow as tf
    + import tf_lossscale as tfls2

      def f(tf_lossscale, tfls):
    -     return tf.contrib.tpu.CrossShardOptimizer(tfls)
    +     return tfls2.contrib.tpu.CrossShardOptimizer(tfls)

    # a module that is assigned to a name, whose reads all go
    > --to shim
    - import tensorflow as tf
    - c = tf.contrib
    + import tf_lossscale as tfls
    + c = tfls.contrib
      c.mixed_precision.LossScaleOptimizer(opt, manager)

    # a module that is assigned to a name and an attribute, whose reads all go
    > manual, --to shim: remove this line
      import tensorflow as tf
    + import tf_lossscale as tfls
      self.c = c = tf.contrib
    - c.mixed_precision.LossScaleOptimizer(opt, manager)
    + tfls.contrib.mixed_precision.LossScaleOptimizer(opt, manager)

    # another name of TensorFlow, whose reads all go
      import tensorflow as tf
      t = tf
    - scale = t.train.experimental.DynamicLossScale()
    + scale = t.compat.v1.mixed_precision.DynamicLossScale()

    # a name in a condition, whose reads all go
    > --to shim
    - import tensorflow as tf
    - while (c := tf.contrib):
    + import tf_lossscale as tfls
    + while (c := tfls.contrib):
          c.mixed_precision.FixedLossScaleManager(1)

    # in a class, where objects can read it
    > --to shim
      class Model:
          import tensorflow as tf
    -     wrapper = tf.contrib.tpu.CrossShardOptimizer
    +     import tf_lossscale as tfls
    +     wrapper = tfls.contrib.tpu.CrossShardOptimizer

          def one(self):
              return self.tf.constant(1)

    # a doctest reads it
    > --to shim
      '''
      >>> tf.constant(1)
      '''
      import tensorflow as tf
    + import tf_lossscale as tfls
    - opt = tf.contrib.tpu.CrossShardOptimizer(opt)
    + opt = tfls.contrib.tpu.CrossShardOptimizer(opt)

    # a comment with types reads it
    > --to shim
      import tensorflow as tf
    + import tf_lossscale as tfls
    - opt = tf.contrib.tpu.CrossShardOptimizer(opt)
    + opt = tfls.contrib.tpu.CrossShardOptimizer(opt)
      def f(a):
          # type: (tf.Tensor) -> tf.Tensor
          return a

    # a name that a function imports for the whole module
    > --to shim
      def load():
    -     global tf
    +     global tf, tfls
          import tensorflow as tf
    +     import tf_lossscale as tfls

      def wrap(opt):
          load()
    -     return tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
    +     return tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")

      print(tf)

    # a name that a function imports for the whole module, with an edit that needs no import
      def load():
          global tf
          import tensorflow as tf

      def choose():
    -     tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
    +     tf.keras.mixed_precision.set_global_policy("mixed_float16")

    # a name that a function imports for another one
    > manual, --to shim
      def wrap(opt):
          tf = None
          def load():
              nonlocal tf
              import tensorflow as tf
          load()
          return tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")

    # a function that a function imports for the whole module
      def load():
          global set_policy
    -     from tensorflow.keras.mixed_precision.experimental import set_policy
    +     from tensorflow.keras.mixed_precision import set_global_policy as set_policy

      def choose():
          load()
          set_policy("mixed_float16")

    # a symbol that a function imports for the whole module
    > --to shim
      def load():
          global FixedLossScale
    -     from tensorflow.train.experimental import FixedLossScale
    +     from tf_lossscale.train.experimental import FixedLossScale

      def scale():
          load()
          return FixedLossScale(8)
    """)


@pytest.mark.parametrize("example", IMPORTS, ids=lambda example: example.id)
def test_import(example):
    check(example)


# A rewritten place never reads an import of TensorFlow that stands below it.

BELOW = """\
from tensorflow.contrib import tpu as contrib_tpu

{use}
import tensorflow as tf

print(contrib_tpu, tf)
"""
AT_ONCE = {
    "a statement": "opt = contrib_tpu.CrossShardOptimizer(opt)\n",
    "a class": "class Settings:\n    opt = contrib_tpu.CrossShardOptimizer(opt)\n",
    "a default": "def f(kind=contrib_tpu.CrossShardOptimizer):\n    pass\n",
}
LATER = {
    "a function": "def wrap(opt):\n    return contrib_tpu.CrossShardOptimizer(opt)\n",
    "a method": "class A:\n    def f(self):\n        return contrib_tpu.CrossShardOptimizer(1)\n",
}


@pytest.mark.parametrize("use", AT_ONCE)
def test_what_runs_at_once_gets_an_import_above_it(use):
    after = transformed(BELOW.format(use=AT_ONCE[use]), Options()).source.decode()
    assert "tf.compat" not in after
    assert after.index("import tensorflow\n") < after.index("tensorflow.compat.v1.tpu.CrossShard")
    assert transformed(after, Options()).source.decode() == after


@pytest.mark.parametrize("use", LATER)
def test_what_runs_later_uses_the_import_that_is_there(use):
    after = transformed(BELOW.format(use=LATER[use]), Options()).source.decode()
    assert "tf.compat.v1.tpu.CrossShardOptimizer" in after
    assert "import tensorflow\n" not in after
