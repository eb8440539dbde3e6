"""Further examples of the rules, by the slug of the rule; its own file has the first few."""

from typing import Iterator, Tuple

from tf_lossscale_codemods.rules.codes import rules
from tf_lossscale_codemods.rules.rule import Example, Rule, examples

EXAMPLES = {
    "contrib-classes": examples("""
        # unsafe where both classes use the same numbers
        > unsafe, --unsafe: checkpoints
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

        # moved to the shim where the numbers differ, even with --unsafe
        > --unsafe
        - from tensorflow.contrib import mixed_precision as mp
        + from tf_lossscale.contrib import mixed_precision as mp
          manager = mp.ExponentialUpdateLossScaleManager(2**32, 1000, 2, decr_ratio=0.5)
        """),
    "keras3-restore": examples("""
        # not in a program for the class of Keras 3
        > --keras 3
          import tensorflow as tf
          opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          loss = opt.scale_loss(loss)
          tf.train.Checkpoint(net=net, opt=opt).restore("run/ckpt-1")

        # not in a second run
        > --to shim, --keras 3
          import tensorflow as tf
          import tf_lossscale as tfls
          opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          tf.train.Checkpoint(net=net, opt=opt).restore("run/ckpt-1")

        # not of a class of the file
        > safe, --keras 3: use tfls.
          import tensorflow as tf
        + import tf_lossscale as tfls
        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          class Net(tf.Module):
              def load_weights(self, path):
                  self.restore(path)
          Net().load_weights("weights")

        # in another function
        > safe, --keras 3: tfls.checkpoints.restore(path, self.saved)
          import tensorflow as tf
        + import tf_lossscale as tfls
          class Trainer:
              def __init__(self, a):
        -         opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        +         opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
                  self.saved = tf.train.Checkpoint(step=tf.Variable(0), a=a, opt=opt)
              def resume(self, path):
                  self.saved.restore(path)

        # a manager that restores
        > safe, --keras 3: tfls.checkpoints.restore(manager.latest_checkpoint, manager.checkpoint)
          import tensorflow as tf
        + import tf_lossscale as tfls
        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          saved = tf.train.Checkpoint(net=net, opt=opt)
          manager = tf.train.CheckpointManager(saved, "run", 3)
          manager.restore_or_initialize()

        # a whole model
        > safe, --keras 3: build the model, and write tfls.checkpoints.restore("run.h5"
          import tensorflow as tf
        + import tf_lossscale as tfls
          from tensorflow.keras.models import load_model
        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          net = load_model("run.h5")

        # a Saver
        > safe, --keras 3: tf.train.load_checkpoint(path).get_tensor(name)
          import tensorflow as tf
        + import tf_lossscale as tfls
        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
          saver = tf.compat.v1.train.Saver()
          saver.restore(session, path)
        """),
    "keras-experimental-loss-scale-optimizer": examples("""
        # a comment stays, once
          import tensorflow as tf
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
        + opt = tf.keras.mixed_precision.LossScaleOptimizer(
              opt,  # as before
        -     tf.train.experimental.DynamicLossScale(1024.0, 500),
        +     initial_scale=1024.0, dynamic_growth_steps=500,
          )

        # at run time where two optimizers share one loss scale
        > safe: at run time
          import tensorflow as tf
        - from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
        + from tf_lossscale.keras.mixed_precision import from_loss_scale
        - scale = tf.train.experimental.DynamicLossScale()
        - first = LossScaleOptimizer(first, scale)
        - second = LossScaleOptimizer(second, scale)
        + scale = tf.compat.v1.mixed_precision.DynamicLossScale()
        + first = from_loss_scale(first, scale)
        + second = from_loss_scale(second, scale)

        # arguments of both classes
        > safe: go to the shim
        - import tensorflow as tf
        + import tf_lossscale as tfls
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
        + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(
              opt, dynamic=True, loss_scale="dynamic"
          )

        # on the shim beside a suppressed isinstance check
          from tensorflow.keras.mixed_precision import experimental as prec
        + import tf_lossscale as tfls
        - opt = prec.LossScaleOptimizer(opt, "dynamic")
        + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
          if isinstance(opt, prec.LossScaleOptimizer):  # lossscale: ignore[LS301] 2.3 only
              scale = True
        """),
    "keras-loss-scale-call": examples("""
        # not a value that is kept, on the shim
        > --to shim
          from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer
          opt = LossScaleOptimizer(opt, "dynamic")
          before = opt.loss_scale()
          logs.update(scale=opt.loss_scale())

        # a test for an attribute of loss scales
        > manual: opt._loss_scale.multiplier
          from tf_lossscale.keras.mixed_precision import LossScaleOptimizer
          opt = LossScaleOptimizer(opt)
          print(hasattr(opt.loss_scale, "multiplier"))

        # not a test for what both forms have
          from tf_lossscale.keras.mixed_precision import LossScaleOptimizer
          opt = LossScaleOptimizer(opt)
          scale = opt.loss_scale.numpy() if hasattr(opt.loss_scale, "numpy") else opt.loss_scale

        # the methods of a loss scale, on the shim
        > manual, --to shim: opt._loss_scale.update
          from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer
          opt = LossScaleOptimizer(opt, "dynamic")
          opt.loss_scale.update(gradients)

        # a loss scale that getattr reads
          import tensorflow as tf
          from tensorflow.keras.mixed_precision import LossScaleOptimizer
          opt = LossScaleOptimizer(opt)
        - print(getattr(opt, "loss_scale")())
        + print(getattr(opt, "loss_scale"))

        # not where each version has its own form
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

        """),
    "keras-final-loss-scale-optimizer": examples("""
        # not a Keras 3 initial scale by position
          from tensorflow.keras import mixed_precision
          opt = mixed_precision.LossScaleOptimizer(opt, 1024.0)

        # a program of keras alone, which may run on another backend
        > unsafe, --keras 3: backend
          import keras
          opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD())

        # not tf_keras, which stays Keras 2
        > --keras 3
          from tf_keras.mixed_precision import LossScaleOptimizer
          opt = LossScaleOptimizer(opt)

        # not a loop written for Keras 3
        > --keras 3
          import tensorflow as tf
          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
          with tf.GradientTape() as tape:
              loss = opt.scale_loss(loss_of(model(x), y))
        """),
    "cross-shard": examples("""
        # compat.v1 stays in the paths of the shim, but for contrib below it
        > --to shim
        - import tensorflow.compat.v1 as tf
        + import tf_lossscale as tfls
        - opt = tf.compat.v1.tpu.CrossShardOptimizer(opt)
        - opt = tf.contrib.tpu.CrossShardOptimizer(opt)
        - scale = tf.train.experimental.DynamicLossScale(8)
        + opt = tfls.compat.v1.tpu.CrossShardOptimizer(opt)
        + opt = tfls.contrib.tpu.CrossShardOptimizer(opt)
        + scale = tfls.compat.v1.train.experimental.DynamicLossScale(8)
        """),
    "policies": examples("""
        # an import that other files may read
        - from tensorflow.keras.mixed_precision.experimental import get_layer_policy
        + from tf_lossscale.keras.mixed_precision.experimental import get_layer_policy
          __all__ = ["get_layer_policy"]

        # on the shim where the policy has a fixed loss scale
        > safe: has no loss scale
        - import tensorflow as tf
        + import tf_lossscale as tfls
        - policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=8)
        + policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=8)

        # under compat.v1, which has no final policy function before 2.16
          import tensorflow.compat.v1 as tf
        - tf.compat.v2.keras.mixed_precision.experimental.set_policy("mixed_float16")
        - tf.keras.mixed_precision.experimental.set_policy("float32")
        + tf.compat.v2.keras.mixed_precision.set_global_policy("mixed_float16")
        + tf.compat.v2.keras.mixed_precision.set_global_policy("float32")

        # on the shim where None resets the policy, which Keras 3 refuses
        > safe, --keras 3: does not accept None
        - import tensorflow as tf
        - tf.keras.mixed_precision.experimental.set_policy(None)
        + import tf_lossscale as tfls
        + tfls.keras.mixed_precision.experimental.set_policy(None)

        # reported where the final function resets the policy
        > manual, --keras 3: float32
          import tensorflow as tf
          tf.keras.mixed_precision.set_global_policy(None)

        # a loss scale that is left of the experimental policy
        > safe: never took loss_scale
          import tensorflow as tf
        - policy = tf.keras.mixed_precision.Policy("mixed_float16", loss_scale="dynamic")
        + policy = tf.keras.mixed_precision.Policy("mixed_float16")

        # on the shim where None meant no scaling
        > safe: means no scaling
        - from tensorflow.keras.mixed_precision.experimental import Policy
        + from tf_lossscale.keras.mixed_precision.experimental import Policy
          policy = Policy("mixed_float16", loss_scale=None)
          other = Policy("float32")
        """),
    "unclear-origin": examples("""
        # another library's class in the other branch
        > safe: behaves as in TensorFlow 1.15
          try:
              from npu_bridge.npu_init import FixedLossScaleManager
          except ImportError:
        -     from tensorflow.contrib.mixed_precision import FixedLossScaleManager
        +     from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

          manager = FixedLossScaleManager(8)

        # a relative import of the same name
        > manual: `.optimizers`
          from .optimizers import LossScaleOptimizer
          opt = LossScaleOptimizer(opt, 'dynamic')

        # a comparison with the type of an optimizer
        > manual: use isinstance
          from compat import mp
          print(type(opt) is mp.LossScaleOptimizer)

        # modules that are kept in attributes and tables
        > manual: cannot be resolved
          import tensorflow as tf
          class Context:
              mp = tf.keras.mixed_precision

              def wrap(self, opt):
                  return self.mp.experimental.LossScaleOptimizer(opt, 2.0)

          modules = {"mp": tf.mixed_precision}
          scale = modules["mp"].experimental.FixedLossScale(9.0)

        # a place with the same text as one that a comment silences
        > manual: import `LossScaleOptimizer` by name
          def first(tf):
              tf.keras.mixed_precision.experimental.set_policy(p)  # lossscale: ignore[LS902]

          def second(tf):
              return tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")

        # not an attribute of self
          import tensorflow as tf
          class Trainer:
              def wrap(self, opt):
                  return self.LossScaleOptimizer(opt)
        """),
    "keras3-plain-loop": examples("""
        # not where a part of the step is conditional
        > --keras 3, --unsafe: LossScaleOptimizer
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
        """),
    "keras-inner-optimizer": examples("""
        # not what every version passes on, nor the same attributes of other objects
          import tensorflow as tf
          opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
          opt.learning_rate = 0.5
          layer = tf.keras.layers.BatchNormalization()
          layer.momentum = 0.5

        # not what is set in the inner optimizer
          import tensorflow as tf
          def schedule(opt, target_opt):
              opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
              opt.inner_optimizer.momentum = 0.9
              inner_opt = target_opt.inner_optimizer
              inner_opt.momentum = 0.9

        # a certain one whose name looks like an argument's
        > safe: when it is set
          import tensorflow as tf
        + import tf_lossscale as tfls
        - target_opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
        + target_opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
          setattr(target_opt, "momentum", 0.5)

        # whatever a loop sets
        > safe: does not pass `name` on
          import tensorflow as tf
        + import tf_lossscale as tfls
        - opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
          for name, value in changes.items():
              setattr(opt, name, value)

        # not parsed options, an inner optimizer by its name, or what a test unwraps
          import tensorflow as tf
          opt = TrainOptions().parse()
          opt.momentum = 0.5
          base_optimizer = build(opt)
          optimizer = tf.keras.mixed_precision.LossScaleOptimizer(base_optimizer)
          base_optimizer.momentum = 0.3
          getattr(optimizer, "inner_optimizer", optimizer).momentum = 0.2

        # an optimizer that a property returns
        > safe: when it is set
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

        # on the shim where the program reads a config
        > safe: go to the shim
        - import tensorflow as tf
        + import tf_lossscale as tfls
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8.0)
        + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, 8.0)
          print(opt.get_config()["loss_scale"])
        """),
    "namespace-as-value": examples("""
        # a module below a name that is not always TensorFlow's
        > manual: this name can mean
          import tensorflow as tf
          import other
          K = tf.keras.mixed_precision if flag else other
          use(K.experimental)

        # the names in a module that loads them on first use
        > manual: getattr(tfls.contrib.mixed_precision, name)
          import tf_lossscale as tfls
          mp = tfls.contrib.mixed_precision
          print(mp.__dict__, vars(mp)["LossScaleOptimizer"], getattr(mp, "LossScaleOptimizer"))

        # a name that only a private module has, whose import stays
        > manual, --to shim: policy has no such name
          from tensorflow.python.keras.mixed_precision.experimental import policy
        + import tf_lossscale as tfls
        - policy.set_policy("mixed_float16")
        + tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")
          with policy.policy_scope("float32"):
        -     print(policy.global_policy().name)
        +     print(tfls.keras.mixed_precision.experimental.global_policy().name)

        # a name that only a private module of contrib has, under another name
        > manual, --to shim: loss_scale_manager has no such name
          from tensorflow.contrib.mixed_precision.python import loss_scale_manager as lsm
        + import tf_lossscale as tfls
          print(lsm.abc)
        - manager = lsm.FixedLossScaleManager(8)
        + manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8)

        # a name that a module never had, which an assignment holds
        > manual, --to shim: experimental has no such name
          import tensorflow as tf
        + import tf_lossscale as tfls
          mp = tf.keras.mixed_precision.experimental
          mp.abc()
        - mp.set_policy("mixed_float16")
        + tfls.keras.mixed_precision.experimental.set_policy("mixed_float16")

        # a name that the final module of a private path has
        > manual, --to shim: is private
          from tensorflow.python.keras.mixed_precision import policy
        + import tf_lossscale as tfls
          print(policy.policy_defaults_to_floatx())
        - print(policy.Policy("float32"))
        + print(tfls.keras.mixed_precision.Policy("float32"))

        # a name that a module never had, where the module may be None
        > manual: experimental has no such name
          try:
              from tensorflow.keras.mixed_precision import experimental as mp
          except ImportError:
              mp = None
          if mp:
              mp.abc()

        # a name that a module never had, where something else replaces the module
        > manual: mixed_precision has no such name
          from tensorflow.contrib import mixed_precision as mp

          def without():
              global mp
              mp = None

          without()
          print(mp.abc, mp.FixedLossScaleManager(8))

        # not a test of a module, nor what the program sets in it
        > manual, --to shim: the program assigns to this name
          import tensorflow as tf
          print(hasattr(tf.keras.mixed_precision.experimental, "Policy"))
          tf.keras.mixed_precision.experimental.Policy = Mine
          print(getattr(tf.keras.mixed_precision.experimental, "Policy"))

        # the dictionary of a module, which keeps its name
        > manual, --to shim: __dict__
        - from tensorflow.python.keras.mixed_precision.experimental import policy
        + from tf_lossscale.keras.mixed_precision import experimental as policy
          print(policy.__dict__)
          policy.set_policy("mixed_float16")

        # a name that a module of the shim lacks
        > manual, --to shim: tfls.contrib.mixed_precision has no such name
          from tf_lossscale.contrib import mixed_precision as lsm
          print(lsm.abc)

        # a name that a branch imports from a module of the shim that lacks it
        > manual: tfls.contrib.mixed_precision has no such name
          try:
        -     from tensorflow.contrib.mixed_precision.python import loss_scale_manager
        +     from tf_lossscale.contrib import mixed_precision as loss_scale_manager
          except ImportError:
              from tf_lossscale.contrib import mixed_precision as loss_scale_manager
          print(loss_scale_manager.abc)

        # an import of a name that a module of the shim lacks
        > manual: tfls.contrib.mixed_precision has no such name
          from tf_lossscale.contrib.mixed_precision import abc

        # not what the final module of some Keras has, nor what a name of the shim's has
        > --to shim
          import tf_lossscale as tfls
          from tf_lossscale.keras.mixed_precision import allow_strategy, experimental
          opt = tfls.keras.mixed_precision.wrap(opt)
          policy = tfls.keras.mixed_precision.Policy.from_config(config)
          tfls.keras.mixed_precision.set_dtype_policy(policy)
          print(tfls.keras.mixed_precision.__name__, experimental.__name__)

        # not a module that is only asked for a name
          import tensorflow as tf
          has_rewrite = hasattr(tf.train.experimental, "enable_mixed_precision_graph_rewrite")

        # a module with other contents
        > manual: import by name
          import tensorflow as tf
          setup(tf.train.experimental, "mixed_precision")
        """),
    "tensor-names": examples("""
        # a fetch by name
        > manual: is a handle
          import tensorflow as tf
          from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager
          manager = FixedLossScaleManager(128)
          scale = graph.get_tensor_by_name("tower/loss_scale:0")
        """),
    "keras3-compiled-optimizer": examples("""
        # the optimizer of a checkpoint, which compile does not make
        > manual, --keras 3: no class of Keras 3 has get_scaled_loss
          import tensorflow as tf
          class Trainer:
              def __init__(self, opt):
                  self.saved = tf.train.Checkpoint(optimizer=opt)

              def scaled(self, loss):
                  return self.saved.optimizer.get_scaled_loss(loss)

        # the loss scale of a compiled model
        > safe, --keras 3: no loss_scale
        - from tensorflow.keras import mixed_precision
        + from tf_lossscale.keras import mixed_precision
          mixed_precision.set_global_policy("mixed_float16")
          model.compile("sgd", "mse")
          print(float(model.optimizer.loss_scale))
        """),
    "keras3-methods": examples("""
        # not a step without scaling, which means what it meant on Keras 2
        > --keras 3
          import tf_lossscale as tfls
          opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
          loss = loss * 2.0 if FLAGS.scale_loss else loss
          opt.apply_gradients(zip(tape.gradient(loss, variables), variables))

        """),
}


def all_examples() -> Iterator[Tuple[Rule, Example]]:
    """Every example with its rule: those of its file, then the further ones."""
    for rule in rules():
        for example in [*rule.examples, *EXAMPLES.get(rule.slug, ())]:
            yield rule, example
