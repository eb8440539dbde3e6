"""Sums over replicas, and one decision for all of them.

All replicas must decide alike: if one replica skips a step that another applies, their copies of
the weights differ from then on. There are two ways to agree. In a cross-replica context, the sums
over the replicas are tested, which is what the optimizer will apply (a sum can overflow even if no
term does). In a replica context, `all_replicas_agree` combines the flags of all replicas.
"""

from typing import Any, Iterable, List, Sequence

from tf_lossscale._replicas.collectives import sum_over_workers
from tf_lossscale._replicas.shards import has_several_workers, workers_are_checked
from tf_lossscale._types import Gradients, Method, Operation, PerReplica, Strategy, Tensor, Variable
from tf_lossscale._versions.base import do_not_convert, has, tf, tf1
from tf_lossscale._versions.releases import Since
from tf_lossscale._versions.replicas import map_replicas


def replica_count() -> int:
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


@do_not_convert
def merge(function: Method, *args: object) -> Any:
    """Calls `function(strategy, *args)` once for all replicas; directly if there is no strategy."""
    if not tf.distribute.has_strategy():
        return function(tf.distribute.get_strategy(), *args)
    return tf.distribute.get_replica_context().merge_call(function, args=args)


def call_in_replicas(strategy: Strategy, function: Method, args: Sequence[Any]) -> List[Operation]:
    """Calls a function in each replica of this process, in a cross-replica context.

    Each of `args` holds the values of all replicas. Without a strategy, the function is called
    once. Returns what the replicas returned, flat and without None.
    """
    if tf.distribute.has_strategy():
        done = strategy.extended.call_for_each_replica(function, args=tuple(args))
        results = list(strategy.experimental_local_results(done))
    else:
        results = [function(*args)]
    return [result for result in tf.nest.flatten(results) if result is not None]


@do_not_convert
def summed_to_test(strategy: Strategy, gradients: Gradients) -> List[PerReplica]:
    """Returns the sums over all replicas of the gradients that are not None, in their order.

    The sums are only for the test, in a cross-replica context: `gradients` are not changed, and the
    optimizer that applies them sums them again. A value that the caller has already reduced is
    returned unchanged.
    """
    given = [gradient for gradient in gradients if gradient is not None]
    if strategy.num_replicas_in_sync == 1:
        return given
    devices = strategy.extended.worker_devices
    # A plain tensor is a sum already, except if this process runs only one of several replicas: the
    # value of that replica is a plain tensor, too.
    apart = [i for i, value in enumerate(given) if len(devices) == 1 or not _is_plain(value)]
    # Copies, because TensorFlow 1.15 to 2.4 overwrite the inputs of a sum with the result.
    copies = [copy_of(given[i]) for i in apart]
    # One call for all, as in the optimizers: the values are sent packed. In 1.15 to 2.4 sparse
    # values, and tensors without a device, cannot serve as a destination.
    with tf1.name_scope(None, "sums_to_test"):
        pairs = [(value, devices[0] if _is_plain(value) else value) for value in copies]
        sums = pairs and strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, pairs)
    for i, total in zip(apart, sums):
        given[i] = total
    return given


def _is_plain(value: PerReplica) -> bool:
    return isinstance(value, (tf.Tensor, tf.IndexedSlices))


def copy_of(value: PerReplica) -> PerReplica:
    """Returns a copy of a tensor, `IndexedSlices` or per-replica value in separate memory."""

    def copy(tensor: Tensor) -> Tensor:
        if isinstance(tensor, tf.IndexedSlices):
            values, indices = copy(tensor.values), tf.identity(tensor.indices)
            return tf.IndexedSlices(values, indices, dense_shape=tensor.dense_shape)
        # Grappler would remove any other copy.
        return tensor if tf.executing_eagerly() else tf.raw_ops.Snapshot(input=tensor)

    if _is_plain(value):
        # From the only replica of this process. TensorFlow 1.15 sums only tensors with a device.
        with tf1.device(tf.distribute.get_strategy().extended.worker_devices[0]):
            return copy(value)
    return map_replicas(copy, value)


@do_not_convert
def all_workers_agree(flag: Tensor) -> Tensor:
    """Returns a bool scalar: whether `flag` is True on every worker, in a cross-replica context."""
    strategy = tf.distribute.get_strategy()
    # Without a strategy, no devices are known.
    if strategy.num_replicas_in_sync == 1 or not has_several_workers(strategy):
        return flag
    if not has(Since.STRATEGY_SURVIVES_RETRACING) and workers_are_checked(strategy):
        bad = tf.cast(tf.logical_not(flag), tf.float32)
        return tf.equal(sum_over_workers(bad, strategy, "the test of all workers' gradients"), 0.0)
    with tf1.name_scope(None, "all_workers_agree"):
        device = strategy.extended.worker_devices[0]
        with tf1.device(device):
            bad = tf.cast(tf.logical_not(flag), tf.float32)
        (total,) = strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.SUM, [(bad, device)])
        return tf.equal(strategy.experimental_local_results(total)[0], 0.0)


@do_not_convert
def all_replicas_agree(flag: Tensor) -> Tensor:
    """Returns a bool scalar: whether `flag` is True on every replica, in a replica context."""
    if replica_count() == 1:
        return flag
    bad = tf.cast(tf.logical_not(flag), tf.float32)
    context = tf.distribute.get_replica_context()
    return tf.equal(context.all_reduce(tf.distribute.ReduceOp.SUM, bad), 0.0)


def copy_first_replica(variables: Iterable[Variable]) -> None:
    """Copies the values of the first replica of each mirrored variable to the others.

    TensorFlow restores a variable that is created in a replica context, as the slots are in the
    first step, on the first replica only. Keras's own optimizers have this fault (Keras 3.15).
    """
    if tf.distribute.in_cross_replica_context():
        return
    for variable in variables:
        first, *others = getattr(variable, "values", (None,))
        for other in others:
            other.assign(first)


def assign_first_replica(variable: Variable, value: Tensor) -> None:
    """Assigns to a variable; in a replica context, only in the first replica.

    There, an assignment waits for all replicas, of which only the first creates variables.
    """
    is_replica = not tf.distribute.in_cross_replica_context()
    first = getattr(variable, "values", (variable,))[0] if is_replica else variable
    first.assign(value)
