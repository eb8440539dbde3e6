"""Rewrites the object graph of a checkpoint for later Keras.

TensorFlow restores an object checkpoint from its object graph. Keras of TensorFlow 1.14 to 2.2
stored the inner optimizer as a child of the loss-scale optimizer (layout A); later Keras stores one
optimizer with the variables of both (layout B).
"""

from typing import Any, Dict, List, Optional, Sequence, Set

from tf_lossscale._checkpoint.locate import CheckpointError

__all__ = ["merge_inner_optimizers"]

_INNER = "base_optimizer"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def merge_inner_optimizers(graph: Any) -> Dict[str, str]:
    """Changes layout A to layout B.

    Args:
      graph: the objects, a `TrackableObjectGraph`; it is changed.

    Returns:
      The new keys of tensors, by old key.

    Raises:
      CheckpointError: the checkpoint cannot be converted faithfully.
    """
    keys: Dict[str, str] = {}
    dropped: Set[int] = set()
    parents = _parents(graph)
    for node in graph.nodes:
        inner = _inner_of(graph, node)
        if inner is None:
            continue
        _check_only_child(parents[inner])
        _rename(graph, graph.nodes[inner], keys)
        _merge(node, graph.nodes[inner])
        dropped.add(inner)
    _remove(graph, dropped)
    return keys


def _inner_of(graph: Any, node: Any) -> Optional[int]:
    """Returns the number of the inner optimizer of a loss-scale optimizer in layout A, or None."""
    children = {child.local_name: child.node_id for child in node.children}
    inner = children.get(_INNER)
    if inner is None or "loss_scale" not in children:
        return None
    named = {child.local_name for child in graph.nodes[inner].children}
    return inner if "iter" in named else None


def _parents(graph: Any) -> Dict[int, List[str]]:
    """Returns the names under which other objects refer to each object, by its number."""
    parents: Dict[int, List[str]] = {}
    for node in graph.nodes:
        for child in node.children:
            parents.setdefault(child.node_id, []).append(child.local_name)
    return parents


def _check_only_child(names: Sequence[str]) -> None:
    if list(names) != [_INNER]:
        raise CheckpointError(
            "the inner optimizer was stored a second time, as {}, which later Keras restores as "
            "a separate object".format(", ".join(sorted(set(names) - {_INNER})) or _INNER)
        )


def _rename(graph: Any, inner: Any, keys: Dict[str, str]) -> None:
    """Removes the inner optimizer from the keys of its variables and slots."""
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
    pairs = [(child.local_name, child.node_id) for child in children]
    del outer.children[:]
    for name, number in pairs:
        outer.children.add(local_name=name, node_id=number)
    outer.slot_variables.extend(inner.slot_variables)


def _remove(graph: Any, dropped: Set[int]) -> None:
    """Removes nodes; TensorFlow would report unreferenced ones as not restored."""
    kept = [number for number in range(len(graph.nodes)) if number not in dropped]
    new = {old: number for number, old in enumerate(kept)}
    named = {child.node_id for number in kept for child in graph.nodes[number].children}
    for number in kept:
        for slot in graph.nodes[number].slot_variables:
            named |= {slot.original_variable_node_id, slot.slot_variable_node_id}
    if named & dropped:
        raise CheckpointError("an object other than its owner refers to the inner optimizer")
    for number in sorted(dropped, reverse=True):
        del graph.nodes[number]
    for node in graph.nodes:
        for child in node.children:
            child.node_id = new[child.node_id]
        for slot in node.slot_variables:
            slot.original_variable_node_id = new[slot.original_variable_node_id]
            slot.slot_variable_node_id = new[slot.slot_variable_node_id]
