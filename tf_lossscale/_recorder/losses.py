"""Remembers the losses that programs scale, until the step that they belong to."""

import threading
import weakref
from typing import Any, Dict, Iterable, List, MutableMapping, NamedTuple, Optional, Sequence, Set

from tf_lossscale._core.replicas import replica_count
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.keras_optimizers import called_from_minimize_of_fit
from tf_lossscale._versions.replicas import estimator_scales_loss

__all__ = ["Losses"]


class _Loss(NamedTuple):
    """The loss of one replica.

    Attributes:
      value: a scalar tensor.
      factor: what the sum over all replicas is multiplied with. The gradients of the replicas are
        added up, so they belong to the sum of the losses. Within an Estimator, v1 optimizers divide
        a mean loss by the number of replicas.
      is_of_fit: whether Keras scales it within `fit`, and sums the gradients itself.
    """

    value: Any
    factor: float
    is_of_fit: bool


class Losses:
    """The losses of one optimizer."""

    def __init__(self) -> None:
        # By graph, or this object in eager mode; then by thread, of which each replica has one. Its
        # number would be a tensor, and so one more operation in the graph.
        self._noted: MutableMapping[Any, Dict[Any, List[_Loss]]] = weakref.WeakKeyDictionary()

    def note(self, optimizer: Any, loss: Any) -> None:
        """Remembers the loss of the next step that is made, or built in the same graph."""
        divides = isinstance(optimizer, tf1.train.Optimizer) and estimator_scales_loss()
        factor = 1 / replica_count() if divides else 1.0
        losses = self._noted.setdefault(self._graph(), {}).setdefault(_thread(), [])
        losses.append(_Loss(loss, factor, called_from_minimize_of_fit()))
        del losses[2:]  # with two it is not certain which one belongs to the step

    def take(
        self, gradients: Sequence[Any], sums_replicas: bool, summed_by_caller: bool
    ) -> Optional[Any]:
        """Returns the loss of a step, of all its replicas; None if it is not certain.

        Args:
          gradients: the gradients of the step, and None.
          sums_replicas: whether the step applies the plain sum of the gradients of all replicas.
          summed_by_caller: whether the gradients are sums already.
        """
        noted = self._noted.get(self._graph(), {})
        replicas = replica_count()
        threads = [_thread()] if replicas == 1 else list(noted)
        losses = [noted.pop(each, []) for each in threads]
        if len(losses) != replicas or any(len(each) != 1 for each in losses):
            return None
        found = [loss for each in losses for loss in each]
        if not all(_is_usable(each.value, gradients) for each in found):
            return None
        if replicas == 1:
            return found[0].value
        is_sum = all(each.is_of_fit for each in found) if summed_by_caller else sums_replicas
        if not is_sum:
            return None
        return found[0].factor * tf.add_n([tf.cast(each.value, tf.float64) for each in found])

    def _graph(self) -> Any:
        return self if tf.executing_eagerly() else tf1.get_default_graph()


def _thread() -> Any:
    """Returns the thread that a loss belongs to; None stands for all that build a graph."""
    several = tf.executing_eagerly() or replica_count() > 1
    return threading.current_thread() if several else None


_HARMLESS = {"Assert", "Print", "PrintV2", "VarIsInitializedOp", "Variable", "VariableV2"}
_HARMLESS |= {"ReadVariableOp", "ResourceGather", "VarHandleOp"}
"""Stateful operations that give the same results and effects however often they run."""


def _is_usable(loss: Any, gradients: Sequence[Any]) -> bool:
    """Returns whether a step can compute its loss without doing more than it does unrecorded.

    The loss must be a scalar of the current graph, or of eager mode there. In the graph of a
    Session, a step that applies accumulated gradients does not compute the loss: the recording
    would have it read one more batch, or need a placeholder that the program does not feed.
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
