"""The numbers of one step and its loss: on the host in eager mode, as one tensor in a graph."""

import weakref
from typing import Any, Dict, Iterable, List, MutableMapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_lossscale._core.finite import first_true
from tf_lossscale._core.unscaled import ancestors, operations_of, source_of, thread_of_step
from tf_lossscale._core.watching import Step
from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._types import Gradient, Graph, Loss, Operation, Optimizer, Tensor
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.callers import called_from_minimize_of_fit
from tf_lossscale._versions.graphs import in_xla_context
from tf_lossscale._versions.replicas import estimator_scales_loss

_COLUMNS = (
    *("loss", "has_loss", "scale", "good_steps", "bad_steps", "rate"),
    *("norm", "unscaled_norm", "bad", "bad_count"),
)
"""The numbers of one step; if there are several replicas, the norm of each follows."""
_OF_GRADIENTS = 4
"""How many of them are about the gradients."""
_UNKNOWN, _ALL_FINITE = -1.0, -2.0


def width(replicas: int) -> int:
    """Returns how many numbers a step has."""
    return len(_COLUMNS) + (replicas if replicas > 1 else 0)


class Row(NamedTuple):
    """The numbers of one step, with the counts before it: see `OptimizerRecord`."""

    loss: Optional[float]
    scale: Optional[float]
    good_steps: Optional[int]
    bad_steps: Optional[int]
    rate: Optional[float]
    norm: Optional[float]
    unscaled_norm: Optional[float]
    finite: Optional[bool]
    bad: Optional[int]
    bad_count: Optional[int]
    replica_norms: Optional[List[Optional[float]]]

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


class Measured(NamedTuple):
    """The numbers of one step, and for each variable the norm of its gradient.

    In a graph, these are float64 tensors of shape `[width]` and `[variables]`; in eager mode a
    `Row` and an array. Without a look at the gradients, there are no norms.
    """

    row: Tensor
    norms: Optional[Tensor]


class _Gradients(NamedTuple):
    """The tensors of a step, each once, and which of them belong to each variable.

    `tested` and `unscaled` hold for each variable the positions of its tensors, one for each
    replica or batch. Without changes by the program, they are the same tensors. `sources` are what
    they were before the program multiplied them, where that is not `unscaled`.
    """

    tensors: List[Tensor]
    tested: List[List[int]]
    unscaled: Optional[List[List[int]]]
    sources: Optional[List[List[int]]] = None

    @classmethod
    def of(cls, step: Step) -> "_Gradients":
        """Returns the gradients of a step, each once: unscaled ones are often those tested."""
        places: Dict[int, int] = {}
        tensors: List[Tensor] = []

        def place(tensor: Tensor) -> int:
            if id(tensor) not in places:
                places[id(tensor)] = len(tensors)
                tensors.append(tensor)
            return places[id(tensor)]

        tested = [[place(tensor) for tensor in row] for row in step.tested]
        unscaled = [[place(tensor) for tensor in row] for row in step.unscaled or ()]
        sources = [[place(tensor) for tensor in row] for row in _sources(step)]
        return cls(tensors, tested, unscaled or None, sources or None)

    @property
    def first(self) -> List[int]:
        """Of each variable the first tensor, before the program has changed it if that is known."""
        return [row[0] for row in self.unscaled or self.tested]

    def of_replicas(self, rows: Optional[List[List[int]]], count: int) -> List[List[int]]:
        """Returns the positions of the tensors of each replica; none if their norm is unknown."""
        if rows is None or any(len(row) != count for row in rows):
            return []
        columns = [list(column) for column in zip(*rows)]
        is_sparse = any(
            isinstance(self.tensors[position], tf.IndexedSlices)
            for column in columns
            for position in column
        )
        return [] if is_sparse and in_xla_context() else columns


def _sources(step: Step) -> List[List[Gradient]]:
    """Returns the gradients before the program multiplied them, if it does so without unscaling.

    That is a further pass over the gradients, so it is left out where the program unscales them.
    """
    if step.unscaled is not None and not step.unscales:
        return []
    rows = step.tested if step.unscaled is None else step.unscaled
    if len(rows) < 2:
        return []
    found = [list(map(source_of, row)) for row in rows]
    # Our class for Keras 3 divides them once itself.
    own_factors = 1 if step.unscales and not step.are_scaled else 0
    most_factors = max((source.factors for row in found for source in row), default=0)
    if most_factors <= own_factors:
        return []
    return [[source.gradient for source in row] for row in found]


def row_of(
    loss: Optional[Loss], state: Sequence[Tensor], rate: Optional[Tensor], step: Optional[Step]
) -> Measured:
    """Returns the numbers of a step in eager mode, which takes much less time than `measured`."""
    scale, *counts = map(_on_host, state)
    values = [_on_host(loss), float(loss is not None), scale, *counts, _on_host(rate)]
    if step is None:
        return Measured(unpacked([*values, *[_UNKNOWN] * _OF_GRADIENTS]), None)
    gradients = _Gradients.of(step)
    halves = tf.stack(_halves(gradients)).numpy().astype(np.float64)
    factor = scale if step.are_scaled else 1.0  # Keras 3's own class lets it become 0

    def norms_of(columns: List[List[int]]) -> List[float]:
        found = [float(np.sqrt(2.0 * np.sum(halves[column]))) for column in columns]
        return [norm / factor if factor else _UNKNOWN for norm in found]

    applied = norms_of(_applied_columns(gradients, step))
    norm = applied[0] if len(set(applied)) == 1 else _UNKNOWN
    unscaled = norms_of(gradients.of_replicas(gradients.unscaled, replica_count()))
    alone, of_replicas = _of_replicas(unscaled, _UNKNOWN)
    values += [norm, alone, *_bad_on_host(gradients, np.isfinite(halves)), *of_replicas]
    return Measured(unpacked(values), norms_of([[position] for position in gradients.first]))


def _of_replicas(unscaled: List[Gradient], unknown: Tensor) -> Tuple[Tensor, List[Tensor]]:
    """Returns the norm of the only replica, and the norm of each one if there are several."""
    replicas = replica_count()
    if replicas == 1:
        return unscaled[0] if unscaled else unknown, []
    return unknown, unscaled or [unknown] * replicas


def _bad_on_host(gradients: _Gradients, finite: Tensor) -> List[float]:
    """Returns the same as `_bad_of`, as numbers."""
    for rows in (gradients.unscaled, gradients.tested):
        flags = [not finite[row].all() for row in rows or ()]
        if any(flags):
            return [float(flags.index(True)), float(sum(flags))]
    return [_ALL_FINITE, 0.0]


def _on_host(value: Optional[Tensor]) -> float:
    if value is None:
        return _UNKNOWN
    return float(value.numpy() if hasattr(value, "numpy") else value)


def measured(
    loss: Optional[Loss], state: Sequence[Tensor], rate: Optional[Tensor], step: Optional[Step]
) -> Measured:
    """Returns the numbers of a step in a graph.

    `state` is the state of a `LossScale`. Without `step`, the row has nothing about gradients.
    """
    scale, *counts = map(_float64, state)
    values = [_float64(0.0 if loss is None else loss), _float64(float(loss is not None))]
    values += [scale, *counts, _float64(rate)]
    unknown = _float64(None)
    if step is None:
        missing = width(replica_count()) - len(values)
        return Measured(tf.stack([*values, *[unknown] * missing]), None)
    gradients = _Gradients.of(step)
    halves = tf.cast(tf.stack(_halves(gradients)), tf.float64)

    def norms_of(columns: List[List[int]]) -> List[Tensor]:
        found = [tf.sqrt(2.0 * _sum_of(halves, column)) for column in columns]
        return [norm / scale for norm in found] if step.are_scaled else found

    applied = norms_of(_applied_columns(gradients, step))
    norm = applied[0] if applied else unknown
    if len(applied) > 1:
        agree = tf.reduce_all(tf.equal(tf.stack(applied), norm))
        norm = where(agree, norm, unknown)
    unscaled = norms_of(gradients.of_replicas(gradients.unscaled, replica_count()))
    alone, of_replicas = _of_replicas(unscaled, unknown)
    values += [norm, alone, *_bad_of(gradients, tf.math.is_finite(halves)), *of_replicas]
    norms = tf.sqrt(2.0 * tf.gather(halves, gradients.first))
    return Measured(tf.stack(values), norms / scale if step.are_scaled else norms)


def _applied_columns(gradients: _Gradients, step: Step) -> List[List[int]]:
    count = len(step.tested[0]) if step.tested else 0
    return gradients.of_replicas(gradients.tested, count) if step.are_applied else []


def _bad_of(gradients: _Gradients, finite: Tensor) -> List[Tensor]:
    """Returns the number of the first bad variable, and how many there are: float64 tensors."""
    found = [
        _bad_in(rows, finite) for rows in (gradients.unscaled, gradients.tested) if rows is not None
    ]
    bad = found[0]
    if len(found) > 1 and gradients.unscaled != gradients.tested:
        # What the program itself has made not finite comes second.
        is_known = tf.greater(found[0][1], 0.0)
        bad = [where(is_known, before, after) for before, after in zip(*found)]
    if gradients.sources is None:
        return bad
    sources = _bad_in(gradients.sources, finite)
    are_all = tf.equal(bad[1], float(len(gradients.tested)))
    are_known = tf.logical_and(are_all, tf.greater(sources[1], 0.0))
    return [where(are_known, before, after) for before, after in zip(sources, bad)]


def _bad_in(rows: List[List[int]], finite: Tensor) -> List[Tensor]:
    flat = [position for row in rows for position in row]
    owners = [number for number, row in enumerate(rows) for _ in row]
    bad = tf.logical_not(_taken(finite, flat))
    if len(flat) > len(rows):
        counts = tf.math.unsorted_segment_sum(tf.cast(bad, tf.int32), owners, len(rows))
        bad = tf.greater(counts, 0)
    numbers = tf.constant([*map(float, range(len(rows))), _ALL_FINITE], tf.float64)
    first = tf.gather(numbers, first_true(bad, len(rows)))
    return [first, tf.reduce_sum(tf.cast(bad, tf.float64))]


def _halves(gradients: _Gradients) -> List[Gradient]:
    """Returns half the sum of squares of each tensor, in float32: one pass over its elements.

    It is not finite if the tensor is not. That it can also overflow for finite elements above 1e19
    matters only to the first bad variable of a step that a fixed loss scale applies.
    """
    return [tf.nn.l2_loss(_summed(tensor)) for tensor in gradients.tensors]


def _sum_of(values: Tensor, positions: Sequence[int]) -> Tensor:
    return tf.reduce_sum(_taken(values, positions))


def _taken(values: Tensor, positions: Sequence[int]) -> Tensor:
    is_all = list(positions) == [*range(values.shape[0])]
    return values if is_all else tf.gather(values, list(positions))


def _summed(gradient: Gradient) -> Tensor:
    """Returns the values of a gradient in float32; several values of one sparse row are added.

    Otherwise the norm would depend on how often a row is listed, which versions differ in.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.cast(gradient, tf.float32)
    values = tf.cast(gradient.values, tf.float32)
    if in_xla_context():
        return values  # XLA cannot find the rows
    rows, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(values, places, tf.size(rows))


def _float64(value: Tensor) -> Tensor:
    if value is None or isinstance(value, float):
        return tf.constant(_UNKNOWN if value is None else value, tf.float64)
    return tf.cast(tf.reshape(tf.convert_to_tensor(value), []), tf.float64)


def unpacked(values: Iterable[float]) -> Row:
    """Returns the numbers that a tensor of `measured` holds."""
    loss, has_loss, scale, good, bad_steps, rate, *rest = map(float, values)
    norm, unscaled_norm, bad, bad_count, *of_replicas = rest
    finite = None if bad == _UNKNOWN else bad < 0
    return Row(
        loss=loss if has_loss else None,
        scale=scale,
        good_steps=int(good) if good >= 0 else None,
        bad_steps=int(bad_steps) if bad_steps >= 0 else None,
        rate=None if rate == _UNKNOWN else rate,
        norm=_norm(norm),
        unscaled_norm=_norm(unscaled_norm),
        finite=finite,
        bad=int(bad) if bad >= 0 else None,
        bad_count=int(bad_count) if bad >= 0 else None,
        replica_norms=[*map(_norm, of_replicas)] or None,
    )


def _norm(value: float) -> Optional[float]:
    """Returns a norm if it is a number; the norm of infinite gradients shows nothing."""
    return value if np.isfinite(value) and value >= 0 else None


class Losses:
    """The losses that were scaled and whose steps have not been made yet, by graph and replica."""

    def __init__(self) -> None:
        # By graph, or this object in eager mode; then by thread, of which each replica has one. Its
        # number would be a tensor, and so one more operation in the graph.
        self._noted: MutableMapping[Any, Dict[Any, List[Loss]]] = weakref.WeakKeyDictionary()

    def note(self, optimizer: Optimizer, loss: Loss) -> None:
        """Remembers the loss of the next step that is made, or built in the same graph."""
        # The gradients of the replicas are added up, so they belong to the sum of the losses.
        # Within an Estimator, v1 optimizers divide a mean loss by the number of replicas.
        divides = isinstance(optimizer, tf1.train.Optimizer) and estimator_scales_loss()
        factor = 1 / replica_count() if divides else 1.0
        # Whether Keras scales it within `fit`, and sums the gradients itself.
        is_of_fit = called_from_minimize_of_fit()
        losses = self._noted.setdefault(self._graph(), {}).setdefault(thread_of_step(), [])
        losses.append((loss, factor, is_of_fit))
        del losses[2:]  # with two it is not certain which one belongs to the step

    def take(self, step: Step, sums_replicas: bool) -> Optional[Loss]:
        """Returns the loss of a step, of all its replicas; None if it is not certain.

        `sums_replicas` is whether it applies the plain sum of the gradients of all replicas.
        """
        noted = self._noted.get(self._graph(), {})
        replicas = replica_count()
        threads = [thread_of_step()] if replicas == 1 else list(noted)
        losses = [noted.pop(thread, []) for thread in threads]
        is_one_each = all(len(of_thread) == 1 for of_thread in losses)
        if len(losses) != replicas or not is_one_each:
            return None
        values, factors, are_of_fit = zip(*[loss for of_thread in losses for loss in of_thread])
        if not all(_is_usable(value, step) for value in values):
            return None
        if replicas == 1:
            return values[0]
        if not (all(are_of_fit) if step.summed_by_caller else sums_replicas):
            return None
        return factors[0] * tf.add_n([tf.cast(value, tf.float64) for value in values])

    def _graph(self) -> Optional[Graph]:
        return self if tf.executing_eagerly() else tf1.get_default_graph()


_HARMLESS = {"Assert", "Print", "PrintV2", "VarIsInitializedOp", "Variable", "VariableV2"}
_HARMLESS |= {"ReadVariableOp", "ResourceGather", "VarHandleOp"}
"""Stateful operations that give the same results and effects however often they run."""


def _is_usable(loss: Loss, step: Step) -> bool:
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
    gradients = [gradient for tensors in step.tested for gradient in tensors]
    needed = ancestors(operations_of(gradients))
    return not any(_has_effect(operation) for operation in ancestors([loss.op]) - needed)


def _has_effect(operation: Operation) -> bool:
    """Returns whether it may matter that an operation runs."""
    if operation.type in _HARMLESS:
        return False
    definition = operation.op_def
    is_fed = operation.type in ("Placeholder", "PlaceholderV2")
    return is_fed or definition is None or bool(definition.is_stateful)
