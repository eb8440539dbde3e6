"""Sums over the replicas of a strategy, whole or in subgroups, as TensorFlow's own collectives.

Each replica builds one `CollectiveReduce`; the devices meet by its keys, on one machine or over the
network. The operation is older than subgroups in `tf.distribute` and works in all of TensorFlow
1.15 to 2.21, in Sessions and functions.
"""

from typing import Any, Dict, List, Sequence, Tuple

from tf_lossscale._cross_shard.groups import group_of
from tf_lossscale._cross_shard.keys import group_key, instance_key
from tf_lossscale._cross_shard.shards import Shards
from tf_lossscale._versions import (
    call_round_by_round,
    current_loop,
    in_control_flow,
    in_loop_of_session,
    local_replica_started_eagerly,
    not_converted,
    per_replica,
    replicas_of_workers_before,
    tf,
    tf1,
)

__all__ = ["collective_sum"]

# What the operation has no kernel for, somewhere in 1.15 to 2.21, and what takes its place.
_CARRIERS = {tf.float16: tf.float32, tf.bfloat16: tf.float32, tf.uint32: tf.int64}


@not_converted
def collective_sum(value: Any, shards: Shards, groups: Sequence[Sequence[int]]) -> Any:
    """Returns the sum of `value` over the group of this replica.

    Args:
      value: tensor of a float dtype, int32, int64 or uint32, of the same shape on all replicas.
      shards: the replicas of a strategy.
      groups: numbers of replicas; every replica in one group.

    Returns:
      A tensor like `value`.
    """
    if len(groups[group_of(shards.replica, groups)]) == 1:
        return tf.identity(value)
    carrier = _CARRIERS.get(value.dtype.base_dtype, value.dtype.base_dtype)
    carried = tf.cast(value, carrier)
    if tf.executing_eagerly() or _sessions_could_prune():
        total = _together(carried, groups)
    else:
        if local_replica_started_eagerly() and len(shards.strategy.extended.worker_devices) > 1:
            raise NotImplementedError(
                "A sum over replicas stands in a tf.function that each replica runs by itself, one "
                "after the other, so that they would wait for each other for ever. Put a "
                "tf.function around `strategy.run`."
            )
        total = _reduce(carried, shards.strategy, shards.replica, groups)
    return tf.cast(total, value.dtype)


def _reduce(value: Any, strategy: Any, index: int, groups: Sequence[Sequence[int]]) -> Any:
    """Builds the operation of one replica."""
    number = group_of(index, groups)
    members = list(groups[number])
    devices = strategy.extended.worker_devices
    apart = len(devices) > 1 and in_loop_of_session()
    loop = current_loop() if len(devices) > 1 and not apart else None
    keys = {
        "group_key": group_key(strategy, members),
        "instance_key": instance_key(index, number, len(groups), loop),
    }

    def reduce(x: Any) -> Any:
        # A scope of its own: collectives of one scope can be merged into one by TensorFlow, and up
        # to 2.4 that writes the sums over what went into them. A device of its own for each member,
        # whatever the code around it says: two on one would wait.
        place = devices[index % len(devices)]
        with tf1.name_scope(None, "replica_sum"), tf1.device(None), tf1.device(place):
            return tf.raw_ops.CollectiveReduce(
                input=x,
                group_size=len(members),
                merge_op="Add",
                final_op="Id",
                subdiv_offsets=[0],
                **keys,
            )

    if not apart:
        total = reduce(value)
        if loop is not None:
            _hold_up_the_round(total)
        return total
    with tf1.device(None), tf1.device(devices[index % len(devices)]):
        return call_round_by_round(reduce, value)


def _hold_up_the_round(total: Any) -> None:
    """Has the round of a function's loop wait for `total` before the next one begins.

    Rounds overlap where no tensor hinders it, and a round does not wait for collectives, which
    TensorFlow treats as free of side effects; yet one that is entered again while its devices are
    still finding each other fails ("did not find collective implementation"). For operations with
    side effects a round does wait. This is the least one that there is.
    """
    with tf.control_dependencies([total]), tf1.device(None), tf1.device("CPU:0"):
        tf.raw_ops.Timestamp()


# Two cases need the replicas of the process to come together first. Eager ones run one after the
# other, so none may wait for the next in its own operation. And a Session runs only what it is
# asked for: fetching the sum of one replica must have the operations of the others run as well.


def _sessions_could_prune() -> bool:
    graph = tf1.get_default_graph()
    return (
        not hasattr(graph, "outer_graph")  # a function runs all its collectives
        and not in_control_flow(graph)  # from in there, replicas cannot come together
        and not tf.distribute.in_cross_replica_context()
        and len(tf.distribute.get_strategy().extended.worker_devices) > 1
    )


_functions: Dict[Tuple[Any, ...], Any] = {}


def _together(value: Any, groups: Sequence[Sequence[int]]) -> Any:
    def sum_all(strategy: Any, values: Any) -> Any:
        local = strategy.experimental_local_results(values)
        count = len(strategy.extended.worker_devices)
        # A tensor that is the same object on all replicas comes as one.
        totals = _function(strategy, groups)([local[i % len(local)] for i in range(count)])
        return per_replica(values, totals) if len(local) == count > 1 else totals[0]

    return tf.distribute.get_replica_context().merge_call(sum_all, args=(value,))


def _function(strategy: Any, groups: Sequence[Sequence[int]]) -> Any:
    """Returns a function of the values of all replicas of this process, which sums them."""
    first = replicas_of_workers_before(strategy)

    def reduce_all(values: List[Any]) -> List[Any]:
        totals = [
            _reduce(value, strategy, first + local, groups) for local, value in enumerate(values)
        ]
        with tf.control_dependencies(totals):
            return [tf.identity(total) for total in totals]

    if not tf.executing_eagerly():
        return reduce_all
    key = (id(strategy), str(groups))
    if key not in _functions:
        _functions[key] = tf.function(reduce_all, autograph=False)
    return _functions[key]
