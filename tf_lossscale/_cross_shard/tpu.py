"""The TPU's own sum over shards, built as the original builds it."""

from typing import Any, Optional

from tf_lossscale._versions.base import tf

__all__ = ["tpu_sum"]


def tpu_sum(value: Any, group_assignment: Any, name: Optional[str] = None) -> Any:
    """Returns the operation `CrossReplicaSum`, which has kernels only on TPUs.

    TensorFlow registers its gradient: the same sum over the same groups.

    Args:
      value: tensor, or `IndexedSlices`, which are converted to a dense tensor; its dtype must be
        one that the operation supports in this TensorFlow.
      group_assignment: shard numbers, int32 of shape `[groups, size]`, or lists of them.
      name: name of the operation.

    Raises:
      TypeError: the operation does not support this dtype.
      ValueError: `group_assignment` is ragged.
    """
    return tf.raw_ops.CrossReplicaSum(input=value, group_assignment=group_assignment, name=name)
