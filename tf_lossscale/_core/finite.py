"""Tests whether every gradient is finite, which decides whether a step is applied.

The obvious test, `reduce_all(is_finite(g))`, writes a bool for every element and reads it back. A
sum reads each gradient once and writes nothing, and infinities and NaN never sum to a finite value.
So sums are tested first, over several gradients at once where that is faster. A sum that is not
finite proves nothing, because finite numbers can overflow: only then are the elements tested, in a
branch that other steps do not run. The one special case is float16 on CPUs. XLA can compile all.
"""

from typing import Any, Dict, List, Sequence, Tuple

from tf_lossscale._core.conditional import branch
from tf_lossscale._versions.base import do_not_convert, tf, tf1

__all__ = ["SMALL", "all_finite", "gradient_values", "is_finite"]

SMALL = 1 << 14
"""Number of elements up to which the call of an operation takes longer than its work."""


def gradient_values(gradients: Sequence[Any]) -> List[Any]:
    """Returns the dense tensors to test: the values of sparse and ragged gradients, and no None."""
    return [_values(gradient) for gradient in gradients if gradient is not None]


def _values(gradient: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return gradient.values
    return gradient.flat_values if isinstance(gradient, tf.RaggedTensor) else gradient


@do_not_convert
def all_finite(gradients: Sequence[Any]) -> Any:
    """Returns a bool scalar tensor: True where no gradient holds an infinity or a NaN.

    Args:
      gradients: tensors of any float dtype and shape, `IndexedSlices` and None, in a flat sequence.
        None is ignored, and of `IndexedSlices` only the values are tested. An empty sequence and
        empty tensors are finite.

    Returns:
      A bool tensor of shape `[]`.

    Raises:
      TypeError: a gradient is not of a float dtype.
    """
    values = [
        value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)
        for value in gradient_values(gradients)
    ]
    for value in values:
        if not value.dtype.is_floating:
            raise TypeError(
                f"Only float gradients can be tested for infinities and NaN, but {value} is of "
                f"dtype {value.dtype.name}; None stands for no gradient."
            )
    if not values:
        return tf.constant(True)
    # In its own scope, so that names outside it, some of which are checkpoint keys, do not change.
    with tf1.name_scope(None, "all_finite"):
        slow, quick = _split(values)
        answers = [ask(some) for ask, some in ((_by_elements, slow), (_by_sums, quick)) if some]
        return answers[0] if len(answers) == 1 else tf.logical_and(*answers)


def _split(values: Sequence[Any]) -> Tuple[List[Any], List[Any]]:
    """Returns the tensors for which sums are slow, and the others.

    CPUs add float16 in software, which is up to five times slower than to test each element.
    """
    halves = [value for value in values if value.dtype == tf.float16]
    if not halves or tf.config.experimental.list_physical_devices("GPU"):
        return [], list(values)
    return halves, [value for value in values if value.dtype != tf.float16]


def _by_elements(values: Sequence[Any]) -> Any:
    axes = _Axes()
    flags = [tf1.reduce_all(is_finite(value), axis=axes.of(value)) for value in values]
    return flags[0] if len(flags) == 1 else tf1.reduce_all(tf.stack(flags))


def _by_sums(values: Sequence[Any]) -> Any:
    axes = _Axes()
    sums: Dict[Any, List[Any]] = {}
    for value in _added_up(values):
        total = tf1.reduce_sum(value, axis=axes.of(value))
        sums.setdefault(total.dtype, []).append(total)
    certain = is_finite(_total([tf.cast(_total(same), tf.float32) for same in sums.values()]))
    return branch(tf.logical_not(certain), lambda: _by_elements(values), only_tests=True)


def _added_up(values: Sequence[Any]) -> List[Any]:
    """Adds tensors of the same dtype, shape and device where one operation for all is faster.

    That is so for small tensors, and for all tensors in eager mode. Large tensors in a graph are
    kept separate: their sums run in parallel, each as soon as its gradient is ready.
    """
    alike: Dict[Any, List[Any]] = {}
    all_sizes = tf.executing_eagerly()
    for index, value in enumerate(values):
        if all_sizes or _is_small(value):
            # Nothing is copied to another device.
            key: Any = (value.dtype, tuple(value.shape.as_list()), value.device)
        else:
            key = index
        alike.setdefault(key, []).append(value)
    return [_total(tensors) for tensors in alike.values()]


def _is_small(tensor: Any) -> bool:
    size = tensor.shape.num_elements()
    return size is not None and size <= SMALL


def _total(tensors: List[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else tf.add_n(tensors)


def is_finite(tensor: Any) -> Any:
    """Returns a bool tensor of the shape of a float tensor: which elements are finite."""
    if tensor.dtype == tf.bfloat16:  # no kernel for it before TensorFlow 2.4
        tensor = tf.cast(tensor, tf.float32)
    return tf1.is_finite(tensor)


class _Axes:
    """The axes to reduce: one tensor for all gradients of the same rank."""

    def __init__(self) -> None:
        self._by_rank: Dict[int, Any] = {}

    def of(self, tensor: Any) -> Any:
        """Returns all axes of `tensor`; None, which means the same, if its rank is unknown."""
        rank = tensor.shape.rank
        if rank is None:
            return None
        if rank not in self._by_rank:
            self._by_rank[rank] = tf.constant(list(range(rank)), dtype=tf.int32)
        return self._by_rank[rank]
