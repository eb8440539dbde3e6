"""Sums over all replicas of a strategy, or over subgroups, with TensorFlow's own collectives.

Each replica builds one `CollectiveReduce`, and the devices find each other by its keys, on one
machine or over the network. The operation exists in TensorFlow 1.15 to 2.21, works in Sessions and
functions, and supports subgroups, which `tf.distribute` does not in older versions.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from tf_lossscale._core.shards import (
    Shards,
    all_shards,
    check_loop,
    group_key,
    group_of,
    instance_keys,
)
from tf_lossscale._core.workers import (
    Call,
    Step,
    call_site,
    check_between_workers,
    has_several_workers,
    step_of,
    sum_together,
)
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.graphs import (
    call_round_by_round,
    current_loop,
    in_control_flow,
    in_loop_of_session,
)
from tf_lossscale._versions.replicas import (
    collective_reduce,
    local_replica_started_eagerly,
    per_replica,
    replicas_of_workers_before,
)

__all__ = ["collective_sums", "sum_over_workers"]

# Dtypes for which some version from 1.15 to 2.21 has no kernel, and the dtypes used instead.
_CARRIERS = {tf.float16: tf.float32, tf.bfloat16: tf.float32, tf.uint32: tf.int64}


@do_not_convert
def collective_sums(
    values: Sequence[Any],
    shards: Shards,
    groups: Sequence[Sequence[int]],
    step: Optional[Step],
    call: Call,
) -> List[Any]:
    """Returns the sums of `values` over the group of this replica, in their dtypes.

    `step` is what the workers must have in common, if it is checked before the sums; in a Session,
    `call` is checked at each sum instead. For no values, the result is one tensor that is computed
    after the check.
    """
    if len(groups[group_of(shards.replica, groups)]) == 1:
        return [tf.identity(value) for value in values]
    carried = [tf.cast(value, _carrier(value)) for value in values]
    if tf.executing_eagerly() or _sessions_could_prune():
        totals = _together(carried, groups, step, call)
    else:
        if local_replica_started_eagerly() and len(shards.strategy.extended.worker_devices) > 1:
            raise NotImplementedError(
                "A sum over replicas is inside a tf.function that the replicas run one after the "
                "other, so they would wait for each other forever. Put a tf.function around "
                "`strategy.run`."
            )
        totals = _reduce_all(carried, shards.strategy, shards.replica, groups, step, call)
    return [tf.cast(total, value.dtype) for total, value in zip(totals, values)] or totals


@do_not_convert
def sum_over_workers(value: Any, strategy: Any, what: str) -> Any:
    """Returns the sum of `value`, a float32 tensor of each process, in a cross-replica context.

    The workers are checked (`workers_are_checked`): `what` must be the same text on all of them.
    """
    groups = all_shards(strategy.num_replicas_in_sync)
    call = Call(what, call_site())
    step = list(step_of(call, groups, [value]))
    count = len(strategy.extended.worker_devices)
    return _function(strategy, groups, call)([[value]] * count, [step] * count)[0][0]


def _carrier(value: Any) -> Any:
    return _CARRIERS.get(value.dtype.base_dtype, value.dtype.base_dtype)


def _reduce_all(
    values: Sequence[Any],
    strategy: Any,
    index: int,
    groups: Sequence[Sequence[int]],
    step: Optional[Step],
    call: Call,
) -> List[Any]:
    if step is None:
        sums = [_reduce(value, strategy, index, groups, call) for value in values]
        return sums or [_check_in_session(strategy, index, groups, call)]
    if len(strategy.extended.worker_devices) > 1:
        check_loop(index, current_loop())
    return sum_together(step, values, strategy, index, groups)


def _check_in_session(
    strategy: Any, index: int, groups: Sequence[Sequence[int]], call: Call
) -> Any:
    devices = strategy.extended.worker_devices
    loop = current_loop() if len(devices) > 1 else None
    key = instance_keys(index, len(groups), loop)[-1]
    place = devices[index % len(devices)]
    with tf1.device(None), tf1.device(place):
        return check_between_workers(step_of(call, groups, []), [], strategy, index, place, key)


def _reduce(
    value: Any, strategy: Any, index: int, groups: Sequence[Sequence[int]], call: Call
) -> Any:
    number = group_of(index, groups)
    members = list(groups[number])
    devices = strategy.extended.worker_devices
    apart = len(devices) > 1 and in_loop_of_session()
    loop = current_loop() if len(devices) > 1 and not apart else None
    keys = instance_keys(index, len(groups), loop)
    place = devices[index % len(devices)]

    def reduce(x: Any) -> Any:
        with tf1.device(None), tf1.device(place):
            checked = []
            if has_several_workers(strategy):
                own = step_of(call, groups, [x])
                checked = [check_between_workers(own, [x], strategy, index, place, keys[-1])]
            with tf.control_dependencies(checked):
                return add_up(x)

    def add_up(x: Any) -> Any:
        # In its own scope: TensorFlow may merge the collectives of one scope, which up to 2.4
        # overwrites their inputs. On the member's own device, even if the surrounding code sets
        # another: two members on one device would wait for each other.
        with tf1.name_scope(None, "replica_sum"), tf1.device(None), tf1.device(place):
            return collective_reduce(x, len(members), group_key(strategy, members), keys[number])

    if not apart:
        total = reduce(value)
        if loop is not None:
            _hold_up_the_round(total)
        return total
    with tf1.device(None), tf1.device(place):
        return call_round_by_round(reduce, value)


def _hold_up_the_round(total: Any) -> None:
    """Makes the next round of a function's loop wait for `total`.

    Rounds overlap unless a tensor prevents it, and a round does not wait for collectives, which
    TensorFlow considers free of side effects. But a collective that starts again while its devices
    are still finding each other fails ("did not find collective implementation"). A round does wait
    for operations with side effects, of which this one costs least.
    """
    with tf.control_dependencies([total]), tf1.device(None), tf1.device("CPU:0"):
        tf.raw_ops.Timestamp()


# In two cases the replicas of a process must be merged first. In eager mode they run one after the
# other, so none may wait for the next one inside its own operation. And a Session runs only what is
# fetched: fetching the sum of one replica must run the operations of the other replicas as well.


def _sessions_could_prune() -> bool:
    graph = tf1.get_default_graph()
    return (
        not hasattr(graph, "outer_graph")  # a function runs all its collectives
        and not in_control_flow(graph)  # inside it, replicas cannot be merged
        and not tf.distribute.in_cross_replica_context()
        and len(tf.distribute.get_strategy().extended.worker_devices) > 1
    )


_functions: Dict[Tuple[Any, ...], Any] = {}


def _together(
    values: Sequence[Any], groups: Sequence[Sequence[int]], step: Optional[Step], call: Call
) -> List[Any]:
    def sum_all(strategy: Any, values: List[Any], step: List[Any]) -> List[Any]:
        count = len(strategy.extended.worker_devices)
        local = [strategy.experimental_local_results(value) for value in values]
        # A tensor that is the same object on all replicas is passed only once.
        each_values = [[each[i % len(each)] for each in local] for i in range(count)]
        rows = [strategy.experimental_local_results(part) for part in step]
        each_step = [[each[i % len(each)] for each in rows] for i in range(count)]
        totals = _function(strategy, groups, call)(each_values, each_step)
        return [
            per_replica(values[number], [each[number] for each in totals])
            if number < len(values) and len(local[number]) == count > 1
            else totals[0][number]
            for number in range(len(totals[0]))
        ]

    arguments = (list(values), [] if step is None else list(step))
    return list(tf.distribute.get_replica_context().merge_call(sum_all, args=arguments))


def _function(strategy: Any, groups: Sequence[Sequence[int]], call: Call) -> Any:
    """Returns a function that takes the values and steps of all replicas of this process."""
    first = replicas_of_workers_before(strategy)

    def reduce_all(values: List[List[Any]], steps: List[List[Any]]) -> List[List[Any]]:
        totals = [
            _reduce_all(own, strategy, first + local, groups, Step(*step) if step else None, call)
            for local, (own, step) in enumerate(zip(values, steps))
        ]
        with tf.control_dependencies([total for each in totals for total in each]):
            return [[tf.identity(total) for total in each] for each in totals]

    if not tf.executing_eagerly():
        return reduce_all
    key = (id(strategy), str(groups))
    if key not in _functions:
        _functions[key] = tf.function(reduce_all, autograph=False)
    return _functions[key]
