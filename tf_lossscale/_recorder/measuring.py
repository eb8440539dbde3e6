"""The numbers of one step and its loss: on the host in eager mode, as one tensor in a graph."""

import threading
import weakref
from typing import Any, Dict, Iterable, List, MutableMapping, NamedTuple, Optional, Sequence, Set

import numpy as np

from tf_lossscale._core.finite import first_true
from tf_lossscale._core.replicas import replica_count
from tf_lossscale._core.steps import Step
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.keras_optimizers import called_from_minimize_of_fit
from tf_lossscale._versions.replicas import estimator_scales_loss

COLUMNS = 7
_UNKNOWN, _ALL_FINITE = -1.0, -2.0


class Row(NamedTuple):
    """The numbers of one step, with the counts before it: see `OptimizerRecord`."""

    loss: Optional[float]
    scale: Optional[float]
    good_steps: Optional[int]
    bad_steps: Optional[int]
    norm: Optional[float]
    finite: Optional[bool]
    bad: Optional[int]

    def may_precede(self, later: "Row", applied: bool, growth_steps: Optional[int]) -> bool:
        """Returns whether `later` can be the next step; a counter that jumps shows a gap."""
        if self.good_steps is None or self.scale is None or later.scale is None:
            return True
        if applied:
            counted = self.good_steps + 1
            if later.good_steps == 0:
                return not later.scale < self.scale and counted >= (growth_steps or 0)
            return later.good_steps == counted and not later.scale < self.scale
        return later.good_steps in (0, self.good_steps) and not later.scale > self.scale


def row_of(loss: Optional[Any], state: Sequence[Any], step: Optional[Step]) -> Row:
    """Returns the numbers of a step in eager mode, which takes much less time than `measured`."""
    scale, *counts = map(_on_host, state)
    norm = bad = _UNKNOWN
    if step is not None:
        halves = tf.stack(_halves(step)).numpy().astype(np.float64)
        numbers = zip(_numbers(step), np.isfinite(halves))
        bad = next((number for number, is_finite in numbers if not is_finite), _ALL_FINITE)
        norms = {float(np.sqrt(2.0 * np.sum(halves[each]))) for each in _of_replicas(step)}
        norm = norms.pop() if len(norms) == 1 else _UNKNOWN
        if step.are_scaled:
            norm = norm / scale if scale else _UNKNOWN  # Keras 3's own class halves it down to 0
    return unpacked([_on_host(loss), loss is not None, scale, *counts, norm, bad])


def _on_host(value: Optional[Any]) -> float:
    if value is None:
        return _UNKNOWN
    return float(value.numpy() if hasattr(value, "numpy") else value)


def measured(loss: Optional[Any], state: Sequence[Any], step: Optional[Step]) -> Any:
    """Returns the numbers of a step in a graph: a float64 tensor of shape `[COLUMNS]`.

    `state` is that of a `LossScale`. Without `step`, nothing is said of the gradients.
    """
    scale, *counts = [_float64(_UNKNOWN if each is None else each) for each in state]
    norm = bad = _float64(_UNKNOWN)
    if step is not None:
        halves = tf.cast(tf.stack(_halves(step)), tf.float64)
        numbers = _numbers(step)
        first = first_true(tf.logical_not(tf.math.is_finite(halves)), len(numbers))
        bad = tf.gather(tf.constant([*numbers, _ALL_FINITE], tf.float64), first)
        norms = [tf.sqrt(2.0 * _sum_of(halves, each)) for each in _of_replicas(step)]
        if norms:
            agree = tf.reduce_all(tf.equal(tf.stack(norms), norms[0]))
            norm = norms[0] if len(norms) == 1 else where(agree, norms[0], norm)
            norm = norm / scale if step.are_scaled else norm
    known = _float64(float(loss is not None))
    return tf.stack([_float64(0.0 if loss is None else loss), known, scale, *counts, norm, bad])


def _numbers(step: Step) -> List[float]:
    """Returns the number of the variable of each of `_halves`."""
    return [float(number) for number, each in enumerate(step.tested) for _ in each]


def _halves(step: Step) -> List[Any]:
    """Returns half the sum of squares of each tensor, in float32: one pass over its elements.

    It is not finite if the tensor is not. That it can also overflow for finite elements above 1e19
    matters only to the first bad variable of a step that a fixed loss scale applies.
    """
    return [tf.nn.l2_loss(_summed(each)) for tensors in step.tested for each in tensors]


def _of_replicas(step: Step) -> List[List[int]]:
    """Returns for each replica the positions of its gradients in `_halves`; none if unknown."""
    flat = [each for tensors in step.tested for each in tensors]
    is_sparse = any(isinstance(each, tf.IndexedSlices) for each in flat)
    if not step.are_applied or (is_sparse and in_xla_context()):
        return []
    replicas = [replica for tensors in step.tested for replica in range(len(tensors))]
    return [
        [position for position, each in enumerate(replicas) if each == replica]
        for replica in range(max(replicas) + 1)
    ]


def _sum_of(values: Any, positions: Sequence[int]) -> Any:
    is_all = len(positions) == values.shape[0]
    return tf.reduce_sum(values if is_all else tf.gather(values, list(positions)))


def _summed(gradient: Any) -> Any:
    """Returns the values of a gradient in float32; those of one row of a sparse one are added.

    Otherwise the norm would depend on how often a row is listed, which versions differ in.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.cast(gradient, tf.float32)
    values = tf.cast(gradient.values, tf.float32)
    if in_xla_context():
        return values  # XLA cannot find the rows
    rows, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(values, places, tf.size(rows))


def _float64(value: Any) -> Any:
    if isinstance(value, float):
        return tf.constant(value, tf.float64)
    return tf.cast(tf.reshape(tf.convert_to_tensor(value), []), tf.float64)


def unpacked(values: Iterable[Any]) -> Row:
    """Returns the numbers that a tensor of `measured` holds."""
    loss, has_loss, scale, good, bad_steps, norm, bad = map(float, values)
    finite = None if bad == _UNKNOWN else bad < 0
    return Row(
        loss=loss if has_loss else None,
        scale=scale,
        good_steps=int(good) if good >= 0 else None,
        bad_steps=int(bad_steps) if bad_steps >= 0 else None,
        # The square of a large norm is infinite, and the norm of infinite gradients says nothing.
        norm=norm if finite and np.isfinite(norm) and norm >= 0 else None,
        finite=finite,
        bad=int(bad) if bad >= 0 else None,
    )


class Losses:
    def __init__(self) -> None:
        # By graph, or this object in eager mode; then by thread, of which each replica has one. Its
        # number would be a tensor, and so one more operation in the graph.
        self._noted: MutableMapping[Any, Dict[Any, List[Any]]] = weakref.WeakKeyDictionary()

    def note(self, optimizer: Any, loss: Any) -> None:
        """Remembers the loss of the next step that is made, or built in the same graph."""
        # The gradients of the replicas are added up, so they belong to the sum of the losses.
        # Within an Estimator, v1 optimizers divide a mean loss by the number of replicas.
        divides = isinstance(optimizer, tf1.train.Optimizer) and estimator_scales_loss()
        factor = 1 / replica_count() if divides else 1.0
        # Whether Keras scales it within `fit`, and sums the gradients itself.
        is_of_fit = called_from_minimize_of_fit()
        losses = self._noted.setdefault(self._graph(), {}).setdefault(_thread(), [])
        losses.append((loss, factor, is_of_fit))
        del losses[2:]  # with two it is not certain which one belongs to the step

    def take(self, step: Step, sums_replicas: bool) -> Optional[Any]:
        """Returns the loss of a step, of all its replicas; None if it is not certain.

        `sums_replicas` is whether it applies the plain sum of the gradients of all replicas.
        """
        noted = self._noted.get(self._graph(), {})
        replicas = replica_count()
        threads = [_thread()] if replicas == 1 else list(noted)
        losses = [noted.pop(each, []) for each in threads]
        if len(losses) != replicas or any(len(each) != 1 for each in losses):
            return None
        values, factors, are_of_fit = zip(*[loss for each in losses for loss in each])
        if not all(_is_usable(each, step) for each in values):
            return None
        if replicas == 1:
            return values[0]
        if not (all(are_of_fit) if step.summed_by_caller else sums_replicas):
            return None
        return factors[0] * tf.add_n([tf.cast(each, tf.float64) for each in values])

    def _graph(self) -> Any:
        return self if tf.executing_eagerly() else tf1.get_default_graph()


def _thread() -> Any:
    """Returns the thread that a loss belongs to; None stands for all that build a graph."""
    several = tf.executing_eagerly() or replica_count() > 1
    return threading.current_thread() if several else None


_HARMLESS = {"Assert", "Print", "PrintV2", "VarIsInitializedOp", "Variable", "VariableV2"}
_HARMLESS |= {"ReadVariableOp", "ResourceGather", "VarHandleOp"}
"""Stateful operations that give the same results and effects however often they run."""


def _is_usable(loss: Any, step: Step) -> bool:
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
    gradients = [each for tensors in step.tested for each in tensors]
    needed = _ancestors(part.op for each in gradients for part in _parts(each))
    return not any(_has_effect(each) for each in _ancestors([loss.op]) - needed)


def _parts(gradient: Any) -> Sequence[Any]:
    if isinstance(gradient, tf.IndexedSlices):
        return [gradient.values, gradient.indices]
    return [gradient] if hasattr(gradient, "op") else []


def _ancestors(operations: Iterable[Any]) -> Set[Any]:
    """Returns operations and all that they depend on."""
    found: Set[Any] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation not in found:
            found.add(operation)
            waiting += [*(each.op for each in operation.inputs), *operation.control_inputs]
    return found


def _has_effect(operation: Any) -> bool:
    """Returns whether it may matter that an operation runs."""
    if operation.type in _HARMLESS:
        return False
    definition = operation.op_def
    is_fed = operation.type in ("Placeholder", "PlaceholderV2")
    return is_fed or definition is None or bool(definition.is_stateful)
