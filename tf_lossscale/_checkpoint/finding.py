"""Finds loss scales in a TensorFlow checkpoint, by its keys or by its objects.

The keys of `tf.train.Saver` are variable names. The keys of an object checkpoint
(`tf.train.Checkpoint`, SavedModel, Keras weights) cannot be used: a key is only the shortest path
to a variable, and differs between programs with the same optimizer. Such a checkpoint also holds
the graph of the objects, in which each class is recognized by its children. The layouts, which are
data, stand first; `keras_files` recognizes them in the files of Keras.
"""

import re
from typing import (
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

from tf_lossscale._types import Config, ObjectGraph, ObjectNode

LOSS_SCALE = "loss scale"
GOOD_STEPS = "good steps"
BAD_STEPS = "bad steps"


class Layout(NamedTuple):
    family: str
    """The name of the class for `convert --to`; empty for an unknown class."""
    written_by: str
    tensorflow: str
    """The versions that have the class or the layout."""
    restored_by: Tuple[str, ...]
    """The classes that can read it; the shim's classes come first."""
    roles: Dict[str, str]
    """The role of each variable, by the last part of its key; the scale comes first."""
    notes: Tuple[str, ...] = ()


class Variable(NamedTuple):
    """A variable of a loss scale; `value` is None if it is not a number."""

    key: str
    role: str
    dtype: str
    value: Optional[Union[int, float]]


class State(NamedTuple):
    layout: Layout
    variables: Tuple[Variable, ...]


class StoredOptimizer(NamedTuple):
    """An optimizer in a file: what it is, and what it has."""

    path: str
    """The attributes that lead to it in the program that wrote the file; "" in files of names."""
    written_by: str
    classes: Tuple[str, ...]
    """Its class; several if the file does not name it and they have the same slots; or none."""
    iterations: Optional[int]
    slots: Dict[str, int]
    """The number of slot variables, by their name."""
    hyperparameters: Config
    keras3: str
    """What a program on Keras 3 can take from it, and how."""


class Contents(NamedTuple):
    """The loss-scale state in a file; `path` may be the prefix of a TensorFlow checkpoint."""

    path: str
    format: str
    states: Tuple[State, ...]
    configured: Tuple[Config, ...] = ()
    """The loss-scale optimizers that the configuration in a model file describes."""
    optimizers: Tuple[StoredOptimizer, ...] = ()


_V1_ROLES = {"current_loss_scale": LOSS_SCALE, "good_steps": GOOD_STEPS}
_KERAS = "tf_lossscale.keras.mixed_precision[.experimental].LossScaleOptimizer"


def _layout(
    family: str,
    written_by: str,
    tensorflow: str,
    *restored_by: str,
    roles: Dict[str, str] = _V1_ROLES,
    notes: Tuple[str, ...] = (),
) -> Layout:
    return Layout(family, written_by, tensorflow, restored_by, roles, notes)


CONTRIB = _layout(
    "contrib",
    "ExponentialUpdateLossScaleManager of tf.contrib.mixed_precision",
    "1.15 and earlier",
    "tf_lossscale.contrib.mixed_precision.ExponentialUpdateLossScaleManager",
    "tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager (TensorFlow 1.15 and earlier)",
    roles={"loss_scale": LOSS_SCALE, "good_steps": GOOD_STEPS, "bad_steps": BAD_STEPS},
)

V1 = _layout(
    "v1",
    "DynamicLossScale, alone or in a MixedPrecisionLossScaleOptimizer",
    "1.14 and later",
    "tf_lossscale.compat.v1.mixed_precision.DynamicLossScale",
    "tf.compat.v1.mixed_precision.DynamicLossScale (2.4 and later; tf.train.experimental in "
    "1.14 and 1.15, tf.compat.v1.train.experimental in all)",
)

KERAS_NAMES = _layout(
    "keras",
    "LossScaleOptimizer of tf.keras, in graph mode",
    "1.14 and later",
    _KERAS,
    "LossScaleOptimizer of tf.keras, in graph mode",
    notes=("the variable names do not show which version of tf.keras wrote them",),
)

KERAS_1_14 = _layout(
    "keras",
    "tf.keras.mixed_precision.experimental.LossScaleOptimizer",
    "1.14 to 2.2",
    f"{_KERAS} around a Keras 2 optimizer (`legacy` from 2.11 on)",
    "tf.keras.mixed_precision.experimental.LossScaleOptimizer (TensorFlow 1.14 to 2.2)",
    notes=(
        "from this layout, the classes of TensorFlow 2.3 and later restore the loss scale and the "
        "slots, but not the iterations and hyperparameters of the optimizer; the classes "
        "of tf_lossscale restore everything",
    ),
)

KERAS_2_3 = _layout(
    "keras",
    "tf.keras.mixed_precision[.experimental].LossScaleOptimizer around a Keras 2 "
    "optimizer (`legacy` from 2.11 on)",
    "2.3 and later, tf_keras",
    f"{_KERAS} around the same",
    "tf.keras.mixed_precision.LossScaleOptimizer around the same (2.4 to 2.15, tf_keras; "
    ".experimental from 2.3 to 2.8)",
)

KERAS_2_11 = _layout(
    "keras",
    "tf.keras.mixed_precision.LossScaleOptimizer around a Keras 2 optimizer of 2.11 or "
    "later (not `legacy`)",
    "2.11 to 2.15, tf_keras",
    f"{_KERAS} around the same",
    "tf.keras.mixed_precision.LossScaleOptimizer around the same (2.11 to 2.15, tf_keras)",
)

KERAS_3 = _layout(
    "keras3",
    "keras.mixed_precision.LossScaleOptimizer of Keras 3",
    "2.16 and later",
    f"{_KERAS} around a Keras 3 optimizer",
    "keras.mixed_precision.LossScaleOptimizer of Keras 3 (also keras.optimizers)",
    roles={"dynamic_scale": LOSS_SCALE, "step_counter": GOOD_STEPS},
)

V1_OR_KERAS = _layout(
    "v1",
    f"LossScaleOptimizer of tf.keras before its first step, or {V1.written_by}",
    "1.14 and later",
    f"{_KERAS} around a Keras 2 optimizer (`legacy` from 2.11 on)",
    "tf.keras.mixed_precision[.experimental].LossScaleOptimizer around the same (1.14 to 2.15, "
    "tf_keras)",
    *V1.restored_by,
    notes=("all of them save the same until the optimizer has slots or a counter",),
)

UNKNOWN = _layout(
    "",
    "no class that tf-lossscale knows",
    "unknown",
    roles=dict.fromkeys(("loss_scale", "current_loss_scale", "dynamic_scale"), LOSS_SCALE),
)

# The families between which `convert` changes names.
NAMED: Dict[str, Layout] = {"contrib": CONTRIB, "v1": V1}

# The integer type of each class's counters; it distinguishes `good_steps` of different classes.
COUNTERS = {"contrib": "int32", "v1": "int64"}

# The key under which TensorFlow stores the object graph.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

_FLOATS = ("float16", "float32", "float64", "bfloat16")
_NAMES = set(CONTRIB.roles) | set(V1.roles)
_KEY = re.compile(r"(?P<scope>(?:.*/)?)(?P<name>[a-z_]+?)(?P<number>(?:_\d+)?)$")

# A loss scale: its layout, and the keys of its variables by the last part of their names.
Found = Tuple[Layout, Dict[str, str]]


class Entry(NamedTuple):
    dtype: str
    shape: Tuple[int, ...]


def parts_of(key: str) -> Tuple[str, str, str]:
    """Splits a key into scope, name, and the number that TensorFlow appends to a name in use."""
    match = _KEY.match(key)
    return (match["scope"], match["name"], match["number"]) if match else ("", key, "")


def by_name(tensors: Mapping[str, Entry]) -> Iterable[Found]:
    """Yields the loss-scale state in the keys of a file of names, which `tf.train.Saver` writes.

    Variables of one scope that have the names and types of a layout are that class. A scale that
    fits no layout is yielded, too, so that `inspect` shows it as unknown.
    """
    for keys in _groups(tensors):
        found: List[Found] = [
            (layout, {name: keys[name] for name in layout.roles})
            for layout in _layouts_by_name(keys, tensors)
        ]
        _add_unknown(found, keys, tensors)
        yield from found


def _groups(tensors: Mapping[str, Entry]) -> Iterable[Dict[str, str]]:
    """Returns the keys by name of scalars that are named like a loss scale, by their scope."""
    groups: Dict[Tuple[str, str], Dict[str, str]] = {}
    for key, entry in sorted(tensors.items()):
        scope, name, number = parts_of(key)
        if name in _NAMES and not entry.shape:
            groups.setdefault((scope, number), {})[name] = key
    return groups.values()


def _layouts_by_name(keys: Mapping[str, str], tensors: Mapping[str, Entry]) -> Iterator[Layout]:
    """Yields the layouts all of whose variables are in a group, with their types."""
    dtypes = {name: tensors[key].dtype for name, key in keys.items()}
    for family, layout in NAMED.items():
        scale, *counters = layout.roles
        types = {dtypes.get(counter) for counter in counters}
        if dtypes.get(scale) not in _FLOATS or types != {COUNTERS[family]}:
            continue
        # A Keras optimizer around it counts iterations, a v1 optimizer does not.
        yield KERAS_NAMES if layout is V1 and has_iterations(tensors) else layout


def has_iterations(tensors: Mapping[str, Entry]) -> bool:
    """Returns whether a file of names has the counter of an optimizer of Keras."""
    return any(
        key.split("/")[-1] in ("iter", "iteration") and entry == Entry("int64", ())
        for key, entry in tensors.items()
    )


def by_object(graph: ObjectGraph, tensors: Mapping[str, Entry]) -> Iterable[Found]:
    """Returns the loss-scale state of each object in an object graph, by the names of its children.

    An object whose children have the names of one layout is that class. A `DynamicLossScale` (`V1`)
    can also be a part of a Keras optimizer, and then has the layout of that. State that fits no
    layout is returned, too, so that `inspect` shows it as unknown.
    """
    children = list(map(_children_of, graph.nodes))
    keys_of_objects = [_keys_of_children(graph, names) for names in children]
    found: List[Found] = []
    for number, keys in enumerate(keys_of_objects):
        layout = _complete_layout(keys)
        if layout is None:
            continue
        keys_of_layout = {name: keys[name] for name in layout.roles}
        if layout is V1:
            layout = _layout_of(graph, children, number)  # Keras names the same variables
        found.append((layout, keys_of_layout))
    for keys in keys_of_objects:
        _add_unknown(found, keys, tensors)
    return found


def _keys_of_children(graph: ObjectGraph, children: Mapping[str, int]) -> Dict[str, str]:
    """Returns the keys of the variables among the children of an object, by name."""
    return {name: _key_of(graph.nodes[child]) for name, child in sorted(children.items())}


def _children_of(node: ObjectNode) -> Dict[str, int]:
    return {child.local_name: child.node_id for child in node.children}


def _key_of(node: ObjectNode) -> str:
    """Returns the key of the value of a variable; empty for another object."""
    attributes = (found for found in node.attributes if found.name == "VARIABLE_VALUE")
    return next((attribute.checkpoint_key for attribute in attributes), "")


def _complete_layout(keys: Mapping[str, str]) -> Optional[Layout]:
    """Returns the layout all of whose variables are children of an object."""
    layouts = (KERAS_3, CONTRIB, V1)
    return next((layout for layout in layouts if all(map(keys.get, layout.roles))), None)


def _add_unknown(found: List[Found], keys: Mapping[str, str], tensors: Mapping[str, Entry]) -> None:
    """Adds what is named like a loss scale, and is not among the known ones."""
    taken = {key for _, known in found for key in known.values()}
    for name, key in keys.items():
        entry = tensors.get(key)
        is_new = name in UNKNOWN.roles and key not in taken
        if is_new and entry and not entry.shape and entry.dtype in _FLOATS:
            taken.add(key)
            found.append((UNKNOWN, {name: key}))


def _layout_of(graph: ObjectGraph, children: Sequence[Mapping[str, int]], number: int) -> Layout:
    """Determines the layout of a `DynamicLossScale`, by the other children of its owner."""
    owners = (named for named in children if named.get("loss_scale") == number)
    layouts = (_layout_of_owner(graph, children, owner) for owner in owners)
    return next((layout for layout in layouts if layout is not V1), V1)


def _layout_of_owner(
    graph: ObjectGraph, children: Sequence[Mapping[str, int]], owner: Mapping[str, int]
) -> Layout:
    """Determines the layout by the counter of an optimizer, which exists from the first step on."""
    if "iter" in owner:
        return KERAS_2_3
    if "_iterations" in owner:
        return KERAS_2_11
    if len(owner) == 1:  # our class before its first step, or any object with a loss scale
        return V1_OR_KERAS
    inner = owner.get("base_optimizer")
    if inner is None:
        return V1
    if "iter" in children[inner]:
        return KERAS_1_14
    return V1_OR_KERAS if _is_empty(graph.nodes[inner]) else V1


def _is_empty(optimizer: ObjectNode) -> bool:
    return not optimizer.children and not optimizer.slot_variables
