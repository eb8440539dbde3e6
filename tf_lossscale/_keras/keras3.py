"""The wrapper of Keras 3 optimizers: Keras 2's methods and rules on Keras 3's class."""

from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from tf_lossscale._core.optimizer_step import as_pairs, require_replica_context
from tf_lossscale._core.replicas import replica_count
from tf_lossscale._core.scaling import scale_loss, tape_for, unscale_gradients
from tf_lossscale._keras.calls import ScalingCalls
from tf_lossscale._keras.config import to_config
from tf_lossscale._keras.constructor import Constructor
from tf_lossscale._keras.keras3_options import OPTIONS, InnerOption
from tf_lossscale._keras.state import Keras3State
from tf_lossscale._keras.steps import StepArguments, reduce_sum, step
from tf_lossscale._keras.strategies import refuse_unsupported
from tf_lossscale._keras.transformed import late_check
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.keras_3 import (
    keras_3_can_be_given_sums,
    keras_3_is_given_sums,
    keras_3_takes_sums,
)

__all__ = ["Keras3Wrapper"]

LARGEST_FLOAT32 = 3.4028234663852886e38


class Keras3Wrapper(Constructor):
    """Steps of a Keras 3 optimizer, by Keras 2's rules.

    `apply` takes scaled gradients, as `fit` gives them; `apply_gradients` takes unscaled ones, as a
    Keras 2 loop gives them, unless the loss was scaled with Keras 3's `scale_loss`.
    """

    # What it has of the installed class, which is its base.
    built: bool
    variables: List[Any]
    add_variable: Callable[..., Any]
    dynamic_scale: Any
    step_counter: Any
    name: str
    _overwrite_variable_with_gradient: Callable[[Any], bool]
    _trainable_variables: List[Any]

    _forwards_options: bool
    _waiting_weights: Optional[List[Any]] = None
    _state: Keras3State
    _calls: ScalingCalls

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        fixed = isinstance(loss_scale, float)
        initial = loss_scale if fixed else loss_scale.initial_loss_scale
        self._check(initial)
        installed: Any = self._family.installed_final
        installed.__init__(
            self,
            inner,
            initial_scale=initial,
            dynamic_growth_steps=None if fixed else loss_scale.increment_period,
            name="loss_scale_optimizer",
        )
        # At once, and not at the first step, so that no function is traced with a constant scale.
        # The order is the installed class's, and so is the layout of its files.
        self.step_counter = self.add_variable(
            shape=(), dtype="int", initializer="zeros", aggregation="none", name="step_counter"
        )
        self.dynamic_scale = self.add_variable(
            shape=(), dtype="float32", initializer="ones", aggregation="none", name="dynamic_scale"
        )
        self.dynamic_scale.assign(initial if fixed else loss_scale())
        if not fixed:
            self.step_counter.assign(loss_scale._num_good_steps)
        self._state = Keras3State(self)
        self._calls = ScalingCalls()
        self._forwards_options = True

    def _check(self, initial: float) -> None:
        if not 1 <= initial <= LARGEST_FLOAT32:
            raise ValueError(
                "On Keras 3 the loss scale is held between 1 and the largest finite float32, "
                f"{LARGEST_FLOAT32}, but initial_scale is {initial}."
            )

    def build(self, var_list: Sequence[Any]) -> None:
        """Makes the slots of the inner optimizer.

        Args:
          var_list: the variables that gradients will be applied to.
        """
        if not var_list:
            return  # reading an HDF5 file, Keras asks for this before it knows the variables
        if not self.inner_optimizer.built:
            self.inner_optimizer.build(var_list)
        self._forwards_options = False
        try:
            self._family.base.build(self, var_list)
        finally:
            self._forwards_options = True
        if self._waiting_weights:
            self.set_weights(self.__dict__.pop("_waiting_weights"))

    @property
    def iterations(self) -> Any:
        """The variable that counts steps, skipped ones too."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    # Attributes of the installed class, which its constructor sets.

    @property
    def inner_optimizer(self) -> Any:
        """The optimizer that this one wraps."""
        return self._stored("inner_optimizer")

    @inner_optimizer.setter
    def inner_optimizer(self, value: Any) -> None:
        self.__dict__["inner_optimizer"] = value

    @property
    def initial_scale(self) -> float:
        """The loss scale that it began with."""
        scale: float = self._stored("initial_scale")
        return scale

    @initial_scale.setter
    def initial_scale(self, value: float) -> None:
        self.__dict__["initial_scale"] = value

    @property
    def dynamic_growth_steps(self) -> Optional[int]:
        """Finite steps in a row before the loss scale doubles; None if it is fixed."""
        steps: Optional[int] = self._stored("dynamic_growth_steps")
        return steps

    @dynamic_growth_steps.setter
    def dynamic_growth_steps(self, value: Optional[int]) -> None:
        self.__dict__["dynamic_growth_steps"] = value

    def _stored(self, name: str) -> Any:
        try:
            return self.__dict__[name]
        except KeyError:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message) from None

    @property
    def weights(self) -> List[Any]:
        """The variables, under Keras 2's name."""
        return list(self.variables)

    def get_weights(self) -> List[Any]:
        """Returns the values of `variables`, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the variables of this and of the inner optimizer, as far as they are made.

        What belongs to slots that are not made yet is set when they are.

        Args:
          weights: arrays in the order of `variables`.
        """
        variables = self.variables
        for variable, value in zip(variables, weights):
            variable.assign(value)
        if len(weights) > len(variables) and not self.built:
            # Copies: what Keras reads from an HDF5 file is gone when it closes the file.
            self.__dict__["_waiting_weights"] = [np.array(each) for each in weights]

    @property
    def dynamic(self) -> bool:
        """Whether the loss scale follows the gradients."""
        return self._state.dynamic

    @property
    def loss_scale(self) -> Any:
        """The current loss scale: a float32 tensor of shape `[]`."""
        return self._state()

    @property
    def dynamic_counter(self) -> Optional[Any]:
        """The variable that counts finite steps since the last change; None if fixed."""
        return self._state.counter if self.dynamic else None

    @property
    def lr(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.learning_rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @do_not_convert
    def get_scaled_loss(self, loss: Any) -> Any:
        """Returns the loss times the loss scale, as Keras 2 does.

        Args:
          loss: a float tensor, or a callable that returns one.

        Returns:
          The product in the dtype of the loss; a callable for a callable.
        """
        self._calls.note("get_scaled_loss")
        return scale_loss(loss, self._scale_in_force)

    @do_not_convert
    def scale_loss(self, loss: Any) -> Any:
        """Returns the loss times the loss scale, as Keras 3 does before it calls `apply`.

        Args:
          loss: a float tensor.

        Returns:
          The product, in float32 or the wider dtype of the loss.
        """
        self._calls.note("scale_loss")
        loss = tf.convert_to_tensor(loss)
        if loss.dtype not in (tf.float32, tf.float64):
            loss = tf.cast(loss, tf.float32)
        return scale_loss(loss, self._state)

    @do_not_convert
    def get_unscaled_gradients(self, grads: Sequence[Any]) -> List[Any]:
        """Returns the gradients divided by the loss scale, for `apply_gradients`.

        Args:
          grads: float tensors, `IndexedSlices` (which stay sparse) and None (which stays None).
        """
        self._calls.note("get_unscaled_gradients")
        return unscale_gradients(list(grads), self._scale_in_force())

    def _scale_in_force(self) -> Any:
        """Returns the scale that Keras 2's methods go by: that of a subclass's property, if any."""
        is_own = type(self).loss_scale is Keras3Wrapper.loss_scale
        return self._state() if is_own else self.loss_scale

    def _unscaled(self, grads: Sequence[Any]) -> List[Any]:
        return unscale_gradients(list(grads), self._state())

    @do_not_convert
    def minimize(self, loss: Any, var_list: Any, tape: Optional[Any] = None) -> Any:
        """Scales the loss, computes the gradients, unscales and applies them.

        Args:
          loss: a callable that returns the loss, or a tensor (then with the tape that recorded it).
          var_list: the variables, or a callable that returns them.
          tape: the tape.
        """
        tape = tape_for(loss, tape)
        with tape:
            scaled = self.get_scaled_loss(loss() if callable(loss) else loss)
        variables = list(var_list() if callable(var_list) else var_list)
        watched = [each if isinstance(each, tf.Variable) else each.value for each in variables]
        gradients = self.get_unscaled_gradients(tape.gradient(scaled, watched))
        return self.apply_gradients(zip(gradients, variables))

    @do_not_convert
    def apply_gradients(self, grads_and_vars: Any, **kwargs: Any) -> Any:
        """Applies gradients, if all of them are finite on all replicas.

        Args:
          grads_and_vars: pairs of a gradient, or None, and its variable. The gradients are
            unscaled, unless the loss was scaled with `scale_loss`.
          **kwargs: `name`, `experimental_aggregate_gradients` and `skip_gradients_aggregation` of
            Keras 2.

        Returns:
          The variable that counts the steps.

        Raises:
          RuntimeError: it cannot be told whether the gradients are scaled.
          ValueError: there is no gradient, it is not called in a replica context, or the inner
            optimizer cannot be given gradients that are added up already.
        """
        summed_by_caller = self._are_summed(kwargs)
        scaled = self._calls.applies_scaled()
        pairs = list(grads_and_vars)
        if pairs:
            pairs = as_pairs(pairs, type(self).__name__)
        gradients, variables = [each for each, _ in pairs], [each for _, each in pairs]
        if scaled and not summed_by_caller and all(each is not None for each in gradients):
            # As Keras 3 itself does, so that an override of `apply` is what `fit` calls.
            self._calls.note("scale_loss")
            self.apply(gradients, variables)
        else:
            unscaled = self._unscaled(gradients) if scaled else gradients
            self._apply_all(unscaled, variables, summed_by_caller)
        return self.iterations

    @do_not_convert
    def apply(self, grads: Sequence[Any], trainable_variables: Optional[Any] = None) -> None:
        """Unscales and applies scaled gradients, if all of them are finite on all replicas.

        Args:
          grads: gradients of a loss that `scale_loss` scaled, or None.
          trainable_variables: their variables; those that the optimizer was built for if None.

        Raises:
          RuntimeError: the gradients were unscaled before.
          ValueError: there is no gradient, or it is not called in a replica context.
        """
        self._calls.check_apply()
        if trainable_variables is None:
            if not self.built:
                raise ValueError(
                    "apply() without variables needs an optimizer that is built: pass the "
                    "variables, or call build(variables) first."
                )
            trainable_variables = self._trainable_variables
        variables = list(trainable_variables)
        if len(variables) != len(grads):
            raise ValueError(
                f"apply() was given {len(grads)} gradients for {len(variables)} variables."
            )
        gradients = [
            gradient if self._overwrite_variable_with_gradient(variable) else unscaled
            for gradient, unscaled, variable in zip(grads, self._unscaled(grads), variables)
        ]
        self._apply_all(gradients, variables)

    def _are_summed(self, kwargs: Dict[str, Any]) -> bool:
        """Returns whether Keras 2's arguments say that the gradients are added up already."""
        aggregate = kwargs.pop("experimental_aggregate_gradients", True)
        skip = kwargs.pop("skip_gradients_aggregation", False)
        kwargs.pop("name", None)
        if kwargs:
            raise TypeError("apply_gradients() has no argument " + ", ".join(sorted(kwargs)))
        if replica_count() == 1 or (aggregate and not skip):
            return False
        if keras_3_can_be_given_sums(self._family, self.inner_optimizer):
            return True
        raise ValueError(
            f"{type(self.inner_optimizer).__name__} of Keras 3 adds the gradients of all replicas "
            "up itself and cannot be told that this was done. Give apply_gradients() each "
            "replica's own gradients, or divide the summed ones by strategy.num_replicas_in_sync."
        )

    def _apply_all(
        self, gradients: List[Any], variables: List[Any], summed_by_caller: bool = False
    ) -> None:
        require_replica_context("apply")
        refuse_unsupported()
        if variables and not self.built:
            with tf.init_scope():
                self.build(variables)
        if gradients:
            as_pairs(zip(gradients, variables), type(self).__name__)
        tested = [each for each in gradients if each is not None]
        rest = StepArguments(variables, None, not summed_by_caller)
        if replica_count() > 1 and tested and not summed_by_caller:
            tested = reduce_sum(tested)
            if keras_3_takes_sums(self._family, self.inner_optimizer, variables):
                sums = iter(tested)
                gradients = [None if each is None else next(sums) for each in gradients]
                rest.aggregate = False
        check = late_check(self._family, self.inner_optimizer)
        step(
            self._state,
            self._count,
            tested,
            self._apply_inner,
            (gradients, rest),
            same_on_replicas=not summed_by_caller,
            late_check=check,
        )

    def _count(self) -> Any:
        if self.inner_optimizer.gradient_accumulation_steps:
            return None  # the steps since the last update are told by this count
        return self.inner_optimizer.iterations.value

    def _apply_inner(self, gradients: Sequence[Any], rest: StepArguments) -> None:
        if rest.aggregate:
            self.inner_optimizer.apply(gradients, rest.variables)
            return
        with keras_3_is_given_sums(self.inner_optimizer):
            self.inner_optimizer.apply(gradients, rest.variables)

    def get_config(self) -> Dict[str, Any]:
        """Returns the installed class's configuration, and `dynamic` where the scale is fixed."""
        return to_config(self)

    def __dir__(self) -> List[str]:
        inner = [name for name in dir(self.inner_optimizer) if not name.startswith("_")]
        return sorted({*super().__dir__(), *inner})

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("inner_optimizer")
        if inner is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        inner = self.__dict__.get("inner_optimizer")
        if (
            inner is None
            or not self.__dict__.get("_forwards_options")
            or name.startswith("_")
            or name in self.__dict__
            or hasattr(type(self), name)
            or not hasattr(inner, name)
        ):
            super().__setattr__(name, value)
        else:
            setattr(inner, name, value)


for _name in OPTIONS:
    setattr(Keras3Wrapper, _name, InnerOption(_name))
