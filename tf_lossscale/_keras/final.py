"""`tf.keras.mixed_precision.LossScaleOptimizer` of TensorFlow 2.4, on every Keras."""

from typing import TYPE_CHECKING, Any

from tf_lossscale._import_hook import Subscriber, subscribe
from tf_lossscale._keras.classes import implementation, serialized_like_the_installed
from tf_lossscale._versions.files import (
    register_loss_scale_optimizer,
    unregister_loss_scale_optimizer,
)
from tf_lossscale._versions.keras import KERAS_PACKAGES, default_family, loaded_keras_packages

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

    The loss is multiplied by a scale before the gradients are computed, and the gradients are
    divided by it before they are applied. A dynamic scale doubles after `dynamic_growth_steps`
    consecutive steps with finite gradients, unless the doubled value would not be finite. A step
    with a non-finite gradient on any replica is skipped: weights and slots keep their values,
    `iterations` still counts the step, and the scale is halved, but not below 1. A fixed scale
    skips no step.

    State: that of `inner_optimizer`, and two non-trainable variables of shape `[]`:

    * `loss_scale` (float32), which reads as a tensor: the scale. It begins at `initial_scale` and
      is never reset. Its name in checkpoints is `current_loss_scale`; on Keras 3, `dynamic_scale`.
    * `dynamic_counter` (int64): finite steps since the last change of the scale or the last skipped
      step. Either resets it to 0. Its name in checkpoints is `good_steps`; on Keras 3,
      `step_counter`.

    A fixed scale has no counter (`dynamic_counter` is None) and stores nothing on Keras 2.

    Examples:
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
      inner_optimizer: a Keras optimizer, which must not be a loss-scale optimizer or already be
        wrapped in one.
      dynamic: whether the scale changes during training; False for a fixed scale.
      initial_scale: the initial scale, or the fixed scale; `2 ** 15` if None.
      dynamic_growth_steps: finite steps in a row before the scale doubles; 2000 if None.

    Raises:
      TypeError: `inner_optimizer` is not a Keras optimizer, or is a LossScaleOptimizer; or
        `dynamic` is not a bool.
      ValueError: `inner_optimizer` is already wrapped; `dynamic_growth_steps` is below 1; or
        `dynamic` is False, and `initial_scale` is missing or `dynamic_growth_steps` is not None.
    """

    role = "final"


class _Registration(Subscriber):
    """Registers our class with each Keras, until `uninstall()` if `install()` came before it.

    A model file contains the class name of its optimizer, and Keras looks it up in the custom
    objects first. So our class must be registered before the first file is read, which may be
    before its first instance is created. A program may also import a second Keras
    (`import tf_keras`) after our class was loaded. We never import a Keras for this; the import
    hook reports each one.
    """

    def is_of_interest(self, name: str) -> bool:
        return name in KERAS_PACKAGES

    def imported(self, name: str, module: Any) -> None:
        if name in loaded_keras_packages():
            register_loss_scale_optimizer(name, LossScaleOptimizer)

    def pause(self) -> None:
        for package in loaded_keras_packages():
            unregister_loss_scale_optimizer(package, LossScaleOptimizer)

    def resume(self) -> None:
        for package in loaded_keras_packages():
            register_loss_scale_optimizer(package, LossScaleOptimizer)


_registration = _Registration()
_registration.resume()
subscribe(_registration)
