"""Restores checkpoints of Keras 2 optimizers into the wrapper of a Keras 3 optimizer.

`tf.train.Checkpoint.restore` walks the object graph of the file and the objects of the program at
the same time. Where the program's object has no child of a name, TensorFlow keeps the position in
the file for later. Keras 3 has other names than Keras 2, so without this module nothing of the
optimizer would be restored, and nothing would be said.

Here, the wrapper gets each such position at once. The names of all children in the file show which
optimizer has written it (`Layout`), and the position is restored into the variable that holds the
same value on Keras 3. Slots that do not exist yet are restored when `build` creates them.
"""

import functools
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

from tf_lossscale._checkpoint.layouts import Layout, layout_of
from tf_lossscale._keras.lost_values import Restored
from tf_lossscale._keras.optimizer_classes import (
    classes_alike,
    keras_class,
    named_classes,
    other_rules,
)
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.files import Trackable

# The lists of the optimizers of Keras 3, by the slot names of `OptimizerV2`. The first one that an
# optimizer has is its own: Adamax keeps "v" in `_u`.
_LISTS_OF_SLOTS: Dict[str, Tuple[str, ...]] = {
    "m": ("_momentums", "_m"),
    "v": ("_velocities", "_u"),
    "vhat": ("_velocity_hats",),
    "momentum": ("momentums", "_momentums"),
    "rms": ("_velocities",),
    "mg": ("_average_gradients",),
    "accumulator": ("_accumulators",),
    "linear": ("_linears",),
    "accum_grad": ("_accumulated_grads",),
    "accum_var": ("_accumulated_delta_vars",),
}

# Names in files of Keras 2, and the attribute of Keras 3 optimizers that has the same value.
_RENAMED = {
    "learning_rate": "_learning_rate",
    "momentum_cache": "_u_product",
    "momentums": "_momentums",  # of Lion; SGD still has `momentums`
}

# What the new-style optimizers of Keras 2 always save, if their class has it. Other lists depend on
# the options, such as `_velocity_hats`.
_ALWAYS_SAVED = ("_velocities", "_u", "_u_product", "_linears", "_accumulated_grads")

# The same of `OptimizerV2`, by the attribute of Keras 3: slots, variables and hyperparameters.
_SAVED_BY_V2 = {
    "rho": "rho",
    "_u_product": "momentum_cache",
    "_linears": "linear",
    "_accumulated_grads": "accum_grad",
}

# Single variables that `build` of a Keras 3 optimizer creates: of Nadam.
_CREATED_BY_BUILD = ("momentum_cache", "_u_product")

_ITERATIONS = ("iter", "_iterations")
"""The property, as the attribute is called `iterations` up to Keras 3.4."""

_LEARNING_RATES = ("learning_rate", "_learning_rate", "_current_learning_rate")

# What is restored by other names. From TensorFlow 2.3 on, `base_optimizer` has no values.
_WITHOUT_COUNTERPART = ("_variables", "_index_dict", "base_optimizer")


class DeferredSlot(NamedTuple):
    """A slot of a file whose variable does not exist yet."""

    name: str
    variable: Any  # of the program, which the slot belongs to
    position: Any


class Keras2Checkpoints:
    """Restores checkpoints into one wrapper."""

    def __init__(self, wrapper: Any) -> None:
        self._wrapper = wrapper
        self._slots: List[DeferredSlot] = []
        self._lists: Dict[str, Any] = {}  # positions, by the name of the list
        self._values: Dict[str, Any] = {}  # positions of what `build` creates, by the name
        # The file of the last restore, until the next step has looked for what is left of it.
        self._unchecked: Optional[Any] = None
        # The file that the last step was refused for, until another step goes on without it.
        self._refused: Optional[Any] = None
        self._later: List[Any] = []  # files of Keras 3 that were restored after it
        self._failure = ""  # why the restore ended with a part of the values only
        self._standing_in: List[Any] = []
        self._unsaved = _Unsaved(self)

    @property
    def _inner(self) -> Any:
        return self._wrapper.inner_optimizer

    def take(self, name: str, position: Any) -> bool:
        """Restores a child of the optimizer's node; returns whether it has been taken care of."""
        checkpoint = position.checkpoint
        node = _node_of(checkpoint, self._wrapper)
        if node is None:
            return False
        layout = layout_of(_children_of(node))
        if layout is Layout.KERAS_3:
            self._forget_optimizer(checkpoint)
            return self._restore_own(name, position)
        if checkpoint is not self._unchecked:
            self.forget()
            self._standing_in = []
            self._unchecked = checkpoint
            self._refuse_file_of_another_class(checkpoint)
        self._refused = None
        self._bind_own_variables(checkpoint)
        if name == "loss_scale":
            position.restore(self._alive(_ScaleOfKeras2(self._wrapper)))
        elif layout is Layout.INNER_IS_CHILD:
            if name != "base_optimizer":
                return False
            position.restore(self._alive(_InnerOfKeras2(self)))
        else:
            self.restore_child(name, position)
        return True

    def children(self, save_type: str) -> Dict[str, Any]:
        """Returns what keeps an object graph from being saved without values of the file before.

        A SavedModel is for inference, and needs no slots.
        """
        if save_type == "savedmodel":
            self._raise_if_lost()
            return {}
        is_incomplete = self._waits_for_build or self._failure or self._lost()
        return {"_unsaved_slots": self._unsaved} if is_incomplete else {}

    def check_save(self) -> None:
        """Raises a RuntimeError if slots of a file wait for `build`, or values have no variable."""
        if self._waits_for_build:
            raise RuntimeError(
                f"A checkpoint of Keras 2 was restored into the optimizer {self._title}, which is "
                "not built, so a file that is saved now would lack its slots. Before saving, call "
                "build(variables) of this optimizer with the variables that it trains, or take a "
                "step."
            )
        self._raise_if_lost()

    def forget(self) -> None:
        """Forgets the last restore, as another way has restored the optimizer with its model."""
        self._slots, self._lists, self._values = [], {}, {}
        self._unchecked = self._refused = None
        self._later, self._failure = [], ""

    def _forget_optimizer(self, checkpoint: Any) -> None:
        """Notes that a file of Keras 3 restores the optimizer; weights can still be lost."""
        self._slots, self._lists, self._values = [], {}, {}
        self._failure = ""
        if (self._unchecked or self._refused) and checkpoint not in self._later:
            self._later.append(checkpoint)

    @property
    def _title(self) -> str:
        return f"{type(self._inner).__name__} ({self._inner.name!r})"

    @property
    def _waits_for_build(self) -> bool:
        is_waiting = bool(self._slots or self._lists or self._values)
        return is_waiting and not self._inner.built

    def restore_child(self, name: str, position: Any) -> bool:
        """Restores a child of an optimizer of Keras 2 into the inner optimizer."""
        node = position.object_proto
        is_empty = not node.children and not node.attributes  # as the momentums of plain SGD
        if name in _WITHOUT_COUNTERPART or is_empty:
            return True
        if node.children:
            self._lists[name] = position
            self._restore_lists()
            return True
        if name in _LEARNING_RATES and self._has_schedule:
            if name == "_current_learning_rate":  # the last value of a schedule
                position.restore(self._alive(_Unused()))
            return True  # as on Keras 2, the schedule of the program counts
        if name == "_current_learning_rate":
            return True
        attribute = self._attribute(name)
        if name in _CREATED_BY_BUILD and not self._inner.built:
            self._values[name] = position
            return True
        is_variable = hasattr(attribute, "assign")
        target = attribute if is_variable else self._alive(_Hyperparameter(self, name))
        position.restore(target)
        return True

    def set_hyperparameter(self, name: str, value: float) -> None:
        """Sets a number of the inner optimizer, or raises a ValueError if it has no such number."""
        inner = self._inner
        if name == "decay" and value == 0:
            return  # Keras 3 has no such argument
        if isinstance(getattr(inner, name, None), (int, float)):
            self._wrapper._restore_on_inner(name, value)
        elif name == "decay" and self._has_schedule and keras_class(inner) != "Nadam":
            tf1.logging.warning(
                f"The checkpoint of Keras 2 has decay={value:g}, which {self._title} does not use, "
                "as the schedule of its learning rate counts."
            )
        else:
            self.refuse(
                f"The checkpoint has {name}={value} for the optimizer, which "
                f"{type(inner).__name__} of Keras 3 does not have. Use an optimizer, or a "
                "schedule of the learning rate, that does the same."
            )

    @property
    def _has_schedule(self) -> bool:
        return not hasattr(vars(self._inner).get("_learning_rate"), "assign")

    def _alive(self, standing_in: Any) -> Any:
        """Returns an object, which lives until the next restore: TensorFlow refers to it weakly."""
        self._standing_in.append(standing_in)
        return standing_in

    def slot(self, name: str, variable: Any, position: Any) -> Optional[Any]:
        """Returns the variable of a slot; None if it does not exist yet, and is restored later."""
        slots = self._list_of_slots(name)
        if self._inner.built and not slots:
            self.refuse(
                f"The checkpoint has the slot {name!r} for {_name(variable)}, but "
                f"{type(self._inner).__name__} of Keras 3 has no such slot. Restore it into an "
                "optimizer of the class, and with the options, that it was saved with."
            )
        index = self._index(variable)
        if not slots or index is None:
            self._slots.append(DeferredSlot(name, variable, position))
            return None
        return slots[index]

    def built(self) -> None:
        """Restores what has waited for the slots; called when they have been created."""
        if self._unchecked is not None and not self._later:
            self._refuse_file_of_another_class(self._unchecked)
        waiting, self._slots = self._slots, []
        for slot in waiting:
            variable = self.slot(slot.name, slot.variable, slot.position)
            if variable is not None:
                slot.position.restore(variable)
        values, self._values = self._values, {}
        for name, position in values.items():
            self.restore_child(name, position)
        self._restore_lists()

    def check(self) -> None:
        """Raises an error if a file of Keras 2 was restored without its slots; once, at a step.

        TensorFlow finds the slots by the variables that they belong to. The models of Keras 3 save
        their variables under other names than those of Keras 2.
        """
        checkpoint, self._unchecked = self._unchecked, None
        self._refused = checkpoint
        if checkpoint is not None:
            self._drop_slots_of_untrained_variables()
            self._raise_if_lost()
        self._refused = None
        self._later, self._failure = [], ""

    def refuse(self, message: str) -> NoReturn:
        """Raises a ValueError, and notes that the program has a part of the values only."""
        self._failure = message
        raise ValueError(message)

    def _raise_if_lost(self) -> None:
        """Raises a RuntimeError if the program does not have all values that it needs."""
        if self._failure:
            raise RuntimeError(
                "The last restore of a checkpoint of Keras 2 has failed, so that this program has "
                f"only a part of its values. {self._failure}"
            )
        lost = self._lost()
        if lost:
            shown = ", ".join(sorted(set(lost))[:6])
            raise RuntimeError(
                "A checkpoint of Keras 2 was restored, but only a part of it: this program has no "
                f"variables for some values ({shown}), or has them under other names, as models of "
                "Keras 3 do. Restore the file with "
                "tf_lossscale.checkpoints.restore(path, model, optimizer), and with partial=True "
                "if the program leaves out values on purpose."
            )

    def _lost(self) -> List[str]:
        """Returns names of slots and weights that the last file has, and the program does not.

        Before `build`, it is not known which variables are trained.
        """
        checkpoint = self._unchecked or self._refused
        if checkpoint is None:
            return []
        restored = Restored(checkpoint, self._later)
        trained = self._inner._trainable_variables if self._inner.built else []
        lost = restored.lost_values(trained)
        node = _node_of(checkpoint, self._wrapper)
        if node is not None and not self._later:
            slots = restored.unmatched_slots(_holders(checkpoint, node))
            if slots and (not self._inner.built or restored.has_variables_without_value(trained)):
                lost += slots
        return lost

    def _drop_slots_of_untrained_variables(self) -> None:
        """Drops the slots of variables that the built optimizer does not train."""
        dropped, self._slots = self._slots, []
        if dropped:
            names = sorted({_name(slot.variable) for slot in dropped})
            tf1.logging.warning(
                f"The checkpoint of Keras 2 has slots for variables that {self._title} does not "
                f"train ({', '.join(names[:6])}), and these slots are dropped."
            )

    def _refuse_file_of_another_class(self, checkpoint: Any) -> None:
        """Raises a ValueError for slots that mean something else to the class of the program."""
        node = _node_of(checkpoint, self._wrapper)
        if node is None or not self._inner.built:
            return
        is_new = layout_of(_children_of(node)) is Layout.NEW
        if is_new and _is_before_first_step(checkpoint, node):
            return
        missing = self._missing_lists(node) if is_new else self._missing_names(checkpoint, node)
        if missing or (is_new and self._has_other_velocities(checkpoint, node)):
            what = f"no {', '.join(missing)}" if missing else "slots of another class"
            self.refuse(
                f"The checkpoint of Keras 2 has {what} for {type(self._inner).__name__}. Restore "
                "it into an optimizer of the class that it was saved with."
            )
        self._check_class(checkpoint, node)

    def _check_class(self, checkpoint: Any, node: Any) -> None:
        """Raises a ValueError for a file of a class with the same slots, and another rule.

        Logs a line where the file does not name the class, as nothing else in it differs, and where
        the class of Keras 3 has another rule than that of the same name.
        """
        is_new = layout_of(_children_of(node)) is Layout.NEW
        trained = self._inner._trainable_variables
        for difference in [] if is_new else other_rules(self._inner, trained):
            tf1.logging.warning(f"A checkpoint of Keras 2 was restored; {difference}.")
        name = keras_class(self._inner)
        alike = classes_alike(name, is_new)
        holders = _holders(checkpoint, node)
        has_slots = is_new or any(holder.slot_variables for holder in holders)
        if not alike or not has_slots:
            return
        named = named_classes(checkpoint.object_graph_proto.nodes, holders)
        if not named:
            tf1.logging.warning(
                f"The checkpoint of Keras 2 does not say whether {' or '.join(alike)} wrote it, so "
                f"the run goes on with {name}. Check that the old program had the same class."
            )
        elif name.lower() not in named:
            self.refuse(
                f"The checkpoint of Keras 2 was saved with the optimizer {min(named)}, and the "
                f"program has {type(self._inner).__name__}. Restore it into an optimizer of the "
                "class that it was saved with."
            )

    def _missing_lists(self, node: Any) -> List[str]:
        names = _children_of(node)
        attributes = vars(self._inner)
        return [name for name in _ALWAYS_SAVED if name in attributes and name not in names]

    def _missing_names(self, checkpoint: Any, node: Any) -> List[str]:
        """Returns what `OptimizerV2` of this class saves with its slots, and is not in the file."""
        holders = _holders(checkpoint, node)
        slots = {slot.slot_name for holder in holders for slot in holder.slot_variables}
        found = slots.union(*map(_children_of, holders))
        attributes = vars(self._inner)
        wanted = [name for attribute, name in _SAVED_BY_V2.items() if attribute in attributes]
        is_sgd = not slots and "rho" not in wanted  # or a file from before the first step
        return [] if is_sgd else [name for name in wanted if name not in found]

    def _has_other_velocities(self, checkpoint: Any, node: Any) -> bool:
        """Returns whether only one of file and program has RMSprop.

        `_velocities` is the "v" of Adam and the "velocity" of RMSprop.
        """
        lists = {child.local_name: child.node_id for child in node.children}
        if "_velocities" not in lists or "_velocities" not in vars(self._inner):
            return False
        is_of_rmsprop = _holds(checkpoint, lists["_velocities"], "velocity")
        return is_of_rmsprop != hasattr(self._inner, "rho")

    def _restore_own(self, name: str, position: Any) -> bool:
        found = self._wrapper._own_dependency(name)
        if found is None:
            return False
        position.restore(found)
        return True

    def _bind_own_variables(self, checkpoint: Any) -> None:
        """Tells TensorFlow that the variables that Keras 2 does not have need no value.

        `assert_existing_objects_matched` looks for each variable among the objects that have been
        matched, by their number in the file; no number is negative.
        """
        without_value = [self._unsaved, *self._wrapper._variables[:2]]
        if not self._wrapper.dynamic:
            attributes = vars(self._wrapper)  # not by the property, which notes that it is read
            without_value += [attributes["step_counter"], attributes["dynamic_scale"]]
        for variable in without_value:
            # A file may have several optimizers, so each variable has a number of its own.
            checkpoint.object_by_proto_id[-id(variable)] = variable

    def _attribute(self, name: str) -> Optional[Any]:
        """Returns the attribute of the inner optimizer with the value that `name` has in files."""
        if name in _ITERATIONS:
            return self._inner.iterations
        attributes = vars(self._inner)
        if name in attributes and name != "learning_rate":
            return attributes[name]
        return attributes.get(_RENAMED.get(name, name))

    def _restore_lists(self) -> None:
        """Restores the lists of slots, once the slots exist."""
        if not self._inner.built:
            return
        lists, self._lists = self._lists, {}
        for name, position in lists.items():
            slots = self._attribute(name)
            # An option that is not set leaves its list empty. SGD is the exception: new-style ones
            # save momentums that they never read.
            is_expected = bool(slots) or name == "momentums"
            if not is_expected or not isinstance(slots, (list, tuple)):
                self.refuse(
                    f"The checkpoint has the slots {name!r}, which {type(self._inner).__name__} of "
                    "Keras 3 does not have. Restore it into an optimizer of the class, and with "
                    "the options, that it was saved with."
                )
            for child in position.object_proto.children:
                index = int(child.local_name)
                slot = slots[index] if index < len(slots) else None
                target = self._alive(_Unused()) if slot is None else slot
                position.create_child_position(child.node_id).restore(target)

    def _list_of_slots(self, name: str) -> Optional[Sequence[Any]]:
        if not self._inner.built:
            return None
        lists = _LISTS_OF_SLOTS.get(name, ())
        found = (vars(self._inner).get(attribute) for attribute in lists)
        return next((slots for slots in found if slots is not None), None)

    def _index(self, variable: Any) -> Optional[int]:
        if not self._inner.built:
            return None
        try:
            return int(self._inner._get_variable_index(variable))
        except KeyError:
            return None


class Positions(Dict[str, List[Any]]):
    """Passes on the positions in files for children that an object does not have.

    Stands in for `_deferred_dependencies`, the dictionary of lists in which TensorFlow keeps them.
    """

    def __init__(self, take: Callable[[str, Any], bool], kept: Dict[str, List[Any]]) -> None:
        super().__init__()
        self._take = take  # returns whether it has taken care of a position; others are kept
        self._kept = kept

    def setdefault(self, name: str, default: Any = None) -> Any:
        return _Appended(functools.partial(self._take, name), self._kept, name)

    def pop(self, name: str, *default: Any) -> Any:
        return self._kept.pop(name, *default)


class _Appended:
    def __init__(self, take: Callable[[Any], bool], kept: Dict[str, List[Any]], name: str) -> None:
        self._take = take
        self._kept = kept
        self._name = name

    def append(self, position: Any) -> None:
        if not self._take(position):
            self._kept.setdefault(self._name, []).append(position)


class _Children(Trackable):
    """An object with children of the names of Keras 2, for the time of a restore."""

    def _named(self) -> Dict[str, Any]:
        raise NotImplementedError

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> Dict[str, Any]:
        return self._named()

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._named().get(name)


class _ScaleOfKeras2(_Children):
    """The loss scale under the names that it has in files of Keras 2."""

    def __init__(self, wrapper: Any) -> None:
        self._variables = vars(wrapper)  # not by the property, which notes that it is read
        self._is_dynamic = wrapper.dynamic

    def _named(self) -> Dict[str, Any]:
        if not self._is_dynamic:
            return {}
        return {
            "current_loss_scale": self._variables["dynamic_scale"],
            "good_steps": self._variables["step_counter"],
        }


class _InnerOfKeras2(Trackable):
    """The inner optimizer, as files of TensorFlow 1.14 to 2.2 have it."""

    def __init__(self, checkpoints: Keras2Checkpoints) -> None:
        self._checkpoints = checkpoints

    def _lookup_dependency(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return None

    @property
    def _deferred_dependencies(self) -> Any:
        return Positions(self._checkpoints.restore_child, {})

    def _create_or_restore_slot_variable(
        self, slot_variable_position: Any, slot_name: str, variable: Any, **kwargs: Any
    ) -> Optional[Any]:
        return self._checkpoints.slot(slot_name, variable, slot_variable_position)


class _Hyperparameter(Trackable):
    """A hyperparameter, which Keras 2 has in a variable, and Keras 3 in a Python number."""

    def __init__(self, checkpoints: Keras2Checkpoints, name: str) -> None:
        self._checkpoints = checkpoints
        self._name = name

    def _serialize_to_tensors(self) -> Dict[str, Any]:
        return {"VARIABLE_VALUE": tf.zeros([])}

    def _restore_from_tensors(self, restored_tensors: Dict[str, Any]) -> None:
        value = float(restored_tensors["VARIABLE_VALUE"].numpy())
        self._checkpoints.set_hyperparameter(self._name, value)


class _Unsaved(Trackable):
    """A child of an optimizer that has not all values of a file of Keras 2; it cannot be saved."""

    def __init__(self, checkpoints: Keras2Checkpoints) -> None:
        self._checkpoints = checkpoints

    def _serialize_to_tensors(self) -> Dict[str, Any]:
        self._checkpoints.check_save()
        return {}

    def _restore_from_tensors(self, restored_tensors: Dict[str, Any]) -> None:
        del restored_tensors


class _Unused(Trackable):
    """A slot of Keras 2 that this optimizer does not need with its options.

    SGD of TensorFlow 2.11 and later writes slots without a momentum, too, and never reads them.
    """

    def _serialize_to_tensors(self) -> Dict[str, Any]:
        return {"VARIABLE_VALUE": tf.zeros([])}

    def _restore_from_tensors(self, restored_tensors: Dict[str, Any]) -> None:
        del restored_tensors


def _node_of(checkpoint: Any, bound: Any) -> Optional[Any]:
    """Returns the node of a file that `bound` is restored from."""
    for number, found in list(checkpoint.object_by_proto_id.items()):
        if found is bound:
            return checkpoint.object_graph_proto.nodes[number]
    return None


def _holds(checkpoint: Any, number: int, word: str) -> bool:
    """Returns whether the first variable of a list in a file has `word` in its name."""
    nodes = checkpoint.object_graph_proto.nodes
    for child in nodes[number].children:
        for attribute in nodes[child.node_id].attributes:
            return word in attribute.full_name.split("/")
    return False


def _is_before_first_step(checkpoint: Any, node: Any) -> bool:
    """Returns whether a file of a new-style optimizer has no slots, as these come with `build`."""
    nodes = checkpoint.object_graph_proto.nodes
    children = {child.local_name: nodes[child.node_id] for child in node.children}
    lists = [name for name, child in children.items() if "0" in _children_of(child)]
    if set(lists) - set(_WITHOUT_COUNTERPART):
        return False
    key = children["_iterations"].attributes[0].checkpoint_key
    return int(tf.train.load_variable(checkpoint.save_path_string, key)) == 0


def _holders(checkpoint: Any, node: Any) -> List[Any]:
    """Returns the nodes that can have the slots of an optimizer: its own, and its children."""
    nodes = checkpoint.object_graph_proto.nodes
    return [node, *(nodes[child.node_id] for child in node.children)]


def _children_of(node: Any) -> List[str]:
    return [child.local_name for child in node.children]


def _name(variable: Any) -> str:
    return repr(getattr(variable, "name", variable))
