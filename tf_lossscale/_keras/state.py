"""The loss scale of one Keras optimizer: fixed, dynamic, or of a user's own class."""

from typing import Any, Optional, Tuple

from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.loss_scales import is_standard
from tf_lossscale._core.state import dynamic_update
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.files import Trackable

__all__ = ["Keras3State", "make_state"]


def make_state(loss_scale: Any) -> Any:
    """Returns the state for a float, or for a `LossScale` of ours or of TensorFlow.

    Calling a state returns the current scale: a float32 tensor of shape `[]`. `saved` is what
    checkpoints save as `loss_scale`, and `decides` whether the loss scale itself decides which
    steps are applied.
    """
    if isinstance(loss_scale, float):
        return _FixedState(loss_scale)
    if is_standard(loss_scale, "FixedLossScale"):
        return _FixedState(float(loss_scale.get_config()["loss_scale_value"]), loss_scale)
    if is_standard(loss_scale, "DynamicLossScale"):
        return _DynamicState(loss_scale)
    return _OwnState(loss_scale)


class _FixedState(Trackable):
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
        return self

    def __call__(self) -> Any:
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
        self.loss_scale = self.saved = loss_scale

    def __getattr__(self, name: str) -> Any:
        if name == "loss_scale" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loss_scale, name)


class _OwnState(_OfObject):
    """A loss scale of a user's own class, which decides itself whether a step is applied."""

    decides = True
    counter: Optional[Any] = None
    growth_steps: Optional[int] = None
    initial_scale: Optional[float] = None

    def __call__(self) -> Any:
        return tf.cast(self.loss_scale(), tf.float32)


class _InVariables:
    """The scale and the counter of finite steps are variables: float32 and int64."""

    decides = False
    current_loss_scale: Any  # TensorFlow has this name from 2.4 on
    counter: Any
    growth_steps: Any
    multiplier: float

    def __call__(self) -> Any:
        return tf.convert_to_tensor(self.current_loss_scale)

    @do_not_convert
    def advance(self, finite: Any) -> Any:
        """Updates the scale after a step; returns the operation, None in eager mode."""
        return dynamic_update(
            self.current_loss_scale, self.counter, finite, self.growth_steps, self.multiplier
        )


class _DynamicState(_InVariables, _OfObject):
    """A dynamic scale, held by a `DynamicLossScale` of ours or of TensorFlow."""

    def __init__(self, loss_scale: Any) -> None:
        super().__init__(loss_scale)
        self.initial_scale = float(loss_scale.initial_loss_scale)
        self.growth_steps = int(loss_scale.increment_period)
        self.multiplier = float(loss_scale.multiplier)
        self.current_loss_scale = loss_scale._current_loss_scale
        self.counter = loss_scale._num_good_steps


class Keras3State(_InVariables):
    """The scale of a Keras 3 optimizer, held in the variables that Keras 3 saves.

    Unlike Keras 3's own rule, Keras 2's has a minimum and a maximum.
    """

    def __init__(self, optimizer: Any, multiplier: float = 2.0) -> None:
        self._optimizer = optimizer
        self.dynamic: bool = optimizer.dynamic_growth_steps is not None
        self.multiplier = multiplier

    @property
    def growth_steps(self) -> Any:  # it can be set on the optimizer
        return self._optimizer.dynamic_growth_steps

    @property
    def counter(self) -> Optional[Any]:
        return self._optimizer.step_counter.value if self.dynamic else None

    @property
    def current_loss_scale(self) -> Any:
        return self._optimizer.dynamic_scale.value

    def __float__(self) -> float:
        return float(self())

    def __call__(self) -> Any:
        if not self.dynamic:
            return tf.convert_to_tensor(self._optimizer.initial_scale, dtype=tf.float32)
        return super().__call__()

    @do_not_convert
    def update(self, grads: Any) -> Tuple[Any, Any]:
        """Updates the scale; returns an operation, and whether to apply the unscaled gradients."""
        if not self.dynamic:
            return (None if tf.executing_eagerly() else tf.no_op()), True
        finite = all_finite(
            [gradient for gradient in tf.nest.flatten(grads) if gradient is not None]
        )
        return self.advance(finite), finite
