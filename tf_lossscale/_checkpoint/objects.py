"""Finds loss scales in an object checkpoint (`tf.train.Checkpoint`, SavedModel, Keras weights).

Such a checkpoint holds the graph of the objects. Its keys cannot be used: a key is only the
shortest path to a variable, and differs between programs with the same optimizer.
"""

from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._checkpoint.layouts import (
    CONTRIB,
    KERAS_1_14,
    KERAS_2_3,
    KERAS_2_11,
    KERAS_3,
    UNKNOWN,
    V1,
    Layout,
)
from tf_lossscale._checkpoint.names import Entry, Found

__all__ = ["Node", "find"]


class Node(NamedTuple):
    """An object: its children (number of the node by name), and the key of its value, if any."""

    children: Dict[str, int]
    key: Optional[str]


def find(nodes: Sequence[Node], tensors: Mapping[str, Entry]) -> List[Found]:
    """Returns the loss scales in a checkpoint.

    Args:
      nodes: the graph of its objects.
      tensors: the index entries, by key.
    """
    owners = _owners(nodes)
    found = []
    for number, node in enumerate(nodes):
        if _has(nodes, node, KERAS_3):
            found.append(_found(nodes, node, KERAS_3))
        elif _has(nodes, node, CONTRIB):
            found.append(_found(nodes, node, CONTRIB))
        elif _has(nodes, node, V1):
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


def _has(nodes: Sequence[Node], node: Node, layout: Layout) -> bool:
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
