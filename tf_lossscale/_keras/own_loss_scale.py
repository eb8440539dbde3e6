"""The `DynamicLossScale` that holds the state of an experimental optimizer."""

from typing import Any

from tf_lossscale._v1.loss_scales import DynamicLossScale
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.keras_2 import EXPERIMENTAL_SHARES_LOSS_SCALE

__all__ = ["own_loss_scale"]


def own_loss_scale(loss_scale: Any) -> Any:
    """Returns what holds the state of an optimizer that is given `loss_scale`.

    As with the original of each TensorFlow, that is `loss_scale` itself up to 2.3, so that all
    optimizers made with it share its state. Later it is a copy of its current state. (The original
    begins at the initial state again.) In a graph the current state is not known when the optimizer
    is made, so the copy has the initial state.

    Args:
      loss_scale: a `DynamicLossScale`, ours or the installed TensorFlow's.
    """
    if EXPERIMENTAL_SHARES_LOSS_SCALE:
        return loss_scale
    with tf.init_scope():  # an optimizer may be made while a function is traced
        own = DynamicLossScale(loss_scale.initial_loss_scale, loss_scale.increment_period)
        if tf.executing_eagerly():
            _copy_state(loss_scale, own)
    return own


def _copy_state(used: Any, own: DynamicLossScale) -> None:
    scale, steps = float(used()), int(tf.convert_to_tensor(used._num_good_steps))
    # Not `initial_loss_scale`: a subclass may override it, and then the copy begins there.
    if (scale, steps) != (used._initial_loss_scale, 0):
        own._current_loss_scale.assign(scale)
        own._num_good_steps.assign(steps)
