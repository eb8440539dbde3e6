"""The loss scales of `tf.train.experimental`, `tf.mixed_precision.experimental` and `compat.v1`."""

import abc
from typing import Dict, Optional, Sequence, Tuple

from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.minimum import (
    minimum_in_config,
    minimum_of,
    refuse_minimum_above,
    takes_minimum_scale,
)
from tf_lossscale._core.same_class import SameClass, behaves_as, stands_for
from tf_lossscale._core.state import HoldsState, dynamic_update, update_as_cond
from tf_lossscale._replicas.agreement import summed_to_test
from tf_lossscale._types import (
    Config,
    DType,
    Graph,
    LossScaleArgument,
    LossScaleObject,
    Nest,
    Operation,
    Tensor,
    Variable,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.originals import original


class LossScale(HoldsState, metaclass=SameClass):
    """The factor by which a loss is multiplied, and the rule that updates it.

    Stands for `tf.compat.v1.mixed_precision.LossScale`, TensorFlow 2.21.

    An optimizer calls the loss scale for its current value, multiplies the loss by it, divides the
    gradients by it, and passes them to `update`. That returns whether they are to be applied. A
    loss scale of your own subclasses this class, makes its state with `_add_weight`, and implements
    `__call__`, `update` and `get_config`.

    State: the variables that `_add_weight` made, one set for each graph that the object is used in.
    They are saved as children under their names.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> class Halving(tfls.compat.v1.mixed_precision.LossScale):
      ...     def __init__(self, scale):
      ...         super().__init__()
      ...         self.scale = self._add_weight("scale", scale)
      ...     def __call__(self):
      ...         return tf.convert_to_tensor(self.scale)
      ...     def update(self, grads):
      ...         finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(each)) for each in grads])
      ...         return self.scale.assign(tf.where(finite, self.scale, self.scale / 2)), finite
      ...     def get_config(self):
      ...         return {"scale": 8.0}
      >>> loss_scale = Halving(8.0)
      >>> update, should_apply = loss_scale.update([tf.constant([1.0, float("nan")])])
      >>> bool(should_apply), float(loss_scale())
      (False, 4.0)
    """

    def __init__(self) -> None:
        self._weights: Dict[Tuple[str, Optional[Graph]], Variable] = {}

    @abc.abstractmethod
    def __call__(self) -> Tensor:
        """Returns the current scale: a float32 tensor of shape `[]`."""

    @abc.abstractmethod
    def update(self, grads: Nest) -> Tuple[Optional[Operation], Tensor]:
        """Updates the scale after a step, in a cross-replica context.

        Args:
          grads: a nest of unscaled gradients (tensors, `IndexedSlices`, None; under a strategy,
            per-replica values of these). With several workers, those of this worker only; the step
            is applied if all workers apply it.

        Returns:
          `(update_op, should_apply_gradients)`: an operation to run, or None in eager mode; and a
          bool, or bool tensor of shape `[]`: whether to apply the gradients.
        """

    @abc.abstractmethod
    def get_config(self) -> Config:
        """Returns the arguments that `from_config` takes."""

    @classmethod
    def from_config(cls, config: Config) -> "LossScale":
        """Makes a loss scale from what `get_config` returned.

        Args:
          config: the arguments of the constructor, by name.
        """
        return cls(**config)

    def _add_weight(
        self, name: str, initial_value: float, dtype: Optional[DType] = None
    ) -> Variable:
        """Creates a state variable of shape `[]`: not trainable, saved as the child `name`.

        Args:
          name: its name, once for each loss scale and graph.
          initial_value: its first value, a number.
          dtype: its dtype; if None, the dtype of `initial_value`.

        Raises:
          RuntimeError: this loss scale has a variable of this name in the current graph.
        """
        return self._make_variable(name, initial_value, dtype=dtype, use_resource=True)


class FixedLossScale(LossScale):
    """A loss scale that never changes; non-finite gradients are applied like others.

    Stands for `tf.compat.v1.mixed_precision.FixedLossScale`, TensorFlow 2.21.

    The loss is multiplied by the scale and the gradients are divided by it. `update` does not
    test the gradients and always returns that they are to be applied. So a step that overflows
    makes weights infinite or NaN. (With `FixedLossScaleManager`, of the earlier API, such a step is
    skipped.)

    State: none; nothing is saved.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> loss_scale = tfls.compat.v1.mixed_precision.FixedLossScale(128)
      >>> _, should_apply = loss_scale.update([tf.constant(float("inf"))])
      >>> should_apply, float(loss_scale())
      (True, 128.0)

    Args:
      loss_scale_value: the scale, a Python int or float, at least 1.

    Raises:
      ValueError: the value is not a Python number, or is below 1.
    """

    def __init__(self, loss_scale_value: float) -> None:
        super().__init__()
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError(
                "loss_scale_value must be a Python int or float. "
                f"Got: {loss_scale_value!r} of {type(loss_scale_value)}"
            )
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value must be at least 1. Got: {loss_scale_value}")
        self._loss_scale_value = float(loss_scale_value)

    @do_not_convert
    def __call__(self) -> Tensor:
        """Returns the scale: a new float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self._loss_scale_value, dtype=tf.float32)

    @do_not_convert
    def update(self, grads: Nest) -> Tuple[Optional[Operation], bool]:
        """Does nothing.

        Args:
          grads: not used.

        Returns:
          An operation that does nothing (None in eager mode), and True.
        """
        return tf.no_op(), True

    def __repr__(self) -> str:
        return f"FixedLossScale({self._loss_scale_value})"

    def get_config(self) -> Config:
        """Returns `{"loss_scale_value": ...}`."""
        return {"loss_scale_value": self._loss_scale_value}


class DynamicLossScale(LossScale):
    """A loss scale that grows while gradients are finite and shrinks when they are not.

    Stands for `tf.compat.v1.mixed_precision.DynamicLossScale`, TensorFlow 2.21.

    After `increment_period` finite steps in a row the scale is multiplied by `multiplier`, unless
    the product is not finite. A step with a non-finite gradient is skipped by the optimizer, and
    divides the scale by `multiplier`, but not below 1, or below the further argument
    `minimum_scale`, which is passed by keyword. Both start the count again. Under a strategy
    the gradients of all replicas are summed before they are tested.

    State: two variables that are not trained, of shape `[]`, saved under these names:

    * `current_loss_scale` (float32): begins at `initial_loss_scale`; nothing resets it.
    * `good_steps` (int64): finite steps since the last change of the scale or the last non-finite
      step. Back to 0 at either, even if the new scale would not be finite, or is 1 already.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> loss_scale = tfls.compat.v1.mixed_precision.DynamicLossScale(8.0, increment_period=2)
      >>> _, should_apply = loss_scale.update([tf.constant([1.0, float("inf")])])
      >>> bool(should_apply), float(loss_scale())
      (False, 4.0)
      >>> for _ in range(2):
      ...     _, should_apply = loss_scale.update([tf.constant([1.0, 2.0])])
      >>> bool(should_apply), float(loss_scale())
      (True, 8.0)

    Args:
      initial_loss_scale: the first scale.
      increment_period: number of finite steps in a row after which the scale grows.
      multiplier: the scale is multiplied by it to grow, and divided by it to shrink.

    Raises:
      ValueError: an argument cannot be made a number (TypeError for a tensor of a graph);
        or `minimum_scale` is above 1 and above `initial_loss_scale`.
    """

    @takes_minimum_scale
    def __init__(
        self,
        initial_loss_scale: float = 2**15,
        increment_period: int = 2000,
        multiplier: float = 2.0,
    ) -> None:
        super().__init__()
        self._initial_loss_scale = float(initial_loss_scale)
        self._increment_period = int(increment_period)
        self._multiplier = float(multiplier)
        refuse_minimum_above(self._initial_loss_scale, minimum_of(self))
        # By keyword, as the original calls it where a subclass overrides it.
        self._current_loss_scale = self._add_weight(
            name="current_loss_scale", initial_value=self._initial_loss_scale, dtype=tf.float32
        )
        self._num_good_steps = self._add_weight(name="good_steps", initial_value=0, dtype=tf.int64)

    @property
    def initial_loss_scale(self) -> float:
        """The first scale."""
        return self._initial_loss_scale

    @property
    def increment_period(self) -> int:
        """Number of finite steps in a row after which the scale grows."""
        return self._increment_period

    @property
    def multiplier(self) -> float:
        """The scale is multiplied by it to grow, and divided by it to shrink."""
        return self._multiplier

    @property
    def minimum_scale(self) -> float:
        """The smallest value that the scale shrinks to; 1, as in TensorFlow's class, by default."""
        return minimum_of(self)

    @do_not_convert
    def __call__(self) -> Tensor:
        """Returns the current scale: a float32 tensor of shape `[]`."""
        return tf.convert_to_tensor(self._current_loss_scale)

    @do_not_convert
    def update(self, grads: Nest) -> Tuple[Optional[Operation], Tensor]:
        """Counts the step, and changes the scale if it is due.

        Under a strategy the gradients of all replicas are summed first, as the optimizer will sum
        them, so that an overflow of the sum is detected, too.

        Args:
          grads: a nest of unscaled gradients; None is ignored, and of `IndexedSlices` only the
            values are tested.

        Returns:
          A bool tensor of shape `[]` that is available after the update (None in eager mode),
          and a bool tensor of shape `[]`: whether all gradients were finite.

        Raises:
          RuntimeError: it was called inside one replica of a strategy.
        """
        if tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context():
            raise RuntimeError(
                "DynamicLossScale.update() was called in a replica context, where the gradients of "
                "the other replicas cannot be seen. Call it in a cross-replica context: through "
                "`tf.distribute.get_replica_context().merge_call(...)`, or outside `strategy.run`."
            )
        strategy = tf.distribute.get_strategy()
        sums = summed_to_test(strategy, tf.nest.flatten(grads))
        of_replicas = strategy.experimental_local_results
        finite = all_finite([value for total in sums for value in of_replicas(total)])
        return DynamicLossScale._update_after(self, finite), finite  # of any class with its state

    def _update_after(self, finite: Tensor) -> Optional[Tensor]:
        """Counts a step; returns a tensor that is available afterwards, None in eager mode."""
        state = self._current_loss_scale, self._num_good_steps
        period, multiplier, minimum = self._increment_period, self._multiplier, minimum_of(self)
        return update_as_cond(
            lambda: dynamic_update(*state, finite, period, multiplier, minimum), finite
        )

    def __repr__(self) -> str:
        shown = DynamicLossScale.get_config(self)  # not a subclass's method
        if tf.executing_eagerly():
            scale, steps = self._current_loss_scale.numpy(), self._num_good_steps.numpy()
            shown = {"current_loss_scale": scale, "num_good_steps": steps, **shown}
        return "DynamicLossScale({})".format(", ".join(f"{k}={v!s}" for k, v in shown.items()))

    def get_config(self) -> Config:
        """Returns the arguments of the constructor: three, and `minimum_scale` if it is not 1."""
        return {
            "initial_loss_scale": self.initial_loss_scale,
            "increment_period": self.increment_period,
            "multiplier": self.multiplier,
            **minimum_in_config(self),
        }


# TensorFlow's own optimizers test for its classes, so they accept our loss scales as well.
for _cls in (LossScale, FixedLossScale, DynamicLossScale):
    stands_for(_cls, original(tf1.train.experimental, _cls.__name__))


def is_fixed(loss_scale: LossScaleObject) -> bool:
    """Returns whether every step is applied: a `FixedLossScale` of the shim or of TensorFlow.

    A subclass with its own `update` may skip steps, so it does not count.
    """
    return is_standard(loss_scale, FixedLossScale, ["update"])


def is_standard(
    loss_scale: LossScaleObject, ours: SameClass, methods: Sequence[str] = ("__call__", "update")
) -> bool:
    """Returns whether a loss scale is of our class or TensorFlow's, and overrides no method of it.

    The Keras optimizers keep the state of such a loss scale themselves, and never call it.
    """
    cls = behaves_as(loss_scale)
    return any(
        known in cls.__mro__
        and all(getattr(cls, method) is getattr(known, method) for method in methods)
        for known in (ours, *ours.originals())
    )


def as_loss_scale(identifier: LossScaleArgument) -> Optional[LossScaleObject]:
    """Converts a number or `"dynamic"` to a loss scale; returns a loss scale and None unchanged."""
    if identifier is None or isinstance(identifier, LossScale):  # or the installed one
        return identifier
    if isinstance(identifier, (int, float)):
        return FixedLossScale(identifier)
    if isinstance(identifier, str) and identifier == "dynamic":
        return DynamicLossScale()
    raise ValueError(
        f"Could not interpret loss scale identifier: {identifier}. It must be 'dynamic', a Python "
        "int or float, or a LossScale."
    )
