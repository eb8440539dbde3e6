"""The program's optimizers: where each kind keeps what a file has."""

import contextlib
import functools
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_lossscale._restore.program import is_variable
from tf_lossscale._restore.slots import SLOTS
from tf_lossscale._restore.stored import RestoreError
from tf_lossscale._types import Array, Optimizer, SavedObject, Variable, Variables
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.files import Trackable
from tf_lossscale._versions.keras import KerasKind, keras_family

# What an optimizer has for each trained variable if an option is set: `use_ema`, and
# `gradient_accumulation_steps`.
ACCUMULATED = "_accumulated_gradients"
_OPTIONAL_LISTS = ("_model_variables_moving_average", ACCUMULATED)

_RENAMED = {"lr": "learning_rate"}
_OF_CONFIGS_ONLY = (
    *("name", "amsgrad", "epsilon", "centered", "nesterov", "jit_compile", "is_legacy_optimizer"),
    *("weight_decay", "clipnorm", "global_clipnorm", "clipvalue", "use_ema", "ema_momentum"),
    *("ema_overwrite_frequency", "initial_accumulator_value", "loss_scale_factor"),
)


class Assignment(NamedTuple):
    """Where a hyperparameter of the program is kept."""

    variable: Optional[Variable]  # None for a Python number
    read: Callable[[], Array]
    assign: Callable[[Array], object]


class ProgramOptimizer:
    """An optimizer of the program, wrapped in a loss-scale optimizer or not."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.outer = optimizer
        self.inner = _innermost(optimizer)
        family = keras_family(self.inner)
        if family is None:
            raise RestoreError(
                f"{type(optimizer).__name__} is not a Keras optimizer. restore() reads the state "
                "of Keras optimizers; pass the one of the model."
            )
        self.kind = family.kind

    def as_built_copy(self) -> "ProgramOptimizer":
        """Returns an optimizer that can be built in place of this one: a copy, with no variables.

        That is this one itself if it has slots already, or if its class cannot be made from its
        configuration, as some classes of users cannot.
        """
        if self.has_slots:
            return self
        try:
            with self._scope():
                copied = ProgramOptimizer(type(self.outer).from_config(self.outer.get_config()))
        except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError):
            return self
        # A configuration has the name of a class, which another one may have, too.
        return copied if type(copied.inner) is type(self.inner) else self

    @property
    def has_slots(self) -> bool:
        """Whether the optimizer was built, for some variables at least."""
        if self.kind is KerasKind.LEGACY:
            return bool(self.inner._slots)
        if self.kind is KerasKind.NEW:
            return bool(getattr(self.inner, "_built", False))
        return bool(self.inner.built and self.outer.built)

    @property
    def class_name(self) -> str:
        return type(self.inner).__name__

    @property
    def known_class(self) -> str:
        """The name of Keras's own class that the optimizer is, or is derived from; or ""."""
        names = (base.__name__ for base in type(self.inner).__mro__)
        return next((name for name in names if name in SLOTS), "")

    def build(self, variables: Variables) -> None:
        """Creates the slots for variables, and all other variables of the optimizer."""
        variables = list(variables)
        if self.kind is KerasKind.LEGACY:
            self.inner.iterations  # noqa: B018 - the property creates the variable
            self.inner._create_hypers()
            self.inner._create_slots(variables)
            return
        with self._scope():
            if self.kind is KerasKind.NEW:
                self.inner.build(variables)
            elif not self.inner.built or not self.outer.built:
                self.outer.build(variables)

    def _scope(self) -> ContextManager[object]:
        """Returns the scope of the strategy in which the optimizer was made, if in none by now."""
        strategy = vars(self.inner).get("_distribution_strategy")
        if strategy is None or tf.distribute.has_strategy():
            return contextlib.nullcontext()
        scope: ContextManager[object] = strategy.scope()
        return scope

    @property
    def trained(self) -> Optional[List[Variable]]:
        """The variables that the optimizer was built for, if it was and keeps them."""
        if self.kind is KerasKind.KERAS_3 and self.inner.built:
            return list(self.inner._trainable_variables)
        return None

    @property
    def has_index(self) -> bool:
        """Whether it was built for variables that it knows by their names, but does not keep."""
        return self.kind is KerasKind.NEW and self.has_slots

    def in_order_of_index(self, variables: Variables) -> List[Variable]:
        """Returns the variables that it was built for, in the order of their slots."""
        numbers = [(self._index(variable), variable) for variable in variables]
        known = [(number, variable) for number, variable in numbers if number is not None]
        return [variable for _, variable in sorted(known, key=lambda pair: pair[0])]

    @property
    def makes_slots_one_by_one(self) -> bool:
        """Whether slots belong to variables, and not to places in lists for all of them."""
        return self.kind is KerasKind.LEGACY

    @property
    def iterations(self) -> Variable:
        """The counter; `iterations` of one that accumulates gradients is a quotient of it."""
        found = vars(self.inner).get("_iterations")
        return found if is_variable(found) else self.inner.iterations

    @property
    def steps_of_accumulation(self) -> int:
        """After how many iterations the variables change: `gradient_accumulation_steps`, or 1."""
        return getattr(self.inner, "gradient_accumulation_steps", None) or 1

    def slot_names(self) -> Dict[str, Sequence[str]]:
        """Returns the slots of this class, and the lists in which later optimizers have them."""
        return dict(SLOTS.get(self.known_class, {}))

    def resolve(self, name: str) -> str:
        """Returns the name that this class has for a slot or a list of a file."""
        for slot, lists in self.slot_names().items():
            if name == slot or name in lists:
                return slot
        return name

    def slot(self, name: str, variable: Variable) -> Optional[Variable]:
        """Returns the variable of a slot, or None if this optimizer has no such slot."""
        if self.kind is KerasKind.LEGACY:
            if name not in self.inner.get_slot_names():
                return None
            try:
                return self.inner.get_slot(variable, name)
            except KeyError:
                return None
        slots = self._list(name)
        index = self._index(variable)
        if slots is None or index is None or index >= len(slots):
            return None
        return slots[index]

    def slots(self, variables: Variables) -> List[Tuple[str, Variable, Variable]]:
        """Returns the name, the variable and the slot variable of each slot."""
        names = self._names_of_slots()
        found = []
        for name in names:
            for variable in variables:
                slot = self.slot(name, variable)
                if slot is not None:
                    found.append((name, variable, slot))
        return found

    def _names_of_slots(self) -> List[str]:
        if self.kind is KerasKind.LEGACY:
            return list(self.inner.get_slot_names())
        names = list(self.slot_names()) or _lists_of_variables(self.inner)
        return names + [name for name in _OPTIONAL_LISTS if name not in names]

    def single(self, name: str) -> Optional[Variable]:
        """Returns the variable that Nadam has once, under its name in any Keras."""
        del name
        attributes = vars(self.inner)
        found = attributes.get("_u_product", attributes.get("_m_cache"))
        return found if is_variable(found) else None

    def _list(self, name: str) -> Optional[Variables]:
        attributes = vars(self.inner)
        for attribute in (*self.slot_names().get(name, ()), name):
            if isinstance(attributes.get(attribute), (list, tuple)):
                found: Variables = attributes[attribute]
                return found
        return None

    def _index(self, variable: Variable) -> Optional[int]:
        try:
            if self.kind is KerasKind.NEW:
                return int(self.inner._index_dict[self.inner._var_key(variable)])
            return int(self.inner._get_variable_index(variable))
        except KeyError:
            return None

    def hyperparameter(self, name: str, value: float) -> Optional[Assignment]:
        """Returns where a value of a file belongs; None where there is nothing to set.

        Raises:
          RestoreError: this class has no such hyperparameter, and the value is not its neutral one.
        """
        name = _RENAMED.get(name, name)
        if name in ("learning_rate", "decay") and self.has_schedule:
            return None  # as on Keras 2, the schedule of the program counts
        if name == "decay" and value == 0:
            name = "decay" if self.kind is KerasKind.LEGACY else ""
        if not name:
            return None
        inner = self.inner
        if self.kind is KerasKind.LEGACY:
            if name in inner._hyper:
                set_value = functools.partial(inner._set_hyper, name)
                return Assignment(None, lambda: _number(inner._hyper[name]), set_value)
        elif name == "learning_rate":
            rate: Any = vars(inner).get("_learning_rate")
            return Assignment(rate, rate.numpy, rate.assign)
        elif isinstance(getattr(inner, name, None), (int, float)):
            self._refuse_momentum(name, value)
            set_value = functools.partial(self._set_number, name)
            return Assignment(None, lambda: getattr(inner, name), set_value)
        if name in _OF_CONFIGS_ONLY or self._same_by_default(name, value):
            return None
        raise self._without_place(name, value)

    def _without_place(self, name: str, value: float) -> RestoreError:
        """Returns the error for a hyperparameter that this class does not have."""
        remedy = "Use the optimizer class that the file was saved with"
        if name == "decay":
            remedy = (
                "Pass the schedule that does the same as learning_rate=: "
                f"InverseTimeDecay(initial_learning_rate, decay_steps=1, decay_rate={value:g})"
            )
        return RestoreError(
            f"the optimizer has {name}={value} in the file, which {self.class_name} of the program "
            f"does not have. {remedy}"
        )

    def _refuse_momentum(self, name: str, value: float) -> None:
        """Raises a RestoreError for a momentum, if the optimizer was built without its slots."""
        if name == "momentum" and value and not self.inner.momentum and not self._list(name):
            raise RestoreError(
                f"the optimizer has momentum={value:g} in the file, and {self.class_name} of the "
                f"program none. Pass momentum={value:g} to it"
            )

    def _set_number(self, name: str, value: float) -> None:
        """Sets a hyperparameter; our classes log what functions that are traced do not see."""
        if vars(self.outer).get("_optimizer") is self.inner and hasattr(
            type(self.outer), "_restore_on_inner"
        ):
            self.outer._restore_on_inner(name, value)
        else:
            setattr(self.inner, name, value)

    def forget_other_restore(self) -> None:
        """Lets our wrapper forget what TensorFlow's own `restore` did not find a variable for."""
        forget = getattr(type(self.outer), "_forget_restore", None)
        if forget is not None:
            forget(self.outer)

    def note_of_number(self, assignment: Assignment, name: str, value: float) -> Optional[str]:
        """Returns what to write in the program if it has another value than the file."""
        if assignment.variable is not None or self.kind is KerasKind.LEGACY:
            return None  # checkpoints of the program have it
        known = float(assignment.read())
        if np.float32(known) == np.float32(value):
            return None
        return (
            f"{name} is {value:g} now, as in the file, and was {known:g}: pass {name}={value:g} to "
            "the optimizer, because its checkpoints do not have it, and functions that traced a "
            "step before keep the old value"
        )

    def _same_by_default(self, name: str, value: float) -> bool:
        """Returns whether a class without a hyperparameter computes what the value means."""
        return name in ("momentum", "l2_shrinkage_regularization_strength") and value == 0

    @property
    def learning_rate(self) -> float:
        """The learning rate, unless it is a schedule."""
        if self.kind is KerasKind.LEGACY:
            return float(_number(self.inner._hyper["learning_rate"]))
        return float(self.inner.learning_rate)

    @property
    def has_schedule(self) -> bool:
        if self.kind is KerasKind.LEGACY:
            return callable(self.inner._hyper.get("learning_rate"))
        return not hasattr(vars(self.inner).get("_learning_rate"), "assign")

    def scale(self) -> Tuple[Optional[Variable], Optional[Variable]]:
        """Returns the variables of a dynamic loss scale, and of its counter; or two None."""
        attributes = vars(self.outer)
        if is_variable(attributes.get("dynamic_scale")):
            if not getattr(self.outer, "dynamic", True):
                return None, None
            return attributes["dynamic_scale"], attributes["step_counter"]
        if not isinstance(self.outer, Trackable):  # without a scale, on Keras 3.0
            return None, None
        owner = children_of(self.outer).get("loss_scale")
        if not isinstance(owner, Trackable):
            return None, None
        owner._maybe_initialize_trackable()  # 1.15 creates its list late
        # By this hook, TensorFlow restores. The lists of children lack these variables of its own
        # classes, from 2.9 on.
        names = ("current_loss_scale", "good_steps")
        scale, good_steps = (owner._lookup_dependency(name) for name in names)
        return scale, good_steps


def _lists_of_variables(optimizer: Optimizer) -> List[str]:
    return [
        name
        for name, value in vars(optimizer).items()
        if name not in ("_variables", "_trainable_variables")
        if isinstance(value, (list, tuple)) and value and all(map(is_variable, value))
    ]


def _innermost(optimizer: Optimizer) -> Optimizer:
    while True:
        attributes = vars(optimizer)
        inner = attributes.get("_optimizer", attributes.get("inner_optimizer"))
        if inner is None or not hasattr(inner, "get_config"):
            return optimizer
        optimizer = inner


def is_optimizer(value: object) -> bool:
    """Whether an object is a Keras optimizer, wrapped in a loss-scale optimizer or not."""
    if not hasattr(value, "get_config") or not hasattr(value, "apply_gradients"):
        return False
    return keras_family(_innermost(value)) is not None


def children_of(value: SavedObject) -> Dict[str, SavedObject]:
    """Returns what a checkpoint saves below an object, by name."""
    if hasattr(Trackable, "_checkpoint_dependencies"):  # up to TensorFlow 2.8
        value._maybe_initialize_trackable()  # 1.15 creates its list late
        return {child.name: child.ref for child in value._checkpoint_dependencies}
    return dict(value._trackable_children())


def _number(value: object) -> Array:
    return value.numpy() if hasattr(value, "numpy") else value
