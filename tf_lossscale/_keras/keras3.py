"""The wrapper of Keras 3 optimizers: the methods and update rules of Keras 2 on Keras 3's class."""

from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import numpy as np

from tf_lossscale._core.replicas import replica_count
from tf_lossscale._core.steps import report_loss
from tf_lossscale._core.wrapper import (
    as_pairs,
    require_replica_context,
    scale_loss,
    tape_for,
    unscale_gradients,
)
from tf_lossscale._keras.arguments import are_summed, refuse_unsupported
from tf_lossscale._keras.calls import ScalingCalls
from tf_lossscale._keras.state import Keras3State, make_state
from tf_lossscale._keras.steps import StepArguments, reduce_sum, step
from tf_lossscale._keras.wrapper import Forward, LossScaleWrapper
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.keras_optimizers import (
    build_as_apply_does,
    is_overwritten_with_gradient,
    keras_3_can_be_given_sums,
    keras_3_does_not_track,
    keras_3_is_given_sums,
    keras_3_takes_sums,
    overrides,
)

__all__ = ["Keras3Wrapper"]


_LARGEST_FLOAT32 = 3.4028234663852886e38
_OPTIONS = (
    "clipnorm",
    "clipvalue",
    "ema_momentum",
    "ema_overwrite_frequency",
    "global_clipnorm",
    "gradient_accumulation_steps",
    "use_ema",
    "weight_decay",
)


class _InnerOption(Forward):
    """Descriptor of an option of the inner optimizer.

    While the base class creates the wrapper's variables, it must see no options set. Otherwise the
    wrapper would have more variables than the installed class.
    """

    def __get__(self, wrapper: Any, owner: Any = None) -> Any:
        if wrapper is None or wrapper.__dict__.get("_forwards_options"):
            return super().__get__(wrapper, owner)
        return wrapper.__dict__.get("_own_options", {}).get(self.name)

    def __set__(self, wrapper: Any, value: Any) -> None:
        if wrapper.__dict__.get("_forwards_options"):
            super().__set__(wrapper, value)
        else:
            wrapper.__dict__.setdefault("_own_options", {})[self.name] = value


def _stored(
    name: str, documentation: str, before: Optional[Callable[[Any, Any], None]] = None
) -> Any:
    """Returns a property for an attribute that the constructor of the installed class sets."""

    def read(optimizer: Any) -> Any:
        if name not in optimizer.__dict__:
            message = f"{type(optimizer).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        return optimizer.__dict__[name]

    def write(optimizer: Any, value: Any) -> None:
        if before is not None:
            before(optimizer, value)
        optimizer.__dict__[name] = value

    return property(read, write, doc=documentation)


class Keras3Wrapper(LossScaleWrapper):
    """The API of the final class, for a Keras 3 optimizer.

    `apply` takes scaled gradients, as `fit` passes them. `apply_gradients` takes unscaled ones, as
    a Keras 2 loop passes them, unless the loss was scaled with Keras 3's `scale_loss`.

    Unlike the wrappers of Keras 2 optimizers it has variables of its own, as Keras 3's class has.
    """

    _inner_is_stored_as = "inner_optimizer"

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
        if not 1 <= initial <= _LARGEST_FLOAT32:
            raise ValueError(
                "On Keras 3 the loss scale is held between 1 and the largest finite float32, "
                f"{_LARGEST_FLOAT32}, but initial_scale is {initial}."
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

    # Attributes that the constructor of the installed class sets.

    inner_optimizer = _stored("inner_optimizer", "The wrapped optimizer.")
    dynamic_growth_steps = _stored(
        "dynamic_growth_steps",
        "Consecutive finite steps after which the loss scale doubles; None if it is fixed.",
    )

    def _before_initial_scale(self, value: float) -> None:
        if "_state" in self.__dict__:
            self._check(value)
            if self.dynamic and not self.built:  # the installed class reads it when it is built
                self.dynamic_scale.assign(value)

    initial_scale = _stored("initial_scale", "The initial loss scale.", _before_initial_scale)

    @property
    def _optimizer(self) -> Any:
        return self.inner_optimizer

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
            self.__dict__["_waiting_weights"] = [np.array(array) for array in weights]

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

    @classmethod
    def _unpickle_model(cls, file: Any) -> Any:
        # Keras copies an optimizer by saving it, and files name the final class for both of ours.
        copied = super()._unpickle_model(file)  # type: ignore[misc]  # Keras's class defines it
        copied.__class__ = cls
        return copied

    def __dir__(self) -> List[str]:
        inner = [name for name in dir(self.inner_optimizer) if not name.startswith("_")]
        return sorted({*super().__dir__(), *inner})

    @classmethod
    def _is_forwarded(cls, name: str) -> bool:
        # Before its constructor has run, Keras must not find the inner optimizer's `_tracker`.
        return not name.startswith("_")

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_forwards_options") and self._is_set_on_inner(name):
            setattr(self.inner_optimizer, name, value)
        else:
            super().__setattr__(name, value)

    def _note(self, method: str) -> None:
        self._calls.note(method)

    @do_not_convert
    def scale_loss(self, loss: Any) -> Any:
        """Returns the loss multiplied by the loss scale, as Keras 3 does before it calls `apply`.

        Args:
          loss: a float tensor.

        Returns:
          The product: float64 if the loss is float64, otherwise float32.
        """
        self._note("scale_loss")
        loss = tf.convert_to_tensor(loss)
        if loss.dtype not in (tf.float32, tf.float64):
            loss = tf.cast(loss, tf.float32)
        return scale_loss(report_loss(self, loss), self._state)

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
        watched = [
            variable if isinstance(variable, tf.Variable) else variable.value
            for variable in variables
        ]
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
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        if scaled and not summed_by_caller and all(gradient is not None for gradient in gradients):
            # Keras 3 does the same; so `fit` calls the `apply` of a subclass that overrides it.
            self._note("scale_loss")
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
        kwargs.pop("name", None)
        if not are_summed(**kwargs) or replica_count() == 1:
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
        build_as_apply_does(self, variables)
        if gradients:
            as_pairs(zip(gradients, variables), type(self).__name__)
        rest = StepArguments(variables, None, not summed_by_caller)
        own = [gradient for gradient in gradients if gradient is not None]
        summed = own
        if replica_count() > 1 and own and not summed_by_caller:
            summed = reduce_sum(own)
            if keras_3_takes_sums(self._family, self.inner_optimizer, variables):
                sums = iter(summed)
                gradients = [None if gradient is None else next(sums) for gradient in gradients]
                rest.aggregate = False
        step(self, own, summed, gradients, rest, same_on_replicas=not summed_by_caller)

    def _counter_of_skipped(self) -> Optional[Any]:
        if self.inner_optimizer.gradient_accumulation_steps:
            return None  # accumulation depends on the count, so a skipped step must not change it
        return self.inner_optimizer.iterations.value

    def _apply(self, gradients: Sequence[Any], rest: StepArguments) -> None:
        if not rest.aggregate:
            with keras_3_is_given_sums(self.inner_optimizer):
                self.inner_optimizer.apply(gradients, rest.variables)
        elif overrides(self._family, self.inner_optimizer, "apply_gradients"):
            # Keras 3's own class skips such an override. Classes written for Keras 2 have one, and
            # without a wrapper `fit` calls it on Keras 3, too. Keras's own calls `apply`.
            self.inner_optimizer.apply_gradients(list(zip(gradients, rest.variables)))
        else:
            self.inner_optimizer.apply(gradients, rest.variables)


for _name in _OPTIONS:
    setattr(Keras3Wrapper, _name, _InnerOption(_name))
