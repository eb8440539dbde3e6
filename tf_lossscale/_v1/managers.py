"""The loss-scale managers of `tf.contrib.mixed_precision`."""

import abc
import functools
from types import ModuleType
from typing import Any, Callable, Optional

from tf_lossscale._core.minimum import minimum_of, refuse_minimum_above, takes_minimum_scale
from tf_lossscale._core.same_class import SameClass, stands_for
from tf_lossscale._core.state import (
    HoldsState,
    add,
    assign_all,
    branch_of_state,
    if_finite,
    read,
    update_as_cond,
)
from tf_lossscale._import_hook import Subscriber, subscribe, unsubscribe
from tf_lossscale._types import Class, Operation, Tensor
from tf_lossscale._versions.base import do_not_convert, tf, where
from tf_lossscale._versions.originals import CONTRIB_MODULES, loaded_contrib_class


class LossScaleManager(HoldsState, metaclass=SameClass):
    """Holds the loss scale of a `LossScaleOptimizer`, and updates it after each step.

    Stands for `tf.contrib.mixed_precision.LossScaleManager`, TensorFlow 1.15.

    In each step the optimizer multiplies the loss by `get_loss_scale()`, divides the gradients by
    it, tests whether all of them are finite, and calls `update_loss_scale` with the result. A
    manager of your own subclasses this class and implements both methods. The optimizer skips a
    step with a non-finite gradient, whatever the manager does.

    This class has no state. A subclass makes its own variables; unlike the original it can be saved
    by `tf.train.Checkpoint`.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> class Halving(tfls.contrib.mixed_precision.LossScaleManager):
      ...     def __init__(self, scale):
      ...         self.scale = tf.Variable(scale, trainable=False)
      ...     def get_loss_scale(self):
      ...         return self.scale
      ...     def update_loss_scale(self, finite_grads):
      ...         return self.scale.assign(tf.where(finite_grads, self.scale, self.scale / 2))
      >>> manager = Halving(8.0)
      >>> update = manager.update_loss_scale(tf.constant(False))
      >>> float(manager.get_loss_scale().numpy())
      4.0
    """

    @abc.abstractmethod
    def get_loss_scale(self) -> Tensor:
        """Returns the loss scale: a float32 tensor or variable of shape `[]`."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads: Tensor) -> Optional[Operation]:
        """Updates the loss scale after a step.

        Args:
          finite_grads: bool tensor of shape `[]`, whether all gradients of the step were finite.

        Returns:
          An operation or tensor that updates the scale when it is run; None in eager mode.
        """


class FixedLossScaleManager(LossScaleManager):
    """A loss scale that never changes.

    Stands for `tf.contrib.mixed_precision.FixedLossScaleManager`, TensorFlow 1.15.

    The loss is multiplied by the scale and the gradients are divided by it. Small float16 gradients
    that would be rounded to 0 survive if the scale is large enough. The optimizer skips a step with
    a non-finite gradient, and the next step has the same scale. (`FixedLossScale`, of the later
    API, applies such gradients.)

    State: none. The scale is a float32 tensor of shape `[]`, made once; nothing is saved.

    Examples:
      >>> import tf_lossscale as tfls
      >>> manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128)
      >>> update = manager.update_loss_scale(False)
      >>> float(manager.get_loss_scale().numpy())
      128.0

    Args:
      loss_scale: the scale, at least 1; a number, a NumPy scalar or an eager tensor. Converted to
        float32.

    Raises:
      ValueError: `loss_scale` is below 1.
      TypeError: `loss_scale` cannot be compared with a number.
    """

    def __init__(self, loss_scale: Any) -> None:
        if loss_scale < 1:
            raise ValueError(f"loss scale must be at least 1. Got: {loss_scale}")
        # One tensor for all uses, in the graph in which the manager is created, as in the original.
        self._loss_scale = tf.convert_to_tensor(loss_scale, dtype=tf.float32)

    @do_not_convert
    def get_loss_scale(self) -> Tensor:
        """Returns the scale: always the same float32 tensor of shape `[]`."""
        return self._loss_scale

    @do_not_convert
    def update_loss_scale(self, finite_grads: Tensor) -> Optional[Operation]:
        """Does nothing.

        Args:
          finite_grads: not used.

        Returns:
          An operation that does nothing; None in eager mode.
        """
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A loss scale that grows after finite steps and shrinks after non-finite ones.

    Stands for `tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager`, TensorFlow 1.15.

    After `incr_every_n_steps` finite steps without a non-finite one in between, the scale is
    multiplied by `incr_ratio`, unless the product is infinite. After `decr_every_n_nan_or_inf`
    non-finite steps, *with finite ones allowed in between*, it is multiplied by `decr_ratio`, but
    not below 1, or below the further argument `minimum_scale`, which is passed by keyword. Either
    change resets both counts to 0. The optimizer skips each non-finite step.

    State: three variables that are not trained, of shape `[]`, saved under these names:

    * `loss_scale` (float32): begins at `init_loss_scale`; nothing resets it.
    * `good_steps` (int32): finite steps since the last change of the scale or the last non-finite
      step. Back to 0 at either.
    * `bad_steps` (int32): non-finite steps since the last change of the scale. Back to 0 at a
      change; a finite step does not change it.

    Examples:
      >>> import tf_lossscale as tfls
      >>> manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(
      ...     8.0, incr_every_n_steps=2)
      >>> for finite in (False, True, False):  # the second non-finite step of two
      ...     update = manager.update_loss_scale(finite)
      >>> round(float(manager.get_loss_scale().numpy()), 3)
      6.4

    Args:
      init_loss_scale: the first scale; converted to float32.
      incr_every_n_steps: number of finite steps after which the scale grows.
      decr_every_n_nan_or_inf: number of non-finite steps after which the scale shrinks.
      incr_ratio: factor by which the scale grows.
      decr_ratio: factor by which the scale shrinks. As in the original, none of these numbers is
        validated.

    Raises:
      TypeError: `init_loss_scale` is not a number.
      ValueError: `init_loss_scale` is None, or a tensor that is not float32; or `minimum_scale` is
        above 1 and above it.
    """

    @takes_minimum_scale
    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ) -> None:
        if isinstance(init_loss_scale, (int, float)):
            refuse_minimum_above(init_loss_scale, minimum_of(self))
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        self._loss_scale = self._make_variable("loss_scale", init_loss_scale, dtype=tf.float32)
        self._num_good_steps = self._make_variable("good_steps", 0, dtype=tf.int32)
        self._num_bad_steps = self._make_variable("bad_steps", 0, dtype=tf.int32)

    @do_not_convert
    def get_loss_scale(self) -> Tensor:
        """Returns the scale: the float32 variable itself, of shape `[]`."""
        return self._loss_scale

    @do_not_convert
    def update_loss_scale(self, finite_grads: Tensor) -> Optional[Operation]:
        """Counts the step, and changes the scale if it is due.

        Args:
          finite_grads: bool tensor of shape `[]`, or in eager mode a Python bool.

        Returns:
          A bool tensor that is available after the update; None in eager mode.

        Raises:
          TypeError: `finite_grads` is not a bool, or a number of steps is not an integer.
        """
        if tf.executing_eagerly():
            finite_grads = tf.convert_to_tensor(finite_grads, dtype=tf.bool)
        elif isinstance(finite_grads, bool):
            raise TypeError(
                "pred must not be a Python bool. In a graph, finite_grads is a bool tensor that is "
                "computed in every step."
            )
        return update_as_cond(lambda: _update(self, finite_grads), finite_grads)

    def _reset_stats(self) -> Optional[Operation]:
        """Resets both counts to 0; returns the operation, None in eager mode."""
        return tf.group(self._num_good_steps.assign(0), self._num_bad_steps.assign(0))


def _update(manager: ExponentialUpdateLossScaleManager, finite: Tensor) -> Optional[Operation]:
    """Builds the update after a step; returns an operation, None in eager mode."""
    good = read(manager._num_good_steps) + 1
    bad = read(manager._num_bad_steps) + 1
    not_finite = tf.logical_not(finite)
    grows = tf.logical_and(finite, good >= manager._incr_every_n_steps)
    shrinks = tf.logical_and(not_finite, bad >= manager._decr_every_n_nan_or_inf)

    def change() -> Optional[Operation]:
        old_scale = read(manager._loss_scale)
        grown = if_finite(old_scale * manager._incr_ratio, old_scale)
        multiplied = old_scale * manager._decr_ratio
        minimum = minimum_of(manager)
        shrunk = where(multiplied > minimum, multiplied, tf.fill([], minimum))  # also for NaN
        changed = assign_all((manager._loss_scale, where(finite, grown, shrunk)))
        with tf.control_dependencies([] if changed is None else [changed]):
            reset = manager._reset_stats()  # which a subclass may override
        return changed if reset is None else tf.group(reset)

    def count_good() -> Optional[Operation]:
        return add(manager._num_good_steps, 1)

    def count_bad() -> Optional[Operation]:
        return tf.group(manager._num_good_steps.assign(0), add(manager._num_bad_steps, 1))

    def count() -> Optional[Operation]:
        return branch_of_state(finite, count_good, count_bad)

    return branch_of_state(tf.logical_or(grows, shrinks), change, count)


class WhenContribIsLoaded(Subscriber):
    """Calls `action` with TensorFlow's class of this name, now or when the program imports it."""

    def __init__(self, name: str, action: Callable[[Class], None]) -> None:
        self._name = name
        self._action = action
        subscribe(self)
        self._act_if_loaded()

    def is_of_interest(self, name: str) -> bool:
        return name in CONTRIB_MODULES

    def imported(self, name: str, module: ModuleType) -> None:
        self._act_if_loaded()

    def _act_if_loaded(self) -> None:
        cls = loaded_contrib_class(self._name)
        if cls is not None:
            unsubscribe(self)
            self._action(cls)


for _cls in (LossScaleManager, FixedLossScaleManager, ExponentialUpdateLossScaleManager):
    WhenContribIsLoaded(_cls.__name__, functools.partial(stands_for, _cls))
