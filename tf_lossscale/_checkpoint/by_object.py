"""Plans the conversion of a checkpoint of objects.

TensorFlow restores such a checkpoint by the graph of objects in it, so this graph is rewritten. One
conversion loses nothing: Keras of TensorFlow 1.14 to 2.2 stored the inner optimizer as a child of
the loss-scale optimizer (layout A), and later Keras stores one optimizer with the variables of both
(layout B).
"""

from typing import Any, Dict, List, Mapping, Sequence

from tf_lossscale._checkpoint.errors import CheckpointError
from tf_lossscale._checkpoint.names import Entry
from tf_lossscale._checkpoint.plan import Plan, Tensor
from tf_lossscale._checkpoint.tensors import OBJECT_GRAPH

__all__ = ["plan"]

_INNER = "base_optimizer"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def plan(graph: Any, tensors: Mapping[str, Entry]) -> Plan:
    """Plans the conversion of layout A to layout B.

    Args:
      graph: TensorFlow's protocol buffer of the objects; it is changed.
      tensors: what the index of the checkpoint says, by key.

    Raises:
      CheckpointError: it cannot be converted faithfully.
    """
    keys: Dict[str, str] = {}
    dropped: List[int] = []
    for node in graph.nodes:
        inner = _inner_of(graph, node)
        if inner is None:
            continue
        _check_only_child(graph, inner)
        _rename(graph, graph.nodes[inner], keys)
        _merge(node, graph.nodes[inner])
        dropped.append(inner)
    _renumber(graph, dropped)
    kept = [key for key in sorted(tensors) if key != OBJECT_GRAPH]
    result = [Tensor(keys.get(key, key), tensors[key].dtype, key) for key in kept]
    if len({each.key for each in result}) != len(result):
        raise CheckpointError("two tensors would have the same key")
    result.append(Tensor(OBJECT_GRAPH, "string", None, graph.SerializeToString()))
    return Plan(tuple(result), tuple(keys.items()), ())


def _inner_of(graph: Any, node: Any) -> Any:
    """The number of the inner optimizer of a loss-scale optimizer in layout A, or None."""
    children = {child.local_name: child.node_id for child in node.children}
    inner = children.get(_INNER)
    if inner is None or "loss_scale" not in children:
        return None
    named = {child.local_name for child in graph.nodes[inner].children}
    return inner if "iter" in named else None


def _check_only_child(graph: Any, inner: int) -> None:
    parents = [
        child.local_name
        for node in graph.nodes
        for child in node.children
        if child.node_id == inner
    ]
    if parents != [_INNER]:
        raise CheckpointError(
            "the inner optimizer was stored a second time, as {}, which later Keras restores as "
            "another object".format(", ".join(sorted(set(parents) - {_INNER})) or _INNER)
        )


def _rename(graph: Any, inner: Any, keys: Dict[str, str]) -> None:
    """Takes the inner optimizer out of the keys of its variables and slots."""
    named = [(child.local_name, child.node_id) for child in inner.children]
    named += [(slot.slot_name, slot.slot_variable_node_id) for slot in inner.slot_variables]
    for name, number in named:
        for attribute in graph.nodes[number].attributes:
            old = attribute.checkpoint_key
            stem = old[: -len(f"{_INNER}/{name}{_VALUE}")]
            if old == f"{stem}{_INNER}/{name}{_VALUE}" and stem[-1:] in ("", "/"):
                attribute.checkpoint_key = keys[old] = f"{stem}{name}{_VALUE}"


def _merge(outer: Any, inner: Any) -> None:
    children = [child for child in outer.children if child.local_name != _INNER]
    own = {child.local_name for child in children}
    children += [child for child in inner.children if child.local_name not in own]
    copies = [(child.local_name, child.node_id) for child in children]
    del outer.children[:]
    for name, number in copies:
        outer.children.add(local_name=name, node_id=number)
    outer.slot_variables.extend(inner.slot_variables)


def _renumber(graph: Any, dropped: Sequence[int]) -> None:
    """Removes nodes; those that nothing refers to would count as not restored."""
    kept = [number for number in range(len(graph.nodes)) if number not in dropped]
    new = {old: number for number, old in enumerate(kept)}
    for number in sorted(dropped, reverse=True):
        del graph.nodes[number]
    for node in graph.nodes:
        for child in node.children:
            child.node_id = new[child.node_id]
        for slot in node.slot_variables:
            slot.original_variable_node_id = new[slot.original_variable_node_id]
            slot.slot_variable_node_id = new[slot.slot_variable_node_id]
