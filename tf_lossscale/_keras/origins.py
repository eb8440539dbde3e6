"""Whether tensors of a `tf.function` being traced come from a product, or from a variable."""

from typing import Dict, Iterable, List, Optional, Sequence, Set

from tf_lossscale._types import Graph, Operation, Tensor, Variable
from tf_lossscale._versions.base import tf


def depend_on_products(
    tensors: Sequence[Tensor], place: Graph, products: Sequence[Optional[str]]
) -> Optional[bool]:
    """Returns whether a tensor comes from an operation that multiplies, or from its gradient.

    Args:
      tensors: tensors, `IndexedSlices`, None, or what converts to a tensor.
      place: the outermost graph of the function that is being traced.
      products: names of operations in `place` that multiply a loss by its scale; None for one
        elsewhere, whose way cannot be followed.

    Returns:
      None if it is not known.
    """
    if None in products:
        return None
    operations = [place.get_operation_by_name(name) for name in products]
    # The gradient of a product depends on the other factor, which is the scale. Each product reads
    # the scale by an operation of its own.
    return _depend_on(tensors, place, {*operations, *(part.inputs[1].op for part in operations)})


def depend_on_operations(
    tensors: Sequence[Tensor], place: Graph, operations: Iterable[Operation]
) -> Optional[bool]:
    """Returns whether a tensor depends on one of `operations` of `place`; None if not known."""
    return _depend_on(tensors, place, set(operations))


def depend_on_variable(
    tensors: Sequence[Tensor], place: Graph, variable: Variable
) -> Optional[bool]:
    """Returns whether a tensor depends on the value of a variable; None if it is not known.

    Args:
      tensors: tensors, `IndexedSlices`, None, or what converts to a tensor.
      place: the outermost graph of the function that is being traced.
      variable: a variable of TensorFlow, which may have a copy for each replica.
    """
    handles = [copy.handle for copy in getattr(variable, "values", (variable,))]
    origins = {
        inner.op for outer, inner in place.captures if any(outer is handle for handle in handles)
    }
    return _depend_on(tensors, place, origins)


def _depend_on(tensors: Sequence[Tensor], place: Graph, origins: Set[Operation]) -> Optional[bool]:
    """Returns whether tensors are computed from the results of `origins`, operations of a graph.

    Follows their inputs, through what inner functions capture, out to `place`. None if an argument
    of an inner function is among these, since its value is not known while the function is traced.
    """
    waiting = [part for tensor in tensors for part in _symbolic(tensor)]
    seen: Set[Operation] = set()
    is_known = True
    while waiting:
        tensor = waiting.pop()
        operation = tensor.op
        if operation in seen:
            continue
        seen.add(operation)
        if operation in origins:
            return True
        if operation.type != "Placeholder" or tensor.graph is place:
            waiting.extend(operation.inputs)
            continue
        captured = _captured(tensor.graph).get(id(tensor))
        if captured is None:
            is_known = False  # an argument, which is not known before the function is called
        else:
            waiting.extend(_symbolic(captured))
    return False if is_known else None


def _captured(graph: Graph) -> Dict[int, Tensor]:
    """Returns what an inner function uses of the functions around it, by its own placeholders."""
    return {id(inner): outer for outer, inner in getattr(graph, "captures", ())}


def _symbolic(tensor: Tensor) -> List[Tensor]:
    """Returns the tensors of the graph that a gradient consists of."""
    part = tensor.values if isinstance(tensor, tf.IndexedSlices) else tensor
    return [part] if isinstance(part, tf.Tensor) and hasattr(part, "graph") else []
