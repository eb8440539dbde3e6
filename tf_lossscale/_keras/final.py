"""`tf.keras.mixed_precision.LossScaleOptimizer` of TensorFlow 2.4, on every Keras."""

from typing import Any, Dict, Optional

from tf_lossscale._keras.arguments import check_inner, final_loss_scale, mark_wrapped
from tf_lossscale._keras.classes import PublicClass
from tf_lossscale._keras.config import from_config
from tf_lossscale._keras.registration import register_with_every_keras

__all__ = ["LossScaleOptimizer"]


class LossScaleOptimizer(metaclass=PublicClass):
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
    inner_argument = "inner_optimizer"

    def __init__(
        self,
        inner_optimizer: Any,
        dynamic: bool = True,
        initial_scale: Optional[float] = None,
        dynamic_growth_steps: Optional[int] = None,
    ) -> None:
        check_inner(inner_optimizer)
        scale = final_loss_scale(dynamic, initial_scale, dynamic_growth_steps)
        self._set_up(inner_optimizer, scale)
        mark_wrapped(inner_optimizer)

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        raise NotImplementedError("the concrete class for each Keras does this")

    @classmethod
    def from_config(
        cls, config: Dict[str, Any], custom_objects: Optional[Dict[str, Any]] = None
    ) -> Any:
        """Makes an optimizer from what `get_config` returned, of any version.

        Args:
          config: the configuration; it is not changed.
          custom_objects: name to class, for inner optimizers that Keras does not know.

        Raises:
          ValueError: the configuration names a loss scale that only older classes can have.
        """
        return from_config(cls, config, custom_objects)


register_with_every_keras(LossScaleOptimizer)
