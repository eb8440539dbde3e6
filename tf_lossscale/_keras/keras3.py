"""The wrapper of Keras 3 optimizers: the methods and update rules of Keras 2 on Keras 3's class."""

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import numpy as np

from tf_lossscale._core.optimizer_step import as_pairs, require_replica_context
from tf_lossscale._core.replicas import replica_count
from tf_lossscale._core.scaling import scale_loss, tape_for, unscale_gradients
from tf_lossscale._core.step_watchers import watcher_of
from tf_lossscale._keras.calls import ScalingCalls
from tf_lossscale._keras.config import to_config
from tf_lossscale._keras.constructor import Constructor
from tf_lossscale._keras.keras3_options import OPTIONS, InnerOption
from tf_lossscale._keras.state import Keras3State, make_state
from tf_lossscale._keras.steps import StepArguments, reduce_sum, step
from tf_lossscale._keras.strategies import refuse_unsupported
from tf_lossscale._keras.transformed import late_check
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.keras_3 import (
    is_overwritten_with_gradient,
    keras_3_can_be_given_sums,
    keras_3_does_not_track,
    keras_3_is_given_sums,
    keras_3_takes_sums,
)

__all__ = ["Keras3Wrapper"]

LARGEST_FLOAT32 = 3.4028234663852886e38


class Keras3Wrapper(Constructor):
    """The API of the final class, for a Keras 3 optimizer.

    `apply` takes scaled gradients, as `fit` passes them. `apply_gradients` takes unscaled ones, as
    a Keras 2 loop passes them, unless the loss was scaled with Keras 3's `scale_loss`.
    """

    # Attributes that the installed class, a base of each implementation, provides.
    built: bool
    variables: List[Any]
    add_variable: Callable[..., Any]
    dynamic_scale: Any
    step_counter: Any
    name: str
    _trainable_variables: List[Any]

    _forwards_options: bool
    _waiting_weights: Optional[List[Any]] = None
    _track_trackable: Callable[..., Any]
    _calls: ScalingCalls

    def _set_up(self, inner: Any, loss_scale: Any) -> None:
        given = make_state(loss_scale)
        initial = given.initial_scale
        if given.decides:
            with tf.init_scope():
                initial = float(given())
        else:
            self._check(initial)
        installed: Any = self._family.installed_final
        installed.__init__(
            self,
            inner,
            initial_scale=initial,
            dynamic_growth_steps=given.growth_steps,
            name="loss_scale_optimizer",
        )
        # Created here rather than at the first step, so that no function is traced with a constant
        # scale. The order must be that of the installed class, as it determines the file layout.
        self.step_counter = self.add_variable(
            shape=(), dtype="int", initializer="zeros", name="step_counter"
        )
        self.dynamic_scale = self.add_variable(
            shape=(), dtype="float32", initializer="ones", name="dynamic_scale"
        )
        self.dynamic_scale.assign(initial)
        if given.decides:
            self._state = given
            self._track_trackable(loss_scale, "loss_scale")
            # Not methods of the class: Keras's warnings about files would name a line of ours.
            self.__dict__.update(
                save_own_variables=self._save_with_loss_scale,
                load_own_variables=self._load_with_loss_scale,
            )
        else:
            self._state = Keras3State(self, getattr(given, "multiplier", 2.0))
        self._calls = ScalingCalls()
        self._forwards_options = True

    def _check(self, initial: float) -> None:
        if not 1 <= initial <= LARGEST_FLOAT32:
            raise ValueError(
                "On Keras 3 the loss scale is held between 1 and the largest finite float32, "
                f"{LARGEST_FLOAT32}, but initial_scale is {initial}."
            )

    def build(self, var_list: Sequence[Any]) -> None:
        """Creates the slots of the inner optimizer.

        Args:
          var_list: the variables that gradients will be applied to.
        """
        if not var_list:
            return  # when reading an HDF5 file, Keras calls this before it knows the variables
        self._forwards_options = False
        try:
            # The installed class builds without tracking. With it, an optimizer that sets a
            # variable as an attribute (Nadam, Adafactor) would list one more, and each class
            # would drop the optimizer state of the other's files.
            with keras_3_does_not_track():
                if not self.inner_optimizer.built:
                    self.inner_optimizer.build(var_list)
                self._family.base.build(self, var_list)
        finally:
            self._forwards_options = True
        if self._waiting_weights:
            self.set_weights(self.__dict__.pop("_waiting_weights"))

    @property
    def iterations(self) -> Any:
        """The variable that counts steps, including skipped ones."""
        return self.inner_optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        if self.__dict__.get("_forwards_options"):
            self.inner_optimizer.iterations = variable  # an AttributeError from Keras 3.5 on
        else:
            # Up to Keras 3.4, the base class creates its own, unused counter under this name.
            self.__dict__["_own_iterations"] = variable

    @property
    def learning_rate(self) -> Any:
        """The learning rate of the inner optimizer."""
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    # Attributes that the constructor of the installed class sets.

    @property
    def inner_optimizer(self) -> Any:
        """The wrapped optimizer."""
        return self._stored("inner_optimizer")

    @inner_optimizer.setter
    def inner_optimizer(self, value: Any) -> None:
        self.__dict__["inner_optimizer"] = value

    @property
    def _optimizer(self) -> Any:
        return self.inner_optimizer

    @property
    def initial_scale(self) -> float:
        """The initial loss scale."""
        scale: float = self._stored("initial_scale")
        return scale

    @initial_scale.setter
    def initial_scale(self, value: float) -> None:
        if "_state" in self.__dict__:
            self._check(value)
            if self.dynamic and not self.built:  # the installed class reads it when it is built
                self.dynamic_scale.assign(value)
        self.__dict__["initial_scale"] = value

    @property
    def dynamic_growth_steps(self) -> Optional[int]:
        """Consecutive finite steps after which the loss scale doubles; None if it is fixed."""
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

    def exclude_from_weight_decay(
        self, var_list: Optional[Sequence[Any]] = None, var_names: Optional[Sequence[str]] = None
    ) -> None:
        """Excludes variables from the weight decay of the inner optimizer.

        Args:
          var_list: the variables.
          var_names: strings; variables whose names contain one of them are excluded, too.
        """
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    @property
    def weights(self) -> List[Any]:
        """The variables, under Keras 2's name."""
        return list(self.variables)

    def get_weights(self) -> List[Any]:
        """Returns the values of `variables`, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the variables of this and of the inner optimizer.

        If the slots do not exist yet, their values are set when `build` creates them.

        Args:
          weights: arrays in the order of `variables`.
        """
        variables = self.variables
        for variable, value in zip(variables, weights):
            variable.assign(value)
        if len(weights) > len(variables) and not self.built:
            # Copies, because the arrays of an HDF5 file are invalid after Keras closes the file.
            self.__dict__["_waiting_weights"] = [np.array(each) for each in weights]

    # Files of Keras 3 hold Keras's variables only. A user's own loss scale has others.

    def _save_with_loss_scale(self, store: Any) -> None:
        self._family.base.save_own_variables(self, store)
        for name, variable in self._state_of_loss_scale():
            store[name] = variable.numpy()

    def _load_with_loss_scale(self, store: Any) -> None:
        names = set(store.keys())
        for name, variable in self._state_of_loss_scale():
            if name in names:
                names.remove(name)
                variable.assign(store[name])
        self._family.base.load_own_variables(self, {name: store[name] for name in names})

    def _state_of_loss_scale(self) -> List[Any]:
        weights = getattr(self._state.loss_scale, "_weights", {}) if self._state.decides else {}
        return [(f"loss_scale_{name}", variable) for (name, _), variable in weights.items()]

    @property
    def dynamic(self) -> bool:
        """Whether the loss scale is dynamic."""
        return self._state.dynamic

    @property
    def loss_scale(self) -> Any:
        """The current loss scale: a float32 tensor of shape `[]`."""
        return self._state()

    @property
    def dynamic_counter(self) -> Optional[Any]:
        """The variable that counts finite steps since the scale last changed; None if fixed."""
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
        """Returns the loss multiplied by the loss scale, as Keras 2 does.

        Args:
          loss: a float tensor, or a callable that returns one.

        Returns:
          The product, in the dtype of the loss. If `loss` is a callable, so is the result.
        """
        self._calls.note("get_scaled_loss")
        return scale_loss(loss, self._effective_scale)

    @do_not_convert
    def scale_loss(self, loss: Any) -> Any:
        """Returns the loss multiplied by the loss scale, as Keras 3 does before it calls `apply`.

        Args:
          loss: a float tensor.

        Returns:
          The product: float64 if the loss is float64, otherwise float32.
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
          grads: a list of float tensors, `IndexedSlices` (which remain sparse) and None (which
            remains None).
        """
        self._calls.note("get_unscaled_gradients")
        return unscale_gradients(list(grads), self._effective_scale())

    def _effective_scale(self) -> Any:
        """Returns the scale for Keras 2's methods: a subclass may override the property."""
        is_own = type(self).loss_scale is Keras3Wrapper.loss_scale
        return self._state() if is_own else self.loss_scale

    def _unscaled(self, grads: Sequence[Any]) -> List[Any]:
        return unscale_gradients(list(grads), self._state())

    @do_not_convert
    def minimize(self, loss: Any, var_list: Any, tape: Optional[Any] = None) -> Any:
        """Scales the loss, computes the gradients, unscales and applies them.

        Args:
          loss: a callable that returns the loss, or a tensor, which requires `tape`.
          var_list: the variables, or a callable that returns them.
          tape: the tape that recorded the loss tensor.
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
        """Applies the gradients if all of them are finite on all replicas.

        Args:
          grads_and_vars: pairs of a gradient, or None, and its variable. The gradients must be
            unscaled, unless the loss was scaled with `scale_loss`.
          **kwargs: the arguments `name`, `experimental_aggregate_gradients` and
            `skip_gradients_aggregation` of Keras 2.

        Returns:
          The variable that counts the steps.

        Raises:
          RuntimeError: whether the gradients are scaled cannot be determined.
          ValueError: every gradient is None, the call is not in a replica context, or the inner
            optimizer does not support gradients that are already summed over the replicas.
        """
        summed_by_caller = self._are_summed(kwargs)
        scaled = self._calls.applies_scaled()
        pairs = list(grads_and_vars)
        if pairs:
            pairs = as_pairs(pairs, type(self).__name__)
        gradients, variables = [each for each, _ in pairs], [each for _, each in pairs]
        if scaled and not summed_by_caller and all(each is not None for each in gradients):
            # Keras 3 does the same; so `fit` calls the `apply` of a subclass that overrides it.
            self._calls.note("scale_loss")
            self.apply(gradients, variables)
        else:
            unscaled = self._unscaled(gradients) if scaled else gradients
            self._apply_all(unscaled, variables, summed_by_caller)
        return self.iterations

    @do_not_convert
    def apply(self, grads: Iterable[Any], trainable_variables: Optional[Any] = None) -> None:
        """Unscales the gradients and applies them if all of them are finite on all replicas.

        Args:
          grads: the gradients of a loss that `scale_loss` scaled, and None.
          trainable_variables: their variables; if None, those that the optimizer was built for.

        Raises:
          RuntimeError: the gradients have already been unscaled.
          ValueError: every gradient is None, or the call is not in a replica context.
        """
        self._calls.check_apply()
        grads = list(grads)
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
            gradient if is_overwritten_with_gradient(variable) else unscaled
            for gradient, unscaled, variable in zip(grads, self._unscaled(grads), variables)
        ]
        self._apply_all(gradients, variables)

    def _are_summed(self, kwargs: Dict[str, Any]) -> bool:
        """Returns whether the gradients are already summed, by the arguments of Keras 2."""
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
            f"{type(self.inner_optimizer).__name__} of Keras 3 sums the gradients of all "
            "replicas itself and has no option that turns this off. Pass apply_gradients() each "
            "replica's own gradients, or divide the sums by strategy.num_replicas_in_sync."
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
        changed = [each for gradient, each in zip(gradients, variables) if gradient is not None]
        rest = StepArguments(variables, None, not summed_by_caller)
        own = tested  # not summed, for a loss scale that decides
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
            own if self._state.decides else tested,
            self._apply_inner,
            (gradients, rest),
            same_on_replicas=not summed_by_caller,
            late_check=check,
            watcher=watcher_of(self),
            variables=changed,
        )

    def _count(self) -> Any:
        if self.inner_optimizer.gradient_accumulation_steps:
            return None  # accumulation depends on the count, so a skipped step must not change it
        return self.inner_optimizer.iterations.value

    def _apply_inner(self, gradients: Sequence[Any], rest: StepArguments) -> None:
        if rest.aggregate:
            self.inner_optimizer.apply(gradients, rest.variables)
            return
        with keras_3_is_given_sums(self.inner_optimizer):
            self.inner_optimizer.apply(gradients, rest.variables)

    def get_config(self) -> Dict[str, Any]:
        """Returns the installed class's configuration, with `dynamic` added for a fixed scale."""
        return to_config(self)

    def __dir__(self) -> List[str]:
        inner = [name for name in dir(self.inner_optimizer) if not name.startswith("_")]
        return sorted({*super().__dir__(), *inner})

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("inner_optimizer")
        if inner is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            return getattr(inner, name)
        except AttributeError as error:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message) from error

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
