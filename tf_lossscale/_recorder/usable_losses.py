"""Decides whether the loss of a step can be recorded with it."""

from typing import Any, Iterable, Sequence, Set

from tf_lossscale._versions.base import tf, tf1

__all__ = ["is_usable"]

_HARMLESS = {"Assert", "Print", "PrintV2", "VarIsInitializedOp", "Variable", "VariableV2"}
_HARMLESS |= {"ReadVariableOp", "ResourceGather", "VarHandleOp"}
"""Stateful operations that give the same results and effects however often they run."""


def is_usable(loss: Any, gradients: Sequence[Any]) -> bool:
    """Returns whether a step can compute its loss without doing more than it does unrecorded.

    The loss must be a scalar of the current graph, or of eager mode there. In the graph of a
    Session, a step that applies accumulated gradients does not compute the loss: the recording
    would have it read one more batch, or need a placeholder that the program does not feed.

    Args:
      loss: what was passed to the optimizer.
      gradients: the gradients of the step, and None.
    """
    if not isinstance(loss, (tf.Tensor, tf.Variable)):
        return False
    if loss.shape.rank != 0 or not loss.dtype.is_floating:
        return False
    if tf.executing_eagerly():
        return hasattr(loss, "numpy")
    graph = tf1.get_default_graph()
    if hasattr(loss, "_numpy") or not hasattr(loss, "graph") or loss.graph is not graph:
        return False
    if graph.building_function:
        return True  # the function runs its stateful operations anyway
    parts = [_parts(each) for each in gradients if each is not None]
    needed = _ancestors(each.op for tensors in parts for each in tensors)
    return not any(_has_effect(each) for each in _ancestors([loss.op]) - needed)


def _parts(gradient: Any) -> Sequence[Any]:
    if isinstance(gradient, tf.IndexedSlices):
        return [gradient.values, gradient.indices]
    return [gradient] if hasattr(gradient, "op") else []


def _ancestors(operations: Iterable[Any]) -> Set[Any]:
    """Returns operations and all that they depend on."""
    waiting = list(operations)
    found = set(waiting)
    while waiting:
        operation = waiting.pop()
        before = [each.op for each in operation.inputs] + list(operation.control_inputs)
        for each in before:
            if each not in found:
                found.add(each)
                waiting.append(each)
    return found


def _has_effect(operation: Any) -> bool:
    """Returns whether it may matter that an operation runs."""
    if operation.type in _HARMLESS:
        return False
    definition = operation.op_def
    is_fed = operation.type in ("Placeholder", "PlaceholderV2")
    return is_fed or definition is None or bool(definition.is_stateful)
