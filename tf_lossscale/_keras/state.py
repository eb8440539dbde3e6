"""The loss scale of one Keras optimizer: fixed, dynamic, or of a user's own class."""

from typing import Any, Optional, Tuple

from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.loss_scales import is_standard
from tf_lossscale._core.state import dynamic_update
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.files import Trackable

__all__ = ["DynamicState", "FixedState", "Keras3State", "OwnState", "make_state"]


class FixedState(Trackable):
    """A fixed scale, which has no variables and saves nothing."""

    dynamic = False
    decides = False
    counter: Optional[Any] = None
    growth_steps: Optional[int] = None

    def __init__(self, scale: float, loss_scale: Optional[Any] = None) -> None:
        self.initial_scale = scale
        self.loss_scale = loss_scale

    @property
    def saved(self) -> Any:
        """What checkpoints save as `loss_scale`."""
        return self

    def __call__(self) -> Any:
        """Returns the scale: a float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self.initial_scale, dtype=tf.float32)

    def __float__(self) -> float:
        return float(self.initial_scale)

    def update(self, grads: Any) -> Tuple[Any, bool]:
        """Returns the same pair as the original's `_loss_scale.update`: a no-op and True."""
        return (None if tf.executing_eagerly() else tf.no_op()), True


class _OfObject:
    """A state that an object holds, whose other attributes can be read here, too.

    Programs read `optimizer._loss_scale`, which was the object up to TensorFlow 2.3.
    """

    dynamic = True

    def __init__(self, loss_scale: Any) -> None:
        self.loss_scale = loss_scale

    @property
    def saved(self) -> Any:
        """What checkpoints save as `loss_scale`."""
        return self.loss_scale

    def update(self, grads: Any) -> Tuple[Any, Any]:
        """Updates the scale; returns an operation, and whether to apply the unscaled gradients."""
        result: Tuple[Any, Any] = self.loss_scale.update(grads)
        return result

    def __getattr__(self, name: str) -> Any:
        if name == "loss_scale" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loss_scale, name)


class OwnState(_OfObject):
    """A loss scale of a user's own class, which decides itself whether a step is applied."""

    decides = True
    counter: Optional[Any] = None
    growth_steps: Optional[int] = None
    initial_scale: Optional[float] = None

    def __call__(self) -> Any:
        """Returns the current scale: a float32 tensor of shape `[]`."""
        return tf.cast(self.loss_scale(), tf.float32)


class DynamicState(_OfObject):
    """A dynamic scale, held by a `DynamicLossScale` of ours or of TensorFlow."""

    decides = False

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
    def current_loss_scale(self) -> Any:
        """The float32 variable that holds the scale; TensorFlow has this name from 2.4 on."""
        return self.loss_scale._current_loss_scale

    def __call__(self) -> Any:
        """Returns the current scale: a float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self.current_loss_scale)

    @do_not_convert
    def advance(self, finite: Any) -> Any:
        """Updates the scale after a step; returns the operation, None in eager mode."""
        factor = float(self.loss_scale.multiplier)
        scale, counter = self.current_loss_scale, self.counter
        return dynamic_update(scale, counter, finite, self.growth_steps, factor)


def make_state(loss_scale: Any) -> Any:
    """Returns the state for a float, or for a `LossScale` of ours or of TensorFlow."""
    if isinstance(loss_scale, float):
        return FixedState(loss_scale)
    if is_standard(loss_scale, "FixedLossScale"):
        return FixedState(float(loss_scale.get_config()["loss_scale_value"]), loss_scale)
    if is_standard(loss_scale, "DynamicLossScale"):
        return DynamicState(loss_scale)
    return OwnState(loss_scale)


class Keras3State:
    """The scale of a Keras 3 optimizer, held in the variables that Keras 3 saves."""

    decides = False

    def __init__(self, optimizer: Any, multiplier: float = 2.0) -> None:
        self._optimizer = optimizer
        self.dynamic: bool = optimizer.dynamic_growth_steps is not None
        self.multiplier = multiplier

    @property
    def counter(self) -> Optional[Any]:
        """The TensorFlow variable that counts finite steps; None if the scale is fixed."""
        return self._optimizer.step_counter.value if self.dynamic else None

    @property
    def current_loss_scale(self) -> Any:
        """The TensorFlow variable that holds a dynamic scale."""
        return self._optimizer.dynamic_scale.value

    def __float__(self) -> float:
        return float(self())

    def __call__(self) -> Any:
        """Returns the current scale: a float32 tensor of shape `[]`."""
        if not self.dynamic:
            return tf.convert_to_tensor(self._optimizer.initial_scale, dtype=tf.float32)
        return tf.convert_to_tensor(self.current_loss_scale)

    @do_not_convert
    def advance(self, finite: Any) -> Any:
        """Updates the scale after a step by Keras 2's rule, which has a minimum and a maximum."""
        growth_steps = self._optimizer.dynamic_growth_steps
        return dynamic_update(
            self.current_loss_scale, self.counter, finite, growth_steps, self.multiplier
        )

    @do_not_convert
    def update(self, grads: Any) -> Tuple[Any, Any]:
        """Updates the scale; returns an operation, and whether to apply the unscaled gradients."""
        if not self.dynamic:
            return (None if tf.executing_eagerly() else tf.no_op()), True
        finite = all_finite(
            [gradient for gradient in tf.nest.flatten(grads) if gradient is not None]
        )
        return self.advance(finite), finite
