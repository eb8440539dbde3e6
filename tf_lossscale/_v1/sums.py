"""`cross_replica_sum`, and the sums of `CrossShardOptimizer`."""

from typing import Any, Dict, List, Optional, Sequence

from tf_lossscale._replicas.collectives import collective_sums
from tf_lossscale._replicas.shards import Call, Shards, current_shards, this_call
from tf_lossscale._types import DType, Tensor
from tf_lossscale._versions.base import do_not_convert, tf, tf1

_DTYPES = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.uint32)


@do_not_convert
def cross_replica_sum(
    x: Tensor,
    group_assignment: Optional[Sequence[Sequence[int]]] = None,
    name: Optional[str] = None,
) -> Tensor:
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
    shards = current_shards("cross_replica_sum", group_assignment)
    if shards.tpu:
        # Its gradient is the same sum over the same groups. It checks the dtype and the groups.
        return tf.raw_ops.CrossReplicaSum(input=x, group_assignment=shards.groups, name=name)
    value = tf.convert_to_tensor(x)
    if value.dtype.base_dtype not in _DTYPES:
        names = ", ".join(dtype.name for dtype in _DTYPES)
        raise TypeError(
            f"cross_replica_sum: value passed to parameter 'x' has DataType {value.dtype.name}, "
            f"which is not one of: {names}"
        )
    with tf1.name_scope(name, "CrossReplicaSum") as scope:
        if shards.number == 1:
            return tf.identity(value, name=scope)
        (total,) = replica_sums([value], shards, this_call("cross_replica_sum"))
        return tf.identity(total, name=scope)


@do_not_convert
def replica_sums(
    values: Sequence[Tensor], shards: Shards, call: Call, parts: Optional[Sequence[Tensor]] = None
) -> List[Tensor]:
    """Returns the same as `collective_sums`, with gradients."""

    @tf.custom_gradient
    def summed(*xs: Tensor) -> Any:
        def gradient(*dys: Tensor) -> Any:
            back = call._replace(what=f"the gradient of {call.what}")
            return replica_sums(dys, shards, back)

        return collective_sums(xs, shards, call, parts), gradient

    return list(summed(*values))


# Small tensors are packed, because each collective has a fixed cost. Tensors of at least this many
# elements are not: the copy costs more than a collective.
_LARGE = 1 << 16


@do_not_convert
def sum_packed(tensors: Sequence[Tensor], shards: Shards, call: Call) -> List[Tensor]:
    """Returns the sums of `tensors`; the small ones of each dtype are summed as one vector."""
    packs = _packs(tensors)
    members = [[tensors[index] for index in indices] for indices in packs]
    totals = replica_sums(list(map(_packed, members)), shards, call, tensors)
    sums: Dict[int, Tensor] = {}
    for indices, tensors_of_pack, total in zip(packs, members, totals):
        sums.update(zip(indices, _unpacked(total, tensors_of_pack)))
    return [sums[index] for index in range(len(tensors))]


def _packs(tensors: Sequence[Tensor]) -> List[List[int]]:
    """Returns the positions of the tensors of each sum.

    The order of the sums depends on dtypes and shapes only, so that it is the same on all replicas.
    """
    large: List[List[int]] = []
    small: Dict[DType, List[int]] = {}
    for index, tensor in enumerate(tensors):
        if (tensor.shape.num_elements() or 0) >= _LARGE:
            large.append([index])
        else:
            small.setdefault(tensor.dtype.base_dtype, []).append(index)
    return [*large, *small.values()]


def _packed(members: Sequence[Tensor]) -> Tensor:
    """Returns the vector of all elements; a tensor that is alone keeps its shape."""
    if len(members) == 1:
        return members[0]
    return tf.concat([tf.reshape(member, [-1]) for member in members], axis=0)


def _unpacked(total: Tensor, members: Sequence[Tensor]) -> List[Tensor]:
    """Returns the parts of a sum that `_packed` made one vector, with the shapes of `members`."""
    if len(members) == 1:
        return [total]
    sizes = [m.shape.num_elements() if m.shape.is_fully_defined() else tf.size(m) for m in members]
    parts = []
    for member, part in zip(members, tf.split(total, sizes)):
        is_known = member.shape.is_fully_defined()
        parts.append(tf.reshape(part, member.shape if is_known else tf.shape(member)))
        parts[-1].set_shape(member.shape)
    return parts
