"""`tf.keras.mixed_precision.LossScaleOptimizer` of TensorFlow 2.4, on every Keras."""

from typing import TYPE_CHECKING

from tf_lossscale._keras.classes import implementation, serialized_like_the_installed
from tf_lossscale._keras.registration import register_with_every_keras
from tf_lossscale._versions import default_family

if TYPE_CHECKING:
    from tf_lossscale._keras.legacy import OptimizerV2Wrapper as _Implementation
else:
    _Implementation = implementation(default_family())

__all__ = ["LossScaleOptimizer"]


@serialized_like_the_installed
class LossScaleOptimizer(_Implementation):
    """An optimizer that applies loss scaling, to keep small float16 gradients from becoming zero.

    Stands for `tf.keras.mixed_precision.LossScaleOptimizer` as TensorFlow 2.4 documents it, for
    Keras 2 and Keras 3 optimizers. The loss is multiplied by a scale before the gradients are
    taken, and the gradients are divided by it before they are applied. A dynamic scale doubles
    after `dynamic_growth_steps` steps with finite gradients; a step with a gradient that is not
    finite is skipped (weights and slots stay, `iterations` goes on) and halves the scale, not
    below 1. A fixed scale skips nothing.

    In a loop of your own::

        with tf.GradientTape() as tape:
            loss = loss_fn(model(x), y)
            scaled_loss = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled_loss, model.trainable_variables)
        gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))

    Args:
      inner_optimizer: a Keras optimizer. It must not scale the loss, nor be wrapped elsewhere.
      dynamic: whether the scale follows the gradients.
      initial_scale: the scale to begin with, or the fixed scale; `2 ** 15` if None.
      dynamic_growth_steps: finite steps in a row before the scale doubles; 2000 if None.

    Raises:
      TypeError: `inner_optimizer` is no Keras optimizer, or a LossScaleOptimizer; `dynamic` is not
        a bool.
      ValueError: `inner_optimizer` is wrapped already; `initial_scale` is missing although
        `dynamic` is False; `dynamic_growth_steps` is given then, or is below 1.
    """

    role = "final"


register_with_every_keras(LossScaleOptimizer)
