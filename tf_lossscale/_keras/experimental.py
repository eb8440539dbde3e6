"""`tf.keras.mixed_precision.experimental.LossScaleOptimizer` of TensorFlow 2.8, on every Keras."""

from typing import TYPE_CHECKING, Any

from tf_lossscale._core.given_loss_scale import (
    fixed_loss_scale,
    given_away,
    own_loss_scale,
    read_as_tensor,
)
from tf_lossscale._core.loss_scales import is_standard
from tf_lossscale._keras.arguments import as_final_arguments, check_inner, experimental_loss_scale
from tf_lossscale._keras.classes import serialized_like_the_installed, with_installed_experimental
from tf_lossscale._keras.final import LossScaleOptimizer as _Final
from tf_lossscale._versions.keras import keras_family
from tf_lossscale._versions.keras_optimizers import EXPERIMENTAL_SHARES_LOSS_SCALE

if TYPE_CHECKING:
    from tf_lossscale._keras.final import LossScaleOptimizer as _Base
else:
    _Base = with_installed_experimental(_Final)

__all__ = ["LossScaleOptimizer", "from_loss_scale", "of_graph_rewrite"]


@serialized_like_the_installed
class LossScaleOptimizer(_Base):
    """The loss-scale optimizer of TensorFlow 1.14 to 2.8, which takes a loss scale, on every Keras.

    Stands for `tf.keras.mixed_precision.experimental.LossScaleOptimizer`, TensorFlow 2.8.

    It is the final class with the constructor of TensorFlow 2.8. The loss is multiplied by the
    scale, and the gradients are divided by it. A dynamic scale skips steps with non-finite
    gradients.
    The `loss_scale` property is a tensor. Up to TensorFlow 2.3 it is the `LossScale` that was
    passed, which is called for its value, and also converts to a tensor of it.

    State: that of the final class. If a `DynamicLossScale` is passed, the scale begins at its
    `initial_loss_scale`, and the object itself does not change. Up to TensorFlow 2.3 its variables
    are the scale and the counter of every optimizer that is made with it. A `LossScale` of your own
    class is used itself, on every version. On each replica, its `update()` gets the gradients of
    that replica, and decides whether they are applied.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> weight = tf.Variable(1.0)
      >>> optimizer = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(
      ...     tf.keras.optimizers.SGD(0.5), "dynamic")
      >>> step = optimizer.minimize(lambda: weight * 1.0, [weight])
      >>> float(weight.numpy()), float(optimizer.loss_scale)
      (0.5, 32768.0)

    Args:
      optimizer: a Keras optimizer, which must not be a loss-scale optimizer or already be wrapped
        in one.
      loss_scale: `"dynamic"`, a number, or a `LossScale`.

    Raises:
      TypeError: `optimizer` is not a Keras optimizer, or is a LossScaleOptimizer.
      ValueError: `optimizer` is already wrapped; or `loss_scale` is None or any other value.
    """

    role = "experimental"

    if EXPERIMENTAL_SHARES_LOSS_SCALE:

        @property
        def loss_scale(self) -> Any:
            """The `LossScale` that was passed, which also converts to a tensor of its value."""
            return self._state.loss_scale

        _loss_scale = loss_scale

    def __init__(self, optimizer: Any, loss_scale: Any) -> None:
        family = check_inner(optimizer)
        scale = experimental_loss_scale(loss_scale)
        if EXPERIMENTAL_SHARES_LOSS_SCALE:
            scale = read_as_tensor(fixed_loss_scale(scale) if isinstance(scale, float) else scale)
        elif is_standard(scale, "DynamicLossScale") and not isinstance(loss_scale, str):
            given_away(scale)
            if family.kind != "keras3":
                scale = own_loss_scale(scale)
        self._wrap(optimizer, family, scale)


def from_loss_scale(optimizer: Any, loss_scale: Any) -> Any:
    """Wraps `optimizer` in the final `LossScaleOptimizer`, with the scaling that `loss_scale` sets.

    Args:
      optimizer: a Keras optimizer.
      loss_scale: `"dynamic"`, a number, or a `LossScale`.

    Returns:
      The wrapped optimizer. It is of the experimental class, which is a subclass of the final one,
      for a `DynamicLossScale` whose multiplier is not 2, and for a `LossScale` of your own class.

    Raises:
      TypeError: `optimizer` cannot be wrapped.
      ValueError: `optimizer` is already wrapped, or `loss_scale` is None or any other value.
    """
    scale = experimental_loss_scale(loss_scale)
    arguments = as_final_arguments(scale)
    if arguments is None:
        return LossScaleOptimizer(optimizer, scale)
    if arguments.get("dynamic", True):
        given_away(scale)
    return _Final(optimizer, **arguments)


def of_graph_rewrite(optimizer: Any, loss_scale: Any) -> Any:
    """Wraps `optimizer` like `from_loss_scale`, but as the graph rewrite does up to TensorFlow 2.8.

    There it is in the experimental class whatever the loss scale.
    """
    family = keras_family(optimizer)
    if family is not None and family.installed_experimental is not None:
        return LossScaleOptimizer(optimizer, loss_scale)
    return from_loss_scale(optimizer, loss_scale)
