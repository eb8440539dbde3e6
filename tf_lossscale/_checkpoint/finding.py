"""Finds loss scales in a TensorFlow checkpoint, by its keys or by its objects.

The keys of `tf.train.Saver` are variable names. The keys of an object checkpoint
(`tf.train.Checkpoint`, SavedModel, Keras weights) cannot be used: a key is only the shortest path
to a variable, and differs between programs with the same optimizer. Such a checkpoint also holds
the graph of the objects, in which each class is recognized by its children.
"""

import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._checkpoint.layouts import (
    CONTRIB,
    COUNTERS,
    KERAS_1_14,
    KERAS_2_3,
    KERAS_2_11,
    KERAS_3,
    KERAS_NAMES,
    UNKNOWN,
    V1,
    Layout,
)

__all__ = ["OBJECT_GRAPH", "Entry", "Found", "Node", "by_name", "by_object", "parts_of"]

# The key under which TensorFlow stores the object graph.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

_NAMES = set(CONTRIB.roles) | set(V1.roles)
_KEY = re.compile(r"(?P<scope>(?:.*/)?)(?P<name>[a-z_]+?)(?P<number>(?:_\d+)?)$")


class Entry(NamedTuple):
    """The index entry of a tensor."""

    dtype: str
    shape: Tuple[int, ...]


class Found(NamedTuple):
    """A loss scale: its layout, and the keys of its variables by the last part of their names."""

    layout: Layout
    keys: Dict[str, str]


class Node(NamedTuple):
    """An object: its children (number of the node by name), and the key of its value, if any."""

    children: Dict[str, int]
    key: Optional[str]


def parts_of(key: str) -> Tuple[str, str, str]:
    """Splits a key into scope, name, and the number that TensorFlow appends to a name in use."""
    match = _KEY.match(key)
    if match is None:
        return "", key, ""
    return match.group("scope"), match.group("name"), match.group("number")


def by_name(tensors: Mapping[str, Entry]) -> List[Found]:
    """Returns the loss scales in a checkpoint whose keys are variable names."""
    groups: Dict[Tuple[str, str], Dict[str, str]] = {}
    for key, entry in sorted(tensors.items()):
        scope, name, number = parts_of(key)
        if name in _NAMES and not entry.shape:
            groups.setdefault((scope, number), {})[name] = key
    return [found for keys in groups.values() for found in _in_group(keys, tensors)]


def _in_group(keys: Dict[str, str], tensors: Mapping[str, Entry]) -> List[Found]:
    found = []
    if _has(keys, tensors, "contrib", "loss_scale", ("good_steps", "bad_steps")):
        found.append(Found(CONTRIB, {name: keys[name] for name in CONTRIB.roles}))
    if _has(keys, tensors, "v1", "current_loss_scale", ("good_steps",)):
        layout = KERAS_NAMES if _has_keras_iterations(tensors) else V1
        found.append(Found(layout, {name: keys[name] for name in V1.roles}))
    taken = {key for each in found for key in each.keys.values()}
    for name, key in keys.items():
        if name in UNKNOWN.roles and key not in taken and _is_float(tensors[key]):
            found.append(Found(UNKNOWN, {name: key}))
    return found


def _has(
    keys: Dict[str, str],
    tensors: Mapping[str, Entry],
    family: str,
    scale: str,
    counters: Sequence[str],
) -> bool:
    return (
        scale in keys
        and _is_float(tensors[keys[scale]])
        and all(name in keys and tensors[keys[name]].dtype == COUNTERS[family] for name in counters)
    )


def _is_float(entry: Entry) -> bool:
    return entry.dtype in ("float16", "float32", "float64", "bfloat16")


def _has_keras_iterations(tensors: Mapping[str, Entry]) -> bool:
    """Whether the file holds a Keras optimizer, as v1 optimizers do not count iterations."""
    return any(
        key.split("/")[-1] in ("iter", "iteration") and entry == Entry("int64", ())
        for key, entry in tensors.items()
    )


def by_object(nodes: Sequence[Node], tensors: Mapping[str, Entry]) -> List[Found]:
    """Returns the loss scales in an object checkpoint."""
    owners = _owners(nodes)
    found = []
    for number, node in enumerate(nodes):
        if _has_children(nodes, node, KERAS_3):
            found.append(_found(nodes, node, KERAS_3))
        elif _has_children(nodes, node, CONTRIB):
            found.append(_found(nodes, node, CONTRIB))
        elif _has_children(nodes, node, V1):
            found.append(_found(nodes, node, _layout_of(nodes, owners.get(number, ()))))
    taken = {key for each in found for key in each.keys.values()}
    for name, key in _named(nodes, UNKNOWN):
        entry = tensors.get(key)
        if key not in taken and entry and not entry.shape and "float" in entry.dtype:
            taken.add(key)
            found.append(Found(UNKNOWN, {name: key}))
    return found


def _named(nodes: Sequence[Node], layout: Layout) -> Iterator[Tuple[str, str]]:
    for node in nodes:
        for name, number in sorted(node.children.items()):
            key = nodes[number].key
            if name in layout.roles and key is not None:
                yield name, key


def _has_children(nodes: Sequence[Node], node: Node, layout: Layout) -> bool:
    return all(
        name in node.children and nodes[node.children[name]].key is not None
        for name in layout.roles
    )


def _found(nodes: Sequence[Node], node: Node, layout: Layout) -> Found:
    keys = {name: nodes[node.children[name]].key for name in layout.roles}
    return Found(layout, {name: key for name, key in keys.items() if key is not None})


def _owners(nodes: Sequence[Node]) -> Dict[int, List[Node]]:
    """Returns, for each object, the objects that refer to it as `loss_scale`."""
    owners: Dict[int, List[Node]] = {}
    for node in nodes:
        if "loss_scale" in node.children:
            owners.setdefault(node.children["loss_scale"], []).append(node)
    return owners


def _layout_of(nodes: Sequence[Node], owners: Sequence[Node]) -> Layout:
    """Determines the layout of the owner of a `DynamicLossScale`, by its other children."""
    for owner in owners:
        if "iter" in owner.children:
            return KERAS_2_3
        if "_iterations" in owner.children:
            return KERAS_2_11
        inner = owner.children.get("base_optimizer")
        if inner is not None and "iter" in nodes[inner].children:
            return KERAS_1_14
    return V1
