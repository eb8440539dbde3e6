"""The attributes, variables and files of the wrapper of Keras 3 optimizers."""

import types
import warnings
from typing import IO, Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from tf_lossscale._core.finite import all_finite
from tf_lossscale._core.minimum import minimum_of
from tf_lossscale._core.shown_names import methods_shown_as
from tf_lossscale._keras.arguments import NAME_ON_KERAS_3, OPTIONS_OF_KERAS_3
from tf_lossscale._keras.keras2_checkpoints import Keras2Checkpoints, Positions
from tf_lossscale._keras.step_style import Call, StepCalls, note_overrides
from tf_lossscale._keras.wrapper import Forward, InVariables, LossScaleWrapper
from tf_lossscale._replicas.agreement import assign_first_replica, copy_first_replica
from tf_lossscale._types import (
    CheckpointPosition,
    Class,
    KerasStore,
    Nest,
    Operation,
    Optimizer,
    SavedObject,
    ScaleState,
    Tensor,
    Variable,
    Variables,
)
from tf_lossscale._versions.base import do_not_convert, tf
from tf_lossscale._versions.callers import called_by_keras
from tf_lossscale._versions.keras_optimizers import keras_3_does_not_track

_LARGEST_FLOAT32 = 3.4028234663852886e38


class _Keras3State(InVariables):
    """The scale in the variables that Keras 3 saves, with the minimum and maximum of Keras 2."""

    def __init__(self, optimizer: Optimizer, multiplier: float, minimum: float) -> None:
        self._optimizer = optimizer
        self.dynamic: bool = optimizer.dynamic_growth_steps is not None
        self.multiplier = multiplier
        self._minimum_scale = minimum

    loss_scale: Any = None  # no `LossScale` holds it
    saved: Any = None  # Keras 3 saves the variables itself
    initial_scale = Forward("initial_scale")
    growth_steps = Forward("dynamic_growth_steps")  # it can be set on the optimizer

    # What programs read of `_loss_scale`, which up to TensorFlow 2.3 was a `LossScale`.
    initial_loss_scale = _loss_scale_value = Forward("initial_scale")
    increment_period = Forward("dynamic_growth_steps")

    @property
    def counter(self) -> Optional[Variable]:
        return self._optimizer.step_counter.value if self.dynamic else None

    @property
    def current_loss_scale(self) -> Variable:
        # Not by the property, which notes that the program reads the scale.
        return vars(self._optimizer)["dynamic_scale"].value

    @property
    def _current_loss_scale(self) -> Variable:
        return self.current_loss_scale

    @property
    def _num_good_steps(self) -> Optional[Variable]:
        return self.counter

    def get_config(self) -> Dict[str, Any]:
        """The config of the `LossScale` that scales like this."""
        if not self.dynamic:
            return {"loss_scale_value": self.initial_scale}
        return {
            "initial_loss_scale": self.initial_scale,
            "increment_period": self.growth_steps,
            "multiplier": self.multiplier,
        }

    def __float__(self) -> float:
        return float(self())

    def __call__(self) -> Tensor:
        if not self.dynamic:
            return tf.convert_to_tensor(self.initial_scale, dtype=tf.float32)
        return super().__call__()

    @do_not_convert
    def update(self, grads: Nest) -> Tuple[Optional[Operation], Union[bool, Tensor]]:
        """Updates the scale; returns an operation, and whether to apply the unscaled gradients."""
        if not self.dynamic:
            return tf.no_op(), True
        finite = all_finite(
            [gradient for gradient in tf.nest.flatten(grads) if gradient is not None]
        )
        return self.advance(finite), finite


def _stored(name: str, doc: str) -> property:
    """Returns a property for an attribute that the constructor of the installed class sets."""

    def read(optimizer: Optimizer) -> Any:
        if name not in optimizer.__dict__:
            raise AttributeError(name)  # Python then calls `__getattr__`, whose error has a message
        return optimizer.__dict__[name]

    def write(optimizer: Optimizer, value: Any) -> None:
        optimizer.__dict__[name] = value

    return property(read, write, doc=doc)


class _Variables(list):
    """A list that can also be called, as on Keras 2: `optimizer.variables()`."""

    def __call__(self) -> List[Variable]:
        return list(self)


@methods_shown_as("LossScaleOptimizer")
class Keras3Attributes(LossScaleWrapper):
    """Base class of `Keras3Wrapper`: all but the scaling and the steps, with its own variables."""

    # `super()` is the installed class, which mypy does not know: hence each `type: ignore[misc]`.

    # Before its constructor has run, Keras must not find the inner optimizer's `_tracker`.
    _is_not_forwarded: Any = staticmethod(lambda name: name.startswith("_"))
    _waiting_weights: Optional[KerasStore] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        note_overrides(cls)

    def _set_up(self, inner: Optimizer, state: ScaleState) -> None:
        """Initializes Keras's class around `inner`, with the variables of the loss scale.

        They exist from here on, while Keras creates its own in `build`.
        """
        initial: Any = state.initial_scale
        if state.decides:
            with tf.init_scope():
                initial = float(state())
        else:
            self._check(initial, minimum_of(state))
        installed: Class = self._family.installed_final
        settings = {"initial_scale": initial, "dynamic_growth_steps": state.growth_steps}
        name = self.__dict__.pop("_given_name", None) or NAME_ON_KERAS_3
        installed.__init__(self, inner, name=name, **settings)
        # Created here rather than at the first step, so that no function is traced with a constant
        # scale. The order must be as in the installed class, because it determines the file layout.
        self.step_counter = self.add_variable(
            shape=(), dtype="int", initializer="zeros", name="step_counter"
        )
        self.dynamic_scale = self.add_variable(
            shape=(), dtype="float32", initializer="ones", name="dynamic_scale"
        )
        self.dynamic_scale.assign(initial)
        # Of the instance, until it is built: Keras's warnings about files would otherwise name a
        # line of the shim.
        self.__dict__["load_own_variables"] = self._load_before_build
        if state.decides:
            self._state = state
            self._track_trackable(state.saved, "loss_scale")
            self.__dict__.update(
                save_own_variables=self._save_with_loss_scale,
                load_own_variables=self._load_with_loss_scale,
            )
        else:
            multiplier = getattr(state, "multiplier", 2.0)
            self._state = _Keras3State(self, multiplier, minimum_of(state))
        self._calls = StepCalls(vars(self)["dynamic_scale"].value)
        self.__dict__["_checkpoints"] = Keras2Checkpoints(self)
        self._forwards_options = True

    def _check(self, initial: float, minimum: float) -> None:
        smallest = min(1.0, minimum)
        if not smallest <= initial <= _LARGEST_FLOAT32:
            raise ValueError(
                f"On Keras 3 the loss scale is held between {smallest:g} and the largest finite "
                f"float32, {_LARGEST_FLOAT32}, but initial_scale is {initial}."
            )

    def build(self, var_list: Variables) -> None:
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
        if not self._state.decides:
            self.__dict__.pop("load_own_variables", None)
        if self._waiting_weights:
            self._set_waiting(**self.__dict__.pop("_waiting_weights"))
        self._checkpoints.built()
        copy_first_replica(variable.value for variable in self.inner_optimizer.variables)

    @do_not_convert
    def _note(self, call: Call) -> None:
        self._calls.note(call)

    # Checkpoints: which object of the program a child in a file is restored into.

    def _lookup_dependency(
        self, name: str, *args: object, **kwargs: object
    ) -> Optional[SavedObject]:
        # Files of Keras 2 have these names, too, for other variables: see `keras2_checkpoints`.
        if name in ("_iterations", "_learning_rate", "_variables"):
            return None
        return super()._lookup_dependency(name, *args, **kwargs)  # type: ignore[misc]

    def _own_dependency(self, name: str) -> Optional[SavedObject]:
        """Returns the child of this name in files of Keras 3."""
        return super()._lookup_dependency(name)  # type: ignore[misc]

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: object
    ) -> Dict[str, SavedObject]:
        children = super()._trackable_children(save_type, **kwargs)  # type: ignore[misc]
        checkpoints = self.__dict__.get("_checkpoints")
        return children if checkpoints is None else {**children, **checkpoints.children(save_type)}

    @property
    def _deferred_dependencies(self) -> Dict[str, List[CheckpointPosition]]:
        kept = super()._deferred_dependencies  # type: ignore[misc]
        if "_checkpoints" not in self.__dict__:
            return kept  # within the constructor
        return Positions(self._checkpoints.take, kept)

    def _create_or_restore_slot_variable(
        self,
        slot_variable_position: CheckpointPosition,
        slot_name: str,
        variable: Variable,
        **kwargs: object,
    ) -> Optional[Variable]:
        """Returns the slot of a file of Keras 2, which TensorFlow then restores."""
        return self._checkpoints.slot(slot_name, variable, slot_variable_position)

    @property
    def iterations(self) -> Variable:
        """The variable that counts steps, including skipped ones."""
        return self.inner_optimizer.iterations

    @iterations.setter
    def iterations(self, variable: Variable) -> None:
        # Up to Keras 3.4, the base class creates its own, unused counter under this name. From 3.5
        # on, setting the inner optimizer's counter is an AttributeError.
        self._owner_of_options.iterations = variable

    def _set_inner(self, inner: Optimizer) -> None:
        self.__dict__["_optimizer"] = inner

    inner_optimizer = vars(LossScaleWrapper)["inner_optimizer"].setter(_set_inner)
    dynamic_growth_steps = _stored(
        "dynamic_growth_steps",
        "Consecutive finite steps after which the loss scale doubles; None if it is fixed.",
    )

    def _set_initial_scale(self, value: float) -> None:
        if "_state" in self.__dict__:
            self._check(value, self.minimum_scale)
            if self.dynamic and not self.built:  # the installed class reads it when it is built
                self.dynamic_scale.assign(value)
        self.__dict__["initial_scale"] = value

    initial_scale = _stored("initial_scale", "The initial loss scale.").setter(_set_initial_scale)

    @property
    def _owner_of_options(self) -> Optimizer:
        # While the base class creates the wrapper's variables, it must see no options set, or the
        # wrapper would have more variables than the installed class.
        if self.__dict__.get("_forwards_options"):
            return self.inner_optimizer
        unset = types.SimpleNamespace(**dict.fromkeys(OPTIONS_OF_KERAS_3))
        return self.__dict__.setdefault("_own_options", unset)

    def exclude_from_weight_decay(
        self, var_list: Optional[Variables] = None, var_names: Optional[Sequence[str]] = None
    ) -> None:
        """Excludes variables from the weight decay of the inner optimizer.

        Args:
          var_list: the variables.
          var_names: strings; variables whose names contain one of them are excluded, too.
        """
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    @property
    def dynamic_scale(self) -> Variable:
        """The Keras 3 variable that holds the scale: float32, of shape `[]`.

        A step that scales its loss by hand with this name, which Keras 2 does not have, is a step
        of Keras 3: `apply_gradients` divides its gradients by the scale.
        """
        if "dynamic_scale" not in self.__dict__:
            raise AttributeError("dynamic_scale")  # within the constructor
        if "_calls" in self.__dict__ and not called_by_keras():
            self._note(Call.READ_DYNAMIC_SCALE)
        return self.__dict__["dynamic_scale"]

    @dynamic_scale.setter
    def dynamic_scale(self, variable: Variable) -> None:
        self.__dict__["dynamic_scale"] = variable

    @property
    def variables(self) -> List[Variable]:
        """The variables in the order of Keras 2: `iterations`, then others of the inner optimizer.

        Those of the loss scale and of Keras's base class come last. The list can also be called, as
        a method of Keras 2. Keras itself gets its own order, which its files have.
        """
        if called_by_keras():
            return super().variables  # type: ignore[misc]  # the installed class defines it
        return _Variables([*self.inner_optimizer.variables, *reversed(self._variables)])

    @property
    def weights(self) -> List[Variable]:
        """The list `variables`, under another name of Keras 2."""
        return list(self.variables)

    def get_weights(self) -> List[np.ndarray]:
        """Returns the values of `variables`, as NumPy arrays."""
        return [variable.numpy() for variable in self.variables]

    def set_weights(self, weights: Sequence[Variable]) -> None:
        """Sets the variables of this and of the inner optimizer.

        If the slots do not exist yet, their values are set when `build` creates them.

        Args:
          weights: arrays in the order of `variables`.

        Raises:
          ValueError: the number or a shape is wrong; then nothing is set.
        """
        values, own = list(weights), len(self._variables)
        if not called_by_keras():
            values = [*reversed(values[-own:]), *values[:-own]]
        self._set_in_keras_order(values)

    def _set_in_keras_order(self, values: List[np.ndarray]) -> None:
        variables = [*self._variables, *self.inner_optimizer.variables]
        are_for_slots = len(values) > len(variables) and not self.built
        self._check_shapes(variables, values, are_for_slots)
        for variable, value in zip(variables, values):
            variable.assign(value)
        if are_for_slots:
            # Copies, because the arrays of an HDF5 file are invalid after Keras closes the file.
            copies = [np.array(value) for value in values]
            self.__dict__["_waiting_weights"] = {"values": copies, "are_set": len(variables)}

    def _set_waiting(self, values: List[np.ndarray], are_set: int) -> None:
        """Sets the slots, and not what a program may have changed since, as the learning rate."""
        variables = [*self._variables, *self.inner_optimizer.variables]
        self._check_shapes(variables, values, are_for_slots=False)
        for variable, value in zip(variables[are_set:], values[are_set:]):
            assign_first_replica(variable.value, value)

    @staticmethod
    def _check_shapes(
        variables: List[Variable], values: List[np.ndarray], are_for_slots: bool
    ) -> None:
        shapes = [tuple(variable.shape) for variable in variables]
        given = [np.shape(value) for value in values]
        if given[: len(shapes)] != shapes or not (are_for_slots or len(given) == len(shapes)):
            raise ValueError(
                f"set_weights() was given {len(given)} arrays, of shapes {given}, but there are "
                f"{len(shapes)} variables, including the loss scale's, of shapes {shapes}."
            )

    def save_own_variables(self, store: KerasStore) -> None:
        """Saves the variables of this and of the inner optimizer, for files of Keras.

        Args:
          store: a dictionary, or a group of an HDF5 file.
        """
        self._checkpoints.check_save()
        super().save_own_variables(store)  # type: ignore[misc]

    def load_own_variables(self, store: KerasStore) -> None:
        """Loads the variables of this and of the inner optimizer from a file of Keras.

        Args:
          store: a dictionary, or a group of an HDF5 file.
        """
        self._load_variables(store)

    def _load_variables(self, store: KerasStore) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._family.base.load_own_variables(self, store)
        for warning in caught:  # nothing has been loaded
            warnings.warn(warning.message, stacklevel=3)
        if not caught:
            self._forget_restore()

    def _forget_restore(self) -> None:
        self._checkpoints.forget()

    def _load_before_build(self, store: KerasStore) -> None:
        """Loads what a file has for an optimizer whose slots do not exist yet.

        Keras's own method loads nothing then, and warns.
        """
        expected = len(self._variables) + len(self.inner_optimizer.variables)
        if len(store.keys()) > expected:
            self._set_in_keras_order([store[str(index)] for index in range(len(store.keys()))])
            self._forget_restore()
        else:
            self._load_variables(store)

    # Files of Keras 3 hold Keras's variables only. A user's own loss scale has others.

    def _save_with_loss_scale(self, store: KerasStore) -> None:
        self._checkpoints.check_save()
        self._family.base.save_own_variables(self, store)
        for name, variable in self._state_of_loss_scale():
            store[name] = variable.numpy()

    def _load_with_loss_scale(self, store: KerasStore) -> None:
        values = dict(store)
        for name, variable in self._state_of_loss_scale():
            if name in values:
                variable.assign(values.pop(name))
        self._load_variables(values)

    def _state_of_loss_scale(self) -> List[Variable]:
        weights = getattr(self._state.loss_scale, "_weights", {})
        return [(f"loss_scale_{name}", variable) for (name, _), variable in weights.items()]

    @classmethod
    def _unpickle_model(cls, file: IO[bytes]) -> Optimizer:
        # Keras copies an optimizer by saving it, and files name the final class for both of our
        # classes.
        copied = super()._unpickle_model(file)  # type: ignore[misc]  # Keras's class defines it
        copied.__class__ = cls
        return copied

    def __dir__(self) -> List[str]:
        inner = [name for name in dir(self.inner_optimizer) if not name.startswith("_")]
        return sorted({*super().__dir__(), *inner})

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_forwards_options") and self._is_set_on_inner(name):
            self._set_on_inner(name, value)
        else:
            super().__setattr__(name, value)


for _name in OPTIONS_OF_KERAS_3:
    setattr(Keras3Attributes, _name, Forward(_name, "_owner_of_options"))
