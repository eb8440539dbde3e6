"""The loss scale that an optimizer of Keras 2 holds."""

from typing import Any, Optional, Tuple

from tf_lossscale._core.update_rules import dynamic_update
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.checkpoints import Trackable

__all__ = ["DynamicState", "FixedState", "make_state"]


class FixedState(Trackable):
    """A scale that never changes and saves nothing.

    Args:
      scale: the scale.
    """

    dynamic = False
    counter: Optional[Any] = None
    growth_steps: Optional[int] = None

    def __init__(self, scale: float) -> None:
        self.initial_scale = scale

    def __call__(self) -> Any:
        """Returns the scale: a float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self.initial_scale, dtype=tf.float32)

    def __float__(self) -> float:
        return float(self.initial_scale)

    def update(self, grads: Any) -> Tuple[Any, bool]:
        """Returns what the `_loss_scale` of the original does: nothing to run, and True."""
        return (None if tf.executing_eagerly() else tf.no_op()), True


class DynamicState:
    """A scale that follows the gradients, kept by a `DynamicLossScale`, ours or TensorFlow's.

    Args:
      loss_scale: holds the two variables, and is what a checkpoint finds as `loss_scale`.
    """

    dynamic = True

    def __init__(self, loss_scale: Any) -> None:
        self.loss_scale = loss_scale

    @property
    def initial_scale(self) -> float:
        """The scale that it began with."""
        return float(self.loss_scale.initial_loss_scale)

    @property
    def growth_steps(self) -> int:
        """Finite steps in a row before the scale doubles."""
        return int(self.loss_scale.increment_period)

    @property
    def counter(self) -> Any:
        """The int64 variable that counts finite steps."""
        return self.loss_scale._num_good_steps

    @property
    def scale(self) -> Any:
        """The float32 variable that holds the scale."""
        return self.loss_scale._current_loss_scale

    def __call__(self) -> Any:
        """Returns the scale as it is now: a float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self.scale)

    def update(self, grads: Any) -> Tuple[Any, Any]:
        """Updates the scale as the `_loss_scale` of the original does.

        Args:
          grads: unscaled gradients.

        Returns:
          An operation, and whether to apply the gradients.
        """
        return self.loss_scale.update(grads)

    def __getattr__(self, name: str) -> Any:
        # Programs read `optimizer._loss_scale`, which was a `DynamicLossScale` up to 2.3.
        if name == "loss_scale" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loss_scale, name)

    @do_not_convert
    def advance(self, finite: Any) -> Any:
        """Takes note of a step, in a cross-replica context.

        Args:
          finite: bool tensor of shape `[]`.

        Returns:
          The operation; None in eager mode.
        """
        # "cond" although there is no conditional: see `DynamicLossScale.update`.
        with tf1.name_scope(None, "cond"):
            return dynamic_update(self.scale, self.counter, finite, self.growth_steps, 2.0)


def make_state(loss_scale: Any) -> Any:
    """Returns the state for a loss scale.

    Args:
      loss_scale: a float, which is fixed, or a `DynamicLossScale`.
    """
    return FixedState(loss_scale) if isinstance(loss_scale, float) else DynamicState(loss_scale)


class Keras3State:
    """The scale of an optimizer of Keras 3, in the variables that Keras 3 saves.

    Args:
      optimizer: has `dynamic_scale`, `step_counter`, `initial_scale` and `dynamic_growth_steps`.
    """

    def __init__(self, optimizer: Any) -> None:
        self._scale = optimizer.dynamic_scale
        self._counter = optimizer.step_counter
        self._initial_scale = optimizer.initial_scale
        self._growth_steps = optimizer.dynamic_growth_steps

    @property
    def dynamic(self) -> bool:
        """Whether the scale follows the gradients."""
        return self._growth_steps is not None

    @property
    def counter(self) -> Any:
        """The TensorFlow variable that counts finite steps."""
        return self._counter.value

    def __call__(self) -> Any:
        """Returns the scale as it is now: a float32 tensor of shape `[]`."""
        if not self.dynamic:
            return tf.convert_to_tensor(self._initial_scale, dtype=tf.float32)
        return tf.convert_to_tensor(self._scale.value)

    @do_not_convert
    def advance(self, finite: Any) -> Any:
        """Takes note of a step, by Keras 2's rule, which has a floor and a ceiling.

        Args:
          finite: bool tensor of shape `[]`.
        """
        scale, counter = self._scale.value, self._counter.value
        return dynamic_update(scale, counter, finite, self._growth_steps, 2.0)
