"""What `compile` makes of an optimizer, for programs with a loop of their own."""

from tf_lossscale._types import Optimizer
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras import keras_family


def wrap(optimizer: Optimizer) -> Optimizer:
    """Returns what `compile` of a model would use in the place of an optimizer.

    The global policy decides, as it does for a model that is created now. Under the shim's
    `"mixed_float16"`, `compile` wraps the optimizer in the shim's `LossScaleOptimizer`; under
    TensorFlow's, in TensorFlow's class; under `"float32"`, it uses the optimizer itself. An
    optimizer that already scales the loss is returned as it is. Use this in place of the private
    `Model._get_optimizer`. Under a strategy, call it in its scope, as `compile`.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> tfls.keras.mixed_precision.set_global_policy("mixed_float16")
      >>> optimizer = tfls.keras.mixed_precision.wrap(tf.keras.optimizers.SGD(0.1))
      >>> isinstance(optimizer, tfls.keras.mixed_precision.LossScaleOptimizer)
      True
      >>> tfls.keras.mixed_precision.set_global_policy("float32")
      >>> plain = tf.keras.optimizers.SGD(0.1)
      >>> tfls.keras.mixed_precision.wrap(plain) is plain
      True

    Args:
      optimizer: what `compile` takes: a Keras optimizer, or its name, such as `"adam"`.

    Raises:
      ValueError: `compile` refuses the optimizer.
    """
    family = keras_family(optimizer)
    keras = tf.keras if family is None else family.keras
    # `compile` itself, and so the same on every Keras. With a name of its own, the model does not
    # count in the names of the program's models.
    model = keras.Sequential(name="tf_lossscale_wrap")
    model.compile(optimizer)
    return model.optimizer
