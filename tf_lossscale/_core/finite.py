"""Tests whether every gradient is finite, which decides whether a step is applied.

The obvious test, `reduce_all(is_finite(g))`, writes a bool for every element and reads it back. A
sum reads each gradient once and writes nothing, and infinities and NaN never sum to a finite value.
So sums are tested first, over several gradients at once where that is faster. A sum that is not
finite proves nothing, because finite numbers can overflow: only then are the elements tested, in a
branch that other steps do not run. Where sums are slower, the elements are tested at once: float16
on CPUs, and small gradients in a `tf.function`. XLA can compile all.
"""

from typing import Dict, List, NamedTuple, Sequence, Tuple, Union

from tf_lossscale._core.conditional import branch
from tf_lossscale._types import Gradient, Gradients, GradsAndVars, Shape, Tensor
from tf_lossscale._versions.base import do_not_convert, tf, tf1, where
from tf_lossscale._versions.unnoticed import unnoticed
from tf_lossscale._versions.variables import variable_name

_SMALL = 1 << 14  # elements up to which the call of an operation takes longer than its work


def _values(gradients: Gradients) -> List[Tensor]:
    """Returns the dense tensors to test: the values of sparse and ragged gradients, and no None."""
    values = []
    for gradient in gradients:
        if isinstance(gradient, tf.IndexedSlices):
            gradient = gradient.values
        elif isinstance(gradient, tf.RaggedTensor):
            gradient = gradient.flat_values
        if gradient is not None:
            is_tensor = isinstance(gradient, tf.Tensor)
            values.append(gradient if is_tensor else tf.convert_to_tensor(gradient))
    return values


@do_not_convert
def all_finite(gradients: Gradients) -> Tensor:
    """Returns a bool scalar tensor: True where no gradient holds an infinity or a NaN.

    `gradients` are tensors of any float dtype and shape, `IndexedSlices`, of which only the values
    are tested, and None, which is ignored. No gradients are finite.
    """
    values = _values(gradients)
    for value in values:
        if not value.dtype.is_floating:
            raise TypeError(
                f"Only float gradients can be tested for infinities and NaN, but {value} is of "
                f"dtype {value.dtype.name}; None stands for no gradient."
            )
    if not values:
        return tf.constant(True)
    by_elements = [value for value in values if _is_tested_by_elements(value)]
    by_sums = [value for value in values if not _is_tested_by_elements(value)]
    # In its own scope, so that names outside it, some of which are checkpoint keys, do not change.
    with tf1.name_scope(None, "all_finite"):
        if not by_sums:
            return _by_elements(by_elements)
        if not by_elements:
            return _by_sums(by_sums)
        return tf.logical_and(_by_elements(by_elements), _by_sums(by_sums))


def _is_tested_by_elements(value: Tensor) -> bool:
    """Whether a test of each element takes less time than a sum."""
    if value.dtype == tf.float16:
        # CPUs add float16 in software, which is up to five times slower.
        return not tf.config.experimental.list_physical_devices("GPU")
    # In a function, the branch for sums that are not finite costs more than these elements.
    in_function = not tf.executing_eagerly() and tf1.get_default_graph().building_function
    return in_function and _is_small(value)


def _by_elements(values: Sequence[Tensor]) -> Tensor:
    axes: Dict[int, Tensor] = {}
    alike: Dict[object, List[Tensor]] = {}
    for index, value in enumerate(values):
        # Packing the bools of small tensors takes less time than a `reduce_all` for each.
        key = _shape_and_device(value) if _is_small(value) else index
        alike.setdefault(key, []).append(is_finite(value))
    tests = [same[0] if len(same) == 1 else tf.stack(same) for same in alike.values()]
    flags = [tf1.reduce_all(test, axis=_axes(test, axes)) for test in tests]
    return flags[0] if len(flags) == 1 else tf1.reduce_all(tf.stack(flags))


def _by_sums(values: Sequence[Tensor]) -> Tensor:
    axes: Dict[int, Tensor] = {}
    sums: Dict[object, List[Tensor]] = {}
    for value in _added_up(values):
        total = tf1.reduce_sum(value, axis=_axes(value, axes))
        sums.setdefault(total.dtype, []).append(total)
    certain = is_finite(_total([tf.cast(_total(same), tf.float32) for same in sums.values()]))
    return branch(tf.logical_not(certain), lambda: _by_elements(values), only_tests=True)


def _added_up(values: Sequence[Tensor]) -> List[Tensor]:
    """Adds tensors of the same dtype, shape and device where one operation for all is faster.

    That is so for small tensors, and for all tensors in eager mode. Large tensors in a graph are
    kept separate: their sums run in parallel, each as soon as its gradient is ready.
    """
    alike: Dict[object, List[Tensor]] = {}
    all_sizes = tf.executing_eagerly()
    for index, value in enumerate(values):
        key: object = index
        if all_sizes or _is_small(value):  # and nothing is copied to another device
            key = (value.dtype, *_shape_and_device(value))
        alike.setdefault(key, []).append(value)
    return [_total(tensors) for tensors in alike.values()]


def _shape_and_device(tensor: Tensor) -> Tuple[Shape, str]:
    return tuple(tensor.shape.as_list()), tensor.device


def _is_small(tensor: Tensor) -> bool:
    size = tensor.shape.num_elements()
    return size is not None and size <= _SMALL


def _total(tensors: List[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else tf.add_n(tensors)


def is_finite(tensor: Tensor) -> Tensor:
    if tensor.dtype == tf.bfloat16:  # no kernel for it before TensorFlow 2.4
        tensor = tf.cast(tensor, tf.float32)
    return tf1.is_finite(tensor)


def _axes(tensor: Tensor, by_rank: Dict[int, Tensor]) -> Tensor:
    """Returns all axes: one tensor for all gradients of the same rank, or None, which is slower."""
    rank = tensor.shape.rank
    if rank is not None and rank not in by_rank:
        by_rank[rank] = tf.constant(list(range(rank)), dtype=tf.int32)
    return by_rank.get(rank)


class BadGradients(NamedTuple):
    """Which variables have a gradient with an infinity or a NaN: int64 tensors of shape `[]`."""

    first: Tensor  # the position of the first one, or the number of variables
    last: Tensor  # the position of the last one, or -1
    count: Tensor


@do_not_convert
def bad_gradients(gradients: Sequence[Sequence[Gradient]]) -> BadGradients:
    """Finds the variables that have a gradient with an infinity or a NaN; each may have several."""
    flags = _bad_flags(gradients)
    number = len(gradients)
    from_end = first_true(tf.reverse(flags, [0]), number)
    last = tf.constant(number - 1, tf.int64) - from_end
    return BadGradients(first_true(flags, number), last, tf1.reduce_sum(tf.cast(flags, tf.int64)))


def first_true(flags: Tensor, count: int) -> Tensor:
    """Returns the position of the first True in a bool tensor `[count]`, or `count`: int64 `[]`."""
    order = tf.constant(list(range(count)), tf.int64)
    end = tf.fill([count], tf.constant(count, tf.int64))
    return tf1.reduce_min(where(flags, order, end))


@do_not_convert
def find_nonfinite(grads_and_vars: GradsAndVars) -> Union[List[str], Tensor]:
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


def _bad_flags(gradients: Sequence[Sequence[Gradient]]) -> Tensor:
    """Returns for each position whether one of its gradients is not finite: a bool tensor `[n]`."""
    groups = _tested_together(gradients)
    if not groups:
        return tf.fill([len(gradients)], tf.constant(False))
    flags = tf.concat([_finite_flags(group.tensors) for group in groups], 0)
    positions = [position for group in groups for position in group.positions]
    bad = tf.cast(tf.logical_not(flags), tf.int32)
    return tf.math.unsorted_segment_sum(bad, tf.constant(positions), len(gradients)) > 0


class _Group(NamedTuple):
    """Tensors that one operation tests, each with the position of its gradient."""

    positions: List[int]
    tensors: List[Tensor]


def _tested_together(gradients: Sequence[Sequence[Gradient]]) -> List[_Group]:
    """Groups the float tensors: small ones by dtype and shape, each of the others for itself."""
    groups: Dict[object, _Group] = {}
    for position, gradients_of_variable in enumerate(gradients):
        for tensor in _values(gradients_of_variable):
            if not tensor.dtype.is_floating:
                continue
            key: object = len(groups)
            if _is_small(tensor):
                key = (tensor.dtype, tuple(tensor.shape.as_list()))
            group = groups.setdefault(key, _Group([], []))
            group.positions.append(position)
            group.tensors.append(tensor)
    return list(groups.values())


def _finite_flags(tensors: Sequence[Tensor]) -> Tensor:
    """Returns for each tensor of a group whether it is finite: a bool tensor `[n]`."""
    if len(tensors) == 1:
        return tf.reshape(tf1.reduce_all(is_finite(tensors[0])), [1])
    axes = list(range(1, tensors[0].shape.rank + 1))
    return tf1.reduce_all(is_finite(tf.stack(tensors)), axis=axes)
