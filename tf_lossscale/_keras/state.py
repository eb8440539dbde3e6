"""The loss scale of one Keras optimizer, fixed or dynamic."""

from typing import Any, Optional, Tuple

from tf_lossscale._core.update_rules import dynamic_update
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.checkpoints import Trackable

__all__ = ["DynamicState", "FixedState", "make_state"]


class FixedState(Trackable):
    """A fixed scale, which has no variables and saves nothing.

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
        """Returns the same pair as the original's `_loss_scale.update`: a no-op and True."""
        return (None if tf.executing_eagerly() else tf.no_op()), True


class DynamicState:
    """A dynamic scale, held by a `DynamicLossScale` of ours or of TensorFlow.

    Args:
      loss_scale: the object with the two variables. Checkpoints save it as `loss_scale`.
    """

    dynamic = True

    def __init__(self, loss_scale: Any) -> None:
        self.loss_scale = loss_scale

    @property
    def initial_scale(self) -> float:
        """The initial scale."""
        return float(self.loss_scale.initial_loss_scale)

    @property
    def growth_steps(self) -> int:
        """Consecutive finite steps after which the scale doubles."""
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
        """Returns the current scale: a float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self.scale)

    def update(self, grads: Any) -> Tuple[Any, Any]:
        """Updates the scale as the original's `_loss_scale.update` does.

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
        """Updates the scale after a step, in a cross-replica context.

        Args:
          finite: bool tensor of shape `[]`: whether the gradients of the step were finite.

        Returns:
          The operation; None in eager mode.
        """
        # "cond" is only a name, there is no conditional: see `DynamicLossScale.update`.
        with tf1.name_scope(None, "cond"):
            return dynamic_update(self.scale, self.counter, finite, self.growth_steps, 2.0)


def make_state(loss_scale: Any) -> Any:
    """Returns the state for a loss scale.

    Args:
      loss_scale: a float for a fixed scale, or a `DynamicLossScale`.
    """
    return FixedState(loss_scale) if isinstance(loss_scale, float) else DynamicState(loss_scale)


class Keras3State:
    """The scale of a Keras 3 optimizer, held in the variables that Keras 3 saves.

    Args:
      optimizer: an object with the attributes `dynamic_scale`, `step_counter`, `initial_scale` and
        `dynamic_growth_steps`.
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self.dynamic: bool = optimizer.dynamic_growth_steps is not None

    @property
    def counter(self) -> Any:
        """The TensorFlow variable that counts finite steps."""
        return self._optimizer.step_counter.value

    def __call__(self) -> Any:
        """Returns the current scale: a float32 tensor of shape `[]`."""
        if not self.dynamic:
            return tf.convert_to_tensor(self._optimizer.initial_scale, dtype=tf.float32)
        return tf.convert_to_tensor(self._optimizer.dynamic_scale.value)

    @do_not_convert
    def advance(self, finite: Any) -> Any:
        """Updates the scale after a step by Keras 2's rule, which has a minimum and a maximum.

        Args:
          finite: bool tensor of shape `[]`: whether the gradients of the step were finite.
        """
        growth_steps = self._optimizer.dynamic_growth_steps
        return dynamic_update(
            self._optimizer.dynamic_scale.value, self.counter, finite, growth_steps, 2.0
        )
