"""What is so before the first step: the weights, the slots, and the dtypes of the computation."""

import contextlib
import hashlib
from typing import Callable, List, NamedTuple, Optional, Sequence, Set

import numpy as np

from tf_lossscale._core.unscaled import operations_of
from tf_lossscale._core.watching import Step
from tf_lossscale._types import Gradient, Operation, Tensor, Variables
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.variables import first_copy

_SAMPLE = 4096  # values of a gradient whose bits are looked at
_FEW = 8  # so many values that are not zero may be representable in float16 by chance
_Read = Callable[[Sequence[Tensor]], Sequence[np.ndarray]]


def read_eagerly(variables: Variables) -> List[np.ndarray]:
    """Returns the values of variables outside of all functions; raises an error in a graph."""
    with tf.init_scope():
        return [np.asarray(variable.numpy()) for variable in variables]


def hash_of(variables: Variables, read: _Read) -> Optional[str]:
    """Returns a hash of the values of variables; None where they have none yet."""
    with contextlib.suppress(Exception):  # not initialized, or without `numpy`
        digest = hashlib.sha256()
        for value in read([first_copy(variable) for variable in variables]):
            digest.update(np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()[:16]
    return None


def state_of_slots(slots: Optional[Variables], read: _Read) -> Optional[str]:
    """Returns whether slots hold what earlier training has left; None if that is not certain.

    The elements of a fresh slot are all equal: 0, or the initial value of an accumulator.
    """
    if slots is None:
        return None
    with contextlib.suppress(Exception):
        values = read([first_copy(slot) for slot in slots])
        trained = any(value.size > 1 and np.ptp(value) != 0 for value in map(np.asarray, values))
        return "trained" if trained else "fresh"
    return None


def computed_in(step: Step, scale: Tensor) -> Optional[List[Optional[str]]]:
    """Returns for each variable the dtype that its gradient was computed in, None if unknown."""
    gradients = step.tested if step.unscaled is None else step.unscaled
    with contextlib.suppress(Exception):
        of_values = tf.executing_eagerly()
        found = [
            _of_values(row[0], float(scale)) if of_values else _of_operations(row[0])
            for row in gradients
        ]
        return found if any(found) else None
    return None


_PASSED = {
    *("Identity", "Reshape", "StridedSlice", "Squeeze", "ExpandDims", "ConcatV2", "AddN", "AddV2"),
    *("Snapshot", "PreventGradient", "StopGradient", "CheckNumerics", "Neg", "Pack", "Slice"),
    "UnsortedSegmentSum",
}
"""Operations that move or add values."""
_WITH_FACTOR = {"Mul", "RealDiv"}
"""The same, if one of their inputs is a scalar: gradients are unscaled, or divided by a count."""
_COMPUTING = ("MatMul", "Conv", "BiasAddGrad", "Einsum", "RNN", "LSTM", "GRU")
"""Parts of the names of operations that compute the gradients of layers."""
_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def _of_operations(gradient: Gradient) -> Optional[str]:
    """Returns the dtype of the operations that compute a gradient in a graph.

    Where variables are cast for the computation, the last operation casts their gradient back.
    None if there is anything else between, such as what the program makes of the gradient.
    """
    found: Set[str] = set()
    if isinstance(gradient, tf.IndexedSlices):
        gradient = gradient.values
    waiting = operations_of([gradient])
    seen = set(waiting)
    while waiting:
        origin = _origin_of(waiting.pop())
        if origin is None:
            return None
        if origin.dtype is not None:
            found.add(origin.dtype)
        waiting += [operation for operation in origin.before if operation not in seen]
        seen.update(origin.before)
    return found.pop() if len(found) == 1 else None


class _Origin(NamedTuple):
    """Where the values of an operation come from: it computes them, or those before it do."""

    dtype: Optional[str]
    before: List[Tensor]


def _origin_of(operation: Operation) -> Optional[_Origin]:
    """Returns the origin of the values of an operation; None if it is not known."""
    floats = [tensor for tensor in operation.inputs if tensor.dtype.base_dtype in _FLOATS]
    if operation.type == "Cast" and floats:
        return _Origin(str(floats[0].dtype.base_dtype.name), [])
    if operation.type in _PASSED and floats:
        return _Origin(None, [tensor.op for tensor in floats])
    larger = [tensor for tensor in floats if tensor.shape.rank != 0]
    if operation.type in _WITH_FACTOR and len(larger) < len(floats):
        return _Origin(None, [tensor.op for tensor in larger])
    if _computes(operation):
        return _Origin(str(operation.outputs[0].dtype.base_dtype.name), [])
    return None


def _computes(operation: Operation) -> bool:
    return any(name in operation.type for name in _COMPUTING)


def _of_values(gradient: Gradient, scale: float) -> Optional[str]:
    """Returns the dtype that holds the values of a scaled gradient, in eager mode.

    None if they are too few, or so simple that float16 holds them in any case.
    """
    if isinstance(gradient, tf.IndexedSlices):
        gradient = gradient.values
    if gradient.dtype != tf.float32:
        return str(gradient.dtype.name)
    values = tf.reshape(gradient, [-1])[:_SAMPLE].numpy() * np.float32(scale)
    values = values[values != 0]
    if len(values) < _FEW or not np.isfinite(values).all() or np.frexp(scale)[0] != 0.5:
        return None
    bits = values.view(np.int32)
    if (bits & 0xFFFF == 0).all():
        return "bfloat16" if (bits & 0x7FFFF != 0).any() else None
    with np.errstate(over="ignore"):
        is_held = (values.astype(np.float16).astype(np.float32) == values).all()
    return "float16" if is_held else "float32"
