"""`tf.keras.mixed_precision.LossScaleOptimizer` of TensorFlow 2.4, on every Keras."""

from typing import TYPE_CHECKING

from tf_lossscale._keras.classes import implementation, serialized_like_the_installed
from tf_lossscale._keras.registration import register_with_every_keras
from tf_lossscale._versions.keras import default_family

if TYPE_CHECKING:
    from tf_lossscale._keras.legacy import OptimizerV2Wrapper as _Implementation
else:
    _Implementation = implementation(default_family())

__all__ = ["LossScaleOptimizer"]


@serialized_like_the_installed
class LossScaleOptimizer(_Implementation):
    """An optimizer that applies loss scaling, to keep small float16 gradients from becoming zero.

    Stands for `tf.keras.mixed_precision.LossScaleOptimizer` as TensorFlow 2.4 documents it, for
    Keras 2 and Keras 3 optimizers.

    The loss is multiplied by a scale before the gradients are taken, and the gradients are divided
    by it before they are applied. A dynamic scale doubles after `dynamic_growth_steps` steps with
    finite gradients, unless the double is not finite. A step with a gradient that is not finite, on
    any replica, is skipped (weights and slots stay, `iterations` goes on) and halves the scale, not
    below 1. A fixed scale skips nothing.

    State: that of `inner_optimizer`, and two variables that are not trained, of shape `[]`:

    * `loss_scale` (float32) reads the scale as a tensor; begins at `initial_scale`, and nothing
      resets it. Checkpoints have it as `current_loss_scale`, on Keras 3 as `dynamic_scale`.
    * `dynamic_counter` (int64): finite steps since the last change of the scale or the last skipped
      step. Back to 0 at either. Checkpoints have it as `good_steps`, on Keras 3 as `step_counter`.

    A fixed scale has no counter (`dynamic_counter` is None) and stores nothing on Keras 2.

    >>> import tensorflow as tf
    >>> import tf_lossscale as tfls
    >>> weight = tf.Variable(1.0)
    >>> optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
    ...     tf.keras.optimizers.SGD(0.5), initial_scale=8.0)
    >>> for factor in (1.0, float("inf")):  # the second step is skipped
    ...     with tf.GradientTape() as tape:
    ...         scaled_loss = optimizer.get_scaled_loss(weight * factor)
    ...     gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled_loss, [weight]))
    ...     step = optimizer.apply_gradients(zip(gradients, [weight]))
    >>> float(weight.numpy()), float(optimizer.loss_scale), int(optimizer.iterations.numpy())
    (0.5, 4.0, 2)

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
