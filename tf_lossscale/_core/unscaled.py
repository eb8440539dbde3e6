"""The gradients of a step where they were unscaled, before the program has changed them.

Programs clip gradients between unscaling and applying them. `tf.clip_by_global_norm` makes all of
them NaN if one is not finite, so only the gradients before it show which one that was (as in
google-research/bert#915). `UnscaledGradients` remembers them from one to the other.
"""

import itertools
import threading
import weakref
from typing import Dict, Iterable, List, MutableMapping, NamedTuple, Optional, Sequence, Set

from tf_lossscale._replicas.agreement import replica_count
from tf_lossscale._types import Gradient, Gradients, Operation, Variable, Variables
from tf_lossscale._versions.base import tf, tf1

_NOTES = "_tf_lossscale_unscaled"
"""The attribute of a graph with what was unscaled in it, so that both are freed together."""
_MOST = 64
"""More calls than this before one step are not remembered."""


class _Call(NamedTuple):
    """What one call has unscaled: gradients, None among them, and their variables if known."""

    gradients: Gradients
    variables: Optional[Variables]


_Notes = Dict[Optional[threading.Thread], List[_Call]]
"""What was unscaled, by the thread of a replica; by None in a graph of one replica."""


class UnscaledGradients:
    """Remembers what was unscaled for one optimizer, in the graph or thread of its next step."""

    in_step = False  # whether they were last unscaled by the step itself

    def __init__(self) -> None:
        self._eager: _Notes = {}

    def note(self, gradients: Gradients, variables: Optional[Variables]) -> None:
        """Remembers gradients that were just unscaled."""
        calls = self._here().setdefault(thread_of_step(), [])
        calls.append(_Call(list(gradients), None if variables is None else list(variables)))
        if len(calls) > _MOST or (tf.executing_eagerly() and len(calls) > 1):
            # In eager mode they take memory. Gradients are accumulated, and these are a part.
            calls[:] = [_Call([], None)]

    def take(
        self, variables: Variables, tested: Sequence[Sequence[Gradient]]
    ) -> Optional[List[List[Gradient]]]:
        """Returns what was unscaled for a step with these variables and tested gradients.

        For each variable, one gradient for each replica, or for each batch whose gradients are
        accumulated in the same graph; None if that is not certain.
        """
        notes = self._here()
        replicas = replica_count()
        threads = [thread_of_step()] if replicas == 1 else list(notes)
        replies = [_matched(notes.pop(thread, []), variables) for thread in threads]
        known = [reply for reply in replies if reply is not None]
        if not known or len(known) != len(replies):
            return None
        # `known` has rows by replica, and in each a list of gradients by variable.
        found = [list(itertools.chain(*of_variable)) for of_variable in zip(*known)]
        return found if _are_computed(found, tested) else None

    def _here(self) -> _Notes:
        if tf.executing_eagerly():
            return self._eager
        graph = tf1.get_default_graph()
        notes: Optional[MutableMapping[UnscaledGradients, _Notes]] = getattr(graph, _NOTES, None)
        if notes is None:
            notes = weakref.WeakKeyDictionary()
            setattr(graph, _NOTES, notes)
        return notes.setdefault(self, {})


def thread_of_step() -> Optional[threading.Thread]:
    """Returns the thread that a loss or gradient belongs to; None stands for all of a graph."""
    several = tf.executing_eagerly() or replica_count() > 1
    return threading.current_thread() if several else None


def _matched(calls: Sequence[_Call], variables: Variables) -> Optional[List[List[Gradient]]]:
    """Returns for each variable the gradients that calls have unscaled for it; None if unknown."""
    wholes = [_by_variable(call, variables) for call in calls]
    if len(calls) > 1 and None in wholes:  # each call unscaled a part of the gradients
        gradients = [gradient for call in calls for gradient in call.gradients]
        wholes = [_by_position(gradients, variables)]
    known = [whole for whole in wholes if whole is not None]
    if not known or len(known) != len(wholes):
        return None
    return [list(gradients) for gradients in zip(*known)]


def _by_variable(call: _Call, variables: Variables) -> Optional[List[Gradient]]:
    if call.variables is None or len(call.variables) != len(call.gradients):
        return _by_position(call.gradients, variables)
    places = {id(variable): gradient for variable, gradient in zip(call.variables, call.gradients)}
    found = [places.get(id(variable)) for variable in variables]
    if any(gradient is None for gradient in found):
        return _by_position(call.gradients, variables)
    return found


def _by_position(gradients: Gradients, variables: Variables) -> Optional[List[Gradient]]:
    known = [gradient for gradient in gradients if gradient is not None]
    if len(known) != len(variables):
        return None
    pairs = zip(known, variables)
    return known if all(_fits(gradient, variable) for gradient, variable in pairs) else None


def _fits(gradient: Gradient, variable: Variable) -> bool:
    if isinstance(gradient, tf.IndexedSlices):
        return True
    shapes = [tf.TensorShape(getattr(value, "shape", None)) for value in (gradient, variable)]
    return bool(shapes[0].is_compatible_with(shapes[1]))


def _are_computed(
    found: Sequence[Sequence[Gradient]], tested: Sequence[Sequence[Gradient]]
) -> bool:
    """Returns whether a step computes these gradients anyway, even if nobody watches it.

    In the graph of a Session, a step that applies accumulated gradients does not.
    """
    if tf.executing_eagerly() or tf1.get_default_graph().building_function:
        return True
    needed = ancestors(operations_of(gradient for row in tested for gradient in row))
    return needed.issuperset(operations_of(gradient for row in found for gradient in row))


def operations_of(gradients: Iterable[Gradient]) -> List[Operation]:
    """Returns the operations that compute tensors and `IndexedSlices` in a graph."""
    found = []
    for gradient in gradients:
        is_sparse = isinstance(gradient, tf.IndexedSlices)
        parts = [gradient.values, gradient.indices] if is_sparse else [gradient]
        found += [part.op for part in parts if hasattr(part, "op")]
    return found


class Source(NamedTuple):
    """A gradient before numbers multiplied or divided it, and how many did."""

    gradient: Gradient
    factors: int


def source_of(gradient: Gradient) -> Source:
    """Returns what a gradient was in a graph before numbers multiplied or divided it.

    `tf.clip_by_global_norm` multiplies all gradients by NaN if the norm is not finite. Where the
    program clips before the gradients are unscaled, as before `apply` of Keras 3, or unscales them
    itself, this shows which one it was. In eager mode, it is the gradient.
    """
    if isinstance(gradient, tf.IndexedSlices):
        values, factors = source_of(gradient.values)
        if not factors:
            return Source(gradient, 0)
        return Source(tf.IndexedSlices(values, gradient.indices, gradient.dense_shape), factors)
    factors = 0
    while not tf.executing_eagerly() and hasattr(gradient, "op"):
        operation = gradient.op
        tensors = list(operation.inputs)
        has_number = len(tensors) == 2 and tensors[1].shape.rank == 0
        is_product = operation.type in ("Mul", "RealDiv") and has_number
        if not is_product and operation.type not in ("Identity", "Cast"):
            break
        if not tensors[0].dtype.is_floating:
            break
        factors += is_product
        gradient = tensors[0]
    return Source(gradient, factors)


def ancestors(operations: Iterable[Operation]) -> Set[Operation]:
    """Returns operations and all that they depend on."""
    found: Set[Operation] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation not in found:
            found.add(operation)
            waiting += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
    return found
