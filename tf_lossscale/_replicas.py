"""What a step needs of `tf.distribute`: gradients as the optimizer will add them up, and one flag.

Every replica must come to the same decision: where one replica skips a step and another applies it,
their copies of the weights part for ever. There are two ways to agree. In a cross-replica context
`aggregated` adds the gradients of the replicas up, so that one test sees what the optimizer will
apply (a sum can overflow where no part of it does). In a replica context `agreed` combines the
flags of the replicas.
"""

from typing import Any, Callable, List, Sequence

from tf_lossscale._versions import not_converted, tf

__all__ = ["aggregated", "agreed", "merge", "replica_count", "require_cross_replica_context"]


def replica_count() -> int:
    """Returns how many replicas share each step: 1 without a strategy."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


@not_converted
def merge(function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function(strategy, *args)` once for all replicas; at once where there is no strategy.

    Args:
      function: takes the strategy and `args`, each of which holds the values of all replicas.
      *args: the values of this replica.

    Returns:
      What `function` returned, as seen from this replica.
    """
    if not tf.distribute.has_strategy():
        return function(tf.distribute.get_strategy(), *args)
    return tf.distribute.get_replica_context().merge_call(function, args=args)


@not_converted
def aggregated(strategy: Any, gradients: Sequence[Any]) -> List[Any]:
    """Returns the sums over all replicas of `gradients`, in a cross-replica context.

    A value that is no longer per replica (the caller reduced it) is returned as it is.

    Args:
      strategy: the current strategy.
      gradients: tensors, `IndexedSlices`, per-replica values of these, or None.

    Returns:
      A flat list: each gradient summed, on every device of this process that holds the sum.
    """
    given = [gradient for gradient in gradients if gradient is not None]
    if strategy.num_replicas_in_sync > 1:
        apart = [each for each in given if _is_apart(strategy, each)]
        together = [each for each in given if not _is_apart(strategy, each)]
        # One call for all, as optimizers do it: the values travel packed.
        sums = apart and strategy.extended.batch_reduce_to(
            tf.distribute.ReduceOp.SUM, [(each, each) for each in apart]
        )
        given = together + list(sums)
    return [value for each in given for value in strategy.experimental_local_results(each)]


@not_converted
def agreed(flag: Any) -> Any:
    """Returns a bool scalar: whether `flag` is True on every replica, in a replica context.

    Args:
      flag: bool tensor of shape `[]`, this replica's own.
    """
    if replica_count() == 1:
        return flag
    bad = tf.cast(tf.logical_not(flag), tf.float32)
    context = tf.distribute.get_replica_context()
    return tf.equal(context.all_reduce(tf.distribute.ReduceOp.SUM, bad), 0.0)


def require_cross_replica_context(what: str) -> None:
    """Raises a RuntimeError where `what` is called inside one replica of a strategy."""
    if tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context():
        raise RuntimeError(
            f"{what} was called in a replica context, where the gradients of the other replicas "
            "cannot be seen. Call it in a cross-replica context: through "
            "`tf.distribute.get_replica_context().merge_call(...)`, or outside `strategy.run`."
        )


def _is_apart(strategy: Any, value: Any) -> bool:
    """Returns whether `value` is still one for each replica.

    A plain tensor is a sum already, except where this process runs one replica of several: there
    the value of that replica is a plain tensor too.
    """
    plain = isinstance(value, (tf.Tensor, tf.IndexedSlices))
    return not plain or len(strategy.extended.worker_devices) == 1
