"""Finds which gradients are not finite: more work than the finite check, for skipped steps."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from tf_lossscale._core.finite import SMALL, gradient_values, is_finite
from tf_lossscale._core.steps import unnoticed, variable_name
from tf_lossscale._versions.base import do_not_convert, tf, tf1, where

__all__ = ["BadGradients", "bad_gradients", "find_nonfinite"]


class BadGradients(NamedTuple):
    """The variables whose gradients are not finite.

    Attributes:
      first: int64 tensor of shape `[]`, the position of the first one; the number of variables if
        all gradients are finite.
      are_all: bool tensor of shape `[]`, whether no variable has only finite gradients.
    """

    first: Any
    are_all: Any


@do_not_convert
def bad_gradients(gradients: Sequence[Sequence[Any]]) -> BadGradients:
    """Finds the variables that have a gradient with an infinity or a NaN.

    Args:
      gradients: for each variable, tensors and `IndexedSlices`, or None.
    """
    flags = _bad_flags(gradients)
    count = tf.constant(len(gradients), tf.int64)
    order = tf.constant(list(range(len(gradients))), tf.int64)
    positions = where(flags, order, tf.fill([len(gradients)], count))
    return BadGradients(tf1.reduce_min(positions), tf1.reduce_all(flags))


@do_not_convert
def find_nonfinite(grads_and_vars: Any) -> Any:
    """Finds the variables whose gradient holds an infinity or a NaN.

    Every element of every gradient is tested, which takes longer than the finite check of an
    optimizer: use it to debug. Under a strategy, it tests the gradients of the current replica.

    Examples:
      >>> import tensorflow as tf
      >>> import tf_lossscale as tfls
      >>> one, two = tf.Variable(1.0, name="one"), tf.Variable(2.0, name="two")
      >>> gradients = [tf.constant(1.0), tf.constant(float("nan"))]
      >>> tfls.monitoring.find_nonfinite(zip(gradients, [one, two]))
      ['two']

    Args:
      grads_and_vars: pairs of a float gradient (a tensor, `IndexedSlices`, or None, which counts as
        finite) and its variable.

    Returns:
      In eager mode, the list of the names of these variables, in the order of the pairs. In a graph
      or a `tf.function`, a string tensor of shape `[n]` with the same names, for `tf.print` or
      `Session.run`. XLA cannot compile strings.
    """
    pairs = list(grads_and_vars)
    names = [variable_name(variable) for _, variable in pairs]
    with unnoticed("tf_lossscale_monitor/"):
        flags = _bad_flags([[gradient] for gradient, _ in pairs])
        if tf.executing_eagerly():
            return [name for name, is_bad in zip(names, flags.numpy()) if is_bad]
        return tf.boolean_mask(tf.constant(names, tf.string, [len(names)]), flags)


def _bad_flags(gradients: Sequence[Sequence[Any]]) -> Any:
    """Returns for each position whether one of its gradients is not finite: a bool tensor `[n]`."""
    flags: List[Any] = []
    order: List[int] = []
    for positions, tensors in _alike(gradients):
        flags.append(_finite(tensors))
        order += positions
    if not flags:
        return tf.fill([len(gradients)], tf.constant(False))
    bad = tf.cast(tf.logical_not(tf.concat(flags, 0)), tf.int32)
    return tf.math.unsorted_segment_sum(bad, tf.constant(order), len(gradients)) > 0


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
