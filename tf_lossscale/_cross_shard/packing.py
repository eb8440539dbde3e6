"""Packs many small tensors into a few large ones, because each collective has a fixed cost."""

from typing import Any, Callable, Dict, List, Sequence, Tuple

from tf_lossscale._versions.base import do_not_convert, tf

__all__ = ["sum_packed"]

# Tensors of at least this many elements are not packed: a copy costs more than a collective.
LARGE = 1 << 16


@do_not_convert
def sum_packed(tensors: Sequence[Any], sum_all: Callable[[List[Any]], Sequence[Any]]) -> List[Any]:
    """Returns the sums of `tensors`; the small ones of each dtype are summed as one vector.

    Args:
      tensors: tensors of any shapes and dtypes.
      sum_all: takes a list of tensors and returns the sum of each over the shards.

    Returns:
      The sums, in the order of `tensors`.
    """
    sums: List[Any] = [None] * len(tensors)
    packs = _packs(tensors)
    totals = sum_all([_packed([tensors[index] for index in indices]) for indices in packs])
    for indices, total in zip(packs, totals):
        if len(indices) == 1:
            sums[indices[0]] = total
            continue
        members = [tensors[index] for index in indices]
        parts = tf.split(total, [_size(each) for each in members])
        for index, member, part in zip(indices, members, parts):
            sums[index] = tf.reshape(part, _shape(member))
            sums[index].set_shape(member.shape)
    return sums


def _packed(members: Sequence[Any]) -> Any:
    if len(members) == 1:
        return members[0]
    return tf.concat([tf.reshape(each, [-1]) for each in members], axis=0)


def _packs(tensors: Sequence[Any]) -> List[Tuple[int, ...]]:
    """Groups the numbers of the tensors, in an order that depends on dtypes and shapes only."""
    small: Dict[Any, List[int]] = {}
    packs: List[Tuple[int, ...]] = []
    for index, tensor in enumerate(tensors):
        elements = tensor.shape.num_elements()
        if elements is not None and elements >= LARGE:
            packs.append((index,))
        else:
            small.setdefault(tensor.dtype.base_dtype, []).append(index)
    return packs + [tuple(indices) for indices in small.values()]


def _size(tensor: Any) -> Any:
    elements = tensor.shape.num_elements()
    return tf.size(tensor) if elements is None else elements


def _shape(tensor: Any) -> Any:
    return tensor.shape if tensor.shape.is_fully_defined() else tf.shape(tensor)
