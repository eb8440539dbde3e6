"""`cross_replica_sum`, and the sums of `CrossShardOptimizer`."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tf_lossscale._core.collectives import collective_sums
from tf_lossscale._core.shards import Shards, all_shards, current_shards, groups_of
from tf_lossscale._core.workers import Call, call_site, step_of, workers_are_checked
from tf_lossscale._versions.base import do_not_convert, tf, tf1

__all__ = ["LARGE", "cross_replica_sum", "replica_sums", "sum_packed", "tpu_sum", "with_shapes"]


@do_not_convert
def cross_replica_sum(
    x: Any, group_assignment: Optional[Any] = None, name: Optional[str] = None
) -> Any:
    """Sums a tensor over all shards of the step, or over the shards of each subgroup.

    Stands for `tf.contrib.tpu.cross_replica_sum` and `tf.compat.v1.tpu.cross_replica_sum`,
    TensorFlow 1.15 and 2.21, which work only on TPUs. Here the shards are those of a TPU program,
    where the original's operation is built, or the replicas of the current
    `tf.distribute.Strategy`, over which a collective runs. With one shard, or outside both, `x` is
    returned.

    The gradient with respect to `x` is the sum of the gradients over the same groups.

    Args:
      x: tensor of any shape, the same on all shards, of dtype bfloat16, float16, float32, float64,
        int32 or uint32; in TPU programs, of any dtype that TensorFlow's operation supports.
      group_assignment: lists of shard numbers, groups of equal size that contain each shard once,
        int32 of shape `[groups, size]`; None or empty: one group of all shards.
      name: name of the operation.

    Returns:
      A tensor like `x`.

    Raises:
      RuntimeError: the call is made outside the replicas of a strategy that has several.
      NotImplementedError: each replica would wait for the others in its own loop or function.
      TypeError: `x` has an unsupported dtype.
      ValueError: the groups are not an equal partition of the shards.
    """
    shards = current_shards("cross_replica_sum")
    if shards.tpu:
        return tpu_sum(x, group_assignment or all_shards(shards.number), name)
    value = tf.convert_to_tensor(x)
    _check_dtype(value)
    groups = groups_of(group_assignment, shards.number)
    with tf1.name_scope(name, "CrossReplicaSum") as scope:
        if shards.number == 1:
            return tf.identity(value, name=scope)
        call = Call("cross_replica_sum", call_site())
        (total,) = replica_sums([value], shards, groups, call)
        return tf.identity(total, name=scope)


@do_not_convert
def replica_sums(
    values: Sequence[Any],
    shards: Shards,
    groups: Sequence[Sequence[int]],
    call: Call,
    parts: Optional[Sequence[Any]] = None,
) -> List[Any]:
    """Returns the sums over this replica's group, with their gradients.

    `parts` are the tensors that were packed into `values`, if they were.
    """
    summands = values if parts is None else parts
    step = step_of(call, groups, summands) if workers_are_checked(shards.strategy) else None
    if step is None and parts is not None:
        call = with_shapes(call, parts)

    @tf.custom_gradient
    def summed(*xs: Any) -> Any:
        def gradient(*dys: Any) -> Any:
            back = call._replace(what=f"the gradient of {call.what}")
            return replica_sums(dys, shards, groups, back)

        return collective_sums(xs, shards, groups, step, call), gradient

    return list(summed(*values))


def with_shapes(call: Call, tensors: Sequence[Any]) -> Call:
    """Returns the call with the shapes of `tensors`: in a Session each sum is checked alone."""
    return call._replace(
        what=call.what + " of " + ", ".join(str(tensor.shape) for tensor in tensors)
    )


_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.uint32)


def _check_dtype(value: Any) -> None:
    if value.dtype.base_dtype not in _DTYPES:
        names = ", ".join(dtype.name for dtype in _DTYPES)
        raise TypeError(
            f"cross_replica_sum: value passed to parameter 'x' has DataType {value.dtype.name}, "
            f"which is not one of: {names}"
        )


# Small tensors are packed, because each collective has a fixed cost. Tensors of at least this many
# elements are not: the copy costs more than a collective.
LARGE = 1 << 16


@do_not_convert
def sum_packed(tensors: Sequence[Any], sum_all: Callable[[List[Any]], Sequence[Any]]) -> List[Any]:
    """Returns the sums of `tensors`; the small ones of each dtype are summed as one vector."""
    sums: List[Any] = [None] * len(tensors)
    packs = _packs(tensors)
    totals = sum_all([_packed([tensors[index] for index in indices]) for indices in packs])
    for indices, total in zip(packs, totals):
        if len(indices) == 1:
            sums[indices[0]] = total
            continue
        members = [tensors[index] for index in indices]
        parts = tf.split(total, [_size(member) for member in members])
        for index, member, part in zip(indices, members, parts):
            sums[index] = tf.reshape(part, _shape(member))
            sums[index].set_shape(member.shape)
    return sums


def _packed(members: Sequence[Any]) -> Any:
    if len(members) == 1:
        return members[0]
    return tf.concat([tf.reshape(member, [-1]) for member in members], axis=0)


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


def tpu_sum(value: Any, group_assignment: Any, name: Optional[str] = None) -> Any:
    """Returns the operation `CrossReplicaSum`, which has kernels only on TPUs.

    TensorFlow registers its gradient, the same sum over the same groups, and checks the dtype and
    the groups. `IndexedSlices` are converted to a dense tensor.
    """
    return tf.raw_ops.CrossReplicaSum(input=value, group_assignment=group_assignment, name=name)
