"""Finds which gradients are not finite: more work than the finite check, for skipped steps."""

from typing import Any, Dict, List, Sequence, Tuple

from tf_lossscale._core.finite import SMALL, gradient_values, is_finite
from tf_lossscale._versions.base import do_not_convert, tf, tf1, where

__all__ = ["bad_positions", "first_bad"]


@do_not_convert
def first_bad(gradients: Sequence[Sequence[Any]]) -> Any:
    """Returns the position of the first gradient with an infinity or a NaN.

    Args:
      gradients: for each position, tensors and `IndexedSlices`, or None.

    Returns:
      An int64 tensor of shape `[]`; the number of positions if all are finite.
    """
    positions = bad_positions(gradients)
    count = tf.constant(len(gradients), tf.int64)
    return count if positions is None else tf1.reduce_min(positions)


@do_not_convert
def bad_positions(gradients: Sequence[Sequence[Any]]) -> Any:
    """Returns the positions of the gradients with an infinity or a NaN, and others.

    Args:
      gradients: for each position, tensors and `IndexedSlices`, or None.

    Returns:
      An int64 tensor of shape `[n]`, or None if there is no tensor: a position for each tensor that
      is not finite, and the number of positions for each that is.
    """
    flags: List[Any] = []
    order: List[int] = []
    for positions, tensors in _alike(gradients):
        flags.append(_finite(tensors))
        order += positions
    if not flags:
        return None
    count = tf.constant(len(gradients), tf.int64)
    finite = tf.concat(flags, 0)
    return where(finite, tf.fill([len(order)], count), tf.constant(order, tf.int64))


def _alike(gradients: Sequence[Sequence[Any]]) -> List[Tuple[List[int], List[Any]]]:
    """Groups small tensors of equal dtype and shape, which one operation can test together."""
    groups: Dict[Any, Tuple[List[int], List[Any]]] = {}
    for position, each in enumerate(gradients):
        for value in gradient_values(each):
            tensor = value if isinstance(value, tf.Tensor) else tf.convert_to_tensor(value)
            if not tensor.dtype.is_floating:
                continue
            size = tensor.shape.num_elements()
            together = size is not None and size <= SMALL
            key = (tensor.dtype, tuple(tensor.shape.as_list())) if together else len(groups)
            positions, tensors = groups.setdefault(key, ([], []))
            positions.append(position)
            tensors.append(tensor)
    return list(groups.values())


def _finite(tensors: List[Any]) -> Any:
    if len(tensors) == 1:
        return tf.reshape(tf1.reduce_all(is_finite(tensors[0])), [1])
    rank = tensors[0].shape.rank
    return tf1.reduce_all(is_finite(tf.stack(tensors)), axis=list(range(1, rank + 1)))
