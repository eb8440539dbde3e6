"""Plans the copy of a checkpoint of Keras 2 that `tf.train.Checkpoint` restores on Keras 3.

Keras 3 has the slots of an optimizer in lists, in the order of the variables that the program
passes to it. Files of the new-style optimizers of Keras 2 have such lists, too. In files of
`OptimizerV2`, a slot belongs to a variable. These slots get the order of
`tf.Module.trainable_variables`, but only if all variables have different shapes: then TensorFlow
refuses the copy in a program with another order, and nothing is restored into another slot.

Keras 3 stores the layers of a Keras model under other names, so no copy of such a file is made.
"""

import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from tf_lossscale._checkpoint import plans
from tf_lossscale._checkpoint.finding import OBJECT_GRAPH, Entry
from tf_lossscale._checkpoint.layouts import Layout
from tf_lossscale._checkpoint.plans import Plan
from tf_lossscale._restore.optimizer_state import OptimizerState, optimizers_in, state_of
from tf_lossscale._restore.slots import SLOTS, classes_with
from tf_lossscale._restore.stored import Stored, Tensor

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_LAYERS = re.compile(r"(layer(_with_weights)?-\d+|keras_api)$")
_WEIGHTS_OF_LAYERS = {
    *("kernel", "bias", "embeddings", "recurrent_kernel", "depthwise_kernel", "pointwise_kernel"),
    *("gamma", "beta", "moving_mean", "moving_variance"),
}
_ITERATIONS = ("_iterations", "iterations")
"""The second one up to Keras 3.4."""


class CannotCopy(Exception):
    """No copy would be right for certain; the message is the reason."""


def plan(stored: Stored, tensors: Mapping[str, Entry], graph: Any) -> Plan:
    """Plans the copy for Keras 3, and changes the object graph; raises CannotCopy."""
    states = [state_of(stored, number) for number in optimizers_in(stored)]
    of_optimizers: Set[int] = set().union(*(state.nodes for state in states))
    _check_models(stored, of_optimizers)
    copy = _Copy(stored, graph)
    notices: List[str] = []
    for state in states:
        notices += _convert(copy, state, of_optimizers)
    return copy.planned(tensors, notices)


def _check_models(stored: Stored, of_optimizers: Set[int]) -> None:
    for number in stored.below(0, of_optimizers):
        for name, child in stored.nodes[number].children.items():
            tensor = stored.nodes[child].tensor
            is_weight = tensor is not None and tensor.name.endswith("/" + name)
            if _LAYERS.match(name) or (is_weight and name in _WEIGHTS_OF_LAYERS):
                raise CannotCopy(
                    f"{stored.path_of(child)} is of a Keras model, whose variables have other "
                    "names on Keras 3"
                )


class _Copy:
    """The objects of the copy, and the tensors that it has under other keys."""

    def __init__(self, stored: Stored, graph: Any) -> None:
        self.stored = stored
        self._graph = graph
        self._numbers = {
            node.tensor.key: number
            for number, node in enumerate(stored.nodes)
            if node.tensor is not None
        }
        self._keys: Dict[str, str] = {}
        self._made: List[plans.Tensor] = []

    def emptied(self, number: int) -> "_Place":
        """Removes all children and slots of an object."""
        del self._graph.nodes[number].children[:]
        del self._graph.nodes[number].slot_variables[:]
        return _Place(self, number, self.stored.path_of(number))

    def add_child(self, parent: int, child: Optional[int], *names: str) -> int:
        """Adds a child under each of the names, which is a new object if it is None."""
        if child is None:
            child = len(self._graph.nodes)
            self._graph.nodes.add()
        for name in names:
            self._graph.nodes[parent].children.add(local_name=name, node_id=child)
        return child

    def move(self, parent: int, tensor: Tensor, key: str, *names: str) -> None:
        """Adds a variable of the file as a child, and gives its tensor another key."""
        number = self.add_child(parent, self._numbers[tensor.key], *names)
        for attribute in self._graph.nodes[number].attributes:
            attribute.checkpoint_key = key
        self._keys[tensor.key] = key

    def make(self, parent: int, dtype: str, key: str, *names: str) -> None:
        """Adds a variable that is 0."""
        number = self.add_child(parent, None, *names)
        self._graph.nodes[number].attributes.add(name="VARIABLE_VALUE", checkpoint_key=key)
        self._made.append(plans.Tensor(key, dtype, None, 0))

    def planned(self, tensors: Mapping[str, Entry], notices: Sequence[str]) -> Plan:
        """Returns what to write: the tensors that the copy still refers to, and its object graph.

        Tensors to which no object of the copy refers are dropped.
        """
        plans.remove_unreachable(self._graph)
        wanted = {
            attribute.checkpoint_key for node in self._graph.nodes for attribute in node.attributes
        }
        keys = {key: self._keys.get(key, key) for key in sorted(tensors) if key != OBJECT_GRAPH}
        kept = [(old, new) for old, new in keys.items() if new in wanted]
        copied = [plans.Tensor(new, tensors[old].dtype, old) for old, new in kept]
        text = self._graph.SerializeToString()
        changes = [(old, new if new in wanted else "(dropped)") for old, new in keys.items()]
        changes += [("(new)", f"{tensor.key} {tensor.dtype} 0") for tensor in self._made]
        return Plan(
            [*copied, *self._made, plans.Tensor(OBJECT_GRAPH, "string", None, text)],
            [(old, new) for old, new in changes if old != new],
            notices,
        )


class _Place(NamedTuple):
    """An object of the copy, and its path, with which the keys of its variables begin."""

    copy: _Copy
    number: int
    path: str

    def add(self, *names: str) -> "_Place":
        number = self.copy.add_child(self.number, None, *names)
        return _Place(self.copy, number, self._join(names[0]))

    def refer(self, name: str, number: int) -> None:
        self.copy.add_child(self.number, number, name)

    def move(self, tensor: Optional[Tensor], *names: str) -> None:
        if tensor is not None:
            self.copy.move(self.number, tensor, self._join(names[0]) + _VALUE, *names)

    def make(self, dtype: str, *names: str) -> None:
        self.copy.make(self.number, dtype, self._join(names[0]) + _VALUE, *names)

    def _join(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


def _convert(copy: _Copy, state: OptimizerState, of_optimizers: Set[int]) -> Iterator[str]:
    """Gives an optimizer the children of Keras 3; yields what the user needs to know."""
    path = copy.stored.path_of(state.node)
    values = _hyperparameters(copy.stored, state)
    _check_optimizer(state, path, values)
    lists = _lists(state, path)
    order = [] if state.layout is Layout.NEW else _order(copy.stored, state, of_optimizers)
    outer = copy.emptied(state.node)
    outer.move(state.scale, "dynamic_scale")
    outer.move(state.good_steps, "step_counter")
    outer.make("int64", *_ITERATIONS)
    outer.make("float32", "_learning_rate")
    inner = outer.add("inner_optimizer")
    _move_inner(inner, state)
    for place in (outer, inner):
        place.add("_variables")
        trained = place.add("_trainable_variables")
        for index, number in enumerate(order):
            trained.refer(str(index), number)
    made = {name: inner.add(*names) for name, names in lists.items()}
    for slot in state.slots:
        position = slot.number if slot.variable is None else order.index(slot.variable)
        made[slot.name].move(slot.tensor, str(position))
    yield from _notices(copy.stored, state, path, order, values)


def _hyperparameters(stored: Stored, state: OptimizerState) -> Dict[str, float]:
    """Returns what Keras 3 has in Python numbers, which it does not save."""
    tensors = {
        name: value
        for name, value in state.hyperparameters.items()
        if isinstance(value, Tensor) and not value.shape and name != "learning_rate"
    }
    values = stored.read(list(tensors.values()))
    # The shortest number that is the same float32: 0.9, not 0.8999999761581421.
    return {name: float(str(value)) for name, value in zip(tensors, values)}


def _move_inner(inner: "_Place", state: OptimizerState) -> None:
    """Moves the variables that an optimizer has once."""
    assert isinstance(state.iterations, Tensor)
    inner.move(state.iterations, *_ITERATIONS)
    rate = state.hyperparameters.get("learning_rate")
    if isinstance(rate, Tensor):
        inner.move(rate, "_learning_rate")
    for tensor in state.singles.values():
        inner.move(tensor, "_u_product")


def _check_optimizer(state: OptimizerState, path: str, values: Mapping[str, float]) -> None:
    if state.layout is Layout.KERAS_3:
        raise CannotCopy(f"{path} is an optimizer of Keras 3 already")
    if state.scale is None or state.good_steps is None:
        raise CannotCopy(f"{path} has no dynamic loss scale")
    if not isinstance(state.iterations, Tensor):
        raise CannotCopy(f"{path} has no iterations")
    if values.get("decay", 0) != 0:
        raise CannotCopy(f"{path} has decay={values['decay']}, which Keras 3 does not have")


_CREATED_TWICE = {
    ("SGD", "momentums"),
    ("RMSprop", "_momentums"),
    ("RMSprop", "_average_gradients"),
}
"""Lists that `build` first sets to an empty one, in Keras 3.15: TensorFlow restores only that one,
so slots that wait for `build` are lost there without an error."""


def _lists(state: OptimizerState, path: str) -> Dict[str, Tuple[str, ...]]:
    """Returns the names that Keras 3 has for the list of each slot.

    They are several if the file does not say which class wrote it: a class finds its own.
    """
    names = sorted(state.slot_names)
    classes = _classes(state, names)
    if names and not classes:
        raise CannotCopy(f"{path} has the slots {', '.join(names)}, which no class of Keras 3 has")
    lists = {
        name: tuple(dict.fromkeys(_list_of(SLOTS[owner], name) for owner in classes))
        for name in names
    }
    for owner in classes:
        lost = [name for name in names if (owner, _list_of(SLOTS[owner], name)) in _CREATED_TWICE]
        if lost:
            raise CannotCopy(
                f"{owner} of Keras 3 restores {lost[0]} of {path} only if it is built before, and "
                "reports no error otherwise"
            )
    distinct = set().union(*lists.values())
    if len(distinct) != sum(map(len, lists.values())):
        raise CannotCopy(
            f"the file does not say which of {', '.join(classes)} {path} is, and Keras 3 has "
            "different lists for them"
        )
    return lists


def _classes(state: OptimizerState, names: Sequence[str]) -> List[str]:
    """Returns the classes that can have written the slots.

    New-style optimizers that were built without a name have the slots of RMSprop under the names
    of those of Adam, but the variables in them are called "velocity".
    """
    classes = classes_with(state.classes, names)
    if state.layout is not Layout.NEW or len(classes) == 1:
        return classes
    is_rmsprop = any("velocity" in slot.tensor.name.split("/") for slot in state.slots)
    return [owner for owner in classes if (owner == "RMSprop") == is_rmsprop]


def _list_of(slots: Mapping[str, Tuple[str, ...]], name: str) -> str:
    """Returns the list of a class of Keras 3 for a slot, or for a list, as any Keras calls it."""
    found = (lists[0] for slot, lists in slots.items() if name == slot or name in lists)
    return next(found, name)


def _order(stored: Stored, state: OptimizerState, of_optimizers: Set[int]) -> List[int]:
    """Returns the variables with slots in the order of `tf.Module.trainable_variables`.

    Raises:
      CannotCopy: a program may use another order without an error.
    """
    with_slots = {slot.variable for slot in state.slots}
    if not with_slots:
        return []
    variables = [
        number
        for number in dict.fromkeys(_in_module_order(stored, 0, set(of_optimizers)))
        if "float" in _tensor_of(stored, number).dtype
    ]
    by_shape: Dict[Tuple[int, ...], int] = {}
    for number in variables:
        shape = _tensor_of(stored, number).shape
        if shape in by_shape:
            first, second = stored.path_of(by_shape[shape]), stored.path_of(number)
            raise CannotCopy(
                f"Keras 3 stores slots in the order in which the program trains its variables, and "
                f"{first} and {second} have the same shape, so the wrong order would be no error"
            )
        by_shape[shape] = number
    names = {slot.name for slot in state.slots}
    if len(state.slots) != len(names) * len(with_slots) or not with_slots <= set(variables):
        raise CannotCopy(f"some variables lack slots of {stored.path_of(state.node)}")
    return [number for number in variables if number in with_slots]


def _tensor_of(stored: Stored, number: int) -> Tensor:
    tensor = stored.nodes[number].tensor
    assert tensor is not None
    return tensor


def _in_module_order(stored: Stored, number: int, seen: Set[int]) -> Iterator[int]:
    """Yields variables as `tf.Module` does: attributes by their names, then those of modules."""
    seen.add(number)
    modules: List[int] = []
    for child in _leaves(stored, number):
        if stored.nodes[child].tensor is not None:
            yield child
        else:
            modules.append(child)
    for module in modules:
        if module not in seen:
            yield from _in_module_order(stored, module, seen)


def _leaves(stored: Stored, number: int) -> Iterator[int]:
    """Yields the children of an object, in place of lists their elements."""
    children = stored.nodes[number].children
    is_list = bool(children) and all(map(str.isdigit, children))
    for name in sorted(children, key=int if is_list else None):
        child = children[name]
        below = stored.nodes[child].children
        if below and all(map(str.isdigit, below)):
            yield from _leaves(stored, child)
        else:
            yield child


def _notices(
    stored: Stored,
    state: OptimizerState,
    path: str,
    order: Sequence[int],
    values: Mapping[str, float],
) -> Iterator[str]:
    """Yields what the copy cannot say: numbers that Keras 3 does not store, the order of slots."""
    numbers = [f"{name}={value}" for name, value in values.items() if name != "decay"]
    if numbers:
        yield (f"Keras 3 does not store {', '.join(numbers)} of {path}; pass them to the optimizer")
    if order:
        yield (
            f"slots of {path} are in the order of tf.Module.trainable_variables: "
            f"{', '.join(map(stored.path_of, order))}. In a program that trains them in another "
            "order, restoring the copy is an error, as all shapes differ"
        )
    elif state.slots:
        yield (
            f"slots of {path} are in the order of the program that wrote the file; pass the "
            "variables in that order"
        )
