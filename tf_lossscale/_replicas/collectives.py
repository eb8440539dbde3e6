"""Sums over all replicas of a strategy, or over subgroups, with TensorFlow's own collectives.

Each replica builds one `CollectiveReduce`, and the devices find each other by its keys, on one
machine or over the network. The operation exists in TensorFlow 1.15 to 2.21, works in Sessions and
functions, and supports subgroups, which `tf.distribute` does not in older versions.

Workers could not assign keys while they trace: the keys would differ as soon as one of them traces
once more, and a key does not depend on what is summed, so a vector could be added to a scalar.
Therefore in functions, a step begins with one check of the workers (in a Session, each sum has its
own): a collective that always has the same key and shape. In it, every replica contributes a row of
numbers: which line of the program calls, what for, and with which shapes. If the rows differ, every
replica sees this, and all raise the same error. If they are equal, the sums get keys that depend
only on their shapes. The steps of a worker run one after the other, so only one step uses these
keys at any time.
"""

import time
import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from tf_lossscale._replicas.shards import (
    CHECK_KEY,
    EXACT,
    MODULUS,
    Call,
    Shards,
    StepIdentity,
    group_key,
    has_several_workers,
    next_keys,
    number_of_shapes,
    step_of,
    this_call,
    workers_are_checked,
)
from tf_lossscale._types import Function, Operation, Strategy, Tensor
from tf_lossscale._versions import graphs, replicas
from tf_lossscale._versions.base import do_not_convert, has, tf, tf1
from tf_lossscale._versions.releases import Since

# Dtypes for which some version from 1.15 to 2.21 has no kernel, and the dtypes used instead.
_CARRIERS = {tf.float16: tf.float32, tf.bfloat16: tf.float32, tf.uint32: tf.int64}


@do_not_convert
def collective_sums(
    values: Sequence[Tensor], shards: Shards, call: Call, parts: Optional[Sequence[Tensor]] = None
) -> List[Tensor]:
    """Returns the sums of `values` over the group of this replica, in their dtypes.

    `parts` are the tensors that were packed into `values`, if they were. For no values, the result
    is one tensor that is computed when the workers have checked that their steps are equal.
    """
    if len(shards.groups[shards.group]) == 1:
        return [tf.identity(value) for value in values]
    step = None
    if workers_are_checked(shards.strategy):
        step = step_of(call, shards.groups, values if parts is None else parts)
    elif parts is not None:  # in a Session, each sum is checked alone
        call = call._replace(what=call.what + " of " + ", ".join(str(x.shape) for x in parts))
    carried = [tf.cast(x, _CARRIERS.get(x.dtype.base_dtype, x.dtype)) for x in values]
    # In two cases the replicas of a process must be merged first. In eager mode they run one after
    # the other, so none may wait for the next one inside its own operation. And a Session runs only
    # what is fetched: fetching the sum of one replica must run the operations of the others, too.
    if tf.executing_eagerly() or _sessions_could_prune():
        totals = _together(carried, shards, step, call)
    else:
        if replicas.local_replica_started_eagerly() and len(shards.devices) > 1:
            raise NotImplementedError(
                "A sum over replicas is inside a tf.function that the replicas run one after the "
                "other, so they would wait for each other forever. Put a tf.function around "
                "`strategy.run`."
            )
        totals = _reduce_all(carried, shards, step, call)
    return [tf.cast(total, value.dtype) for total, value in zip(totals, values)] or totals


@do_not_convert
def sum_over_workers(value: Tensor, strategy: Strategy, what: str) -> Tensor:
    """Returns the sum of `value`, a float32 tensor of each process, in a cross-replica context.

    The workers are checked (`workers_are_checked`): `what` must be the same text on all of them.
    """
    number = strategy.num_replicas_in_sync
    shards = Shards(number, [list(range(number))], strategy=strategy)
    call = this_call(what)
    step = list(step_of(call, shards.groups, [value]))
    count = len(shards.devices)
    return _function(shards, call)([[value]] * count, [step] * count)[0][0]


def _sessions_could_prune() -> bool:
    graph = tf1.get_default_graph()
    return (
        not hasattr(graph, "outer_graph")  # a function runs all its collectives
        and not graphs.in_control_flow(graph)  # inside it, replicas cannot be merged
        and not tf.distribute.in_cross_replica_context()
        and len(tf.distribute.get_strategy().extended.worker_devices) > 1
    )


def _together(
    values: Sequence[Tensor], shards: Shards, step: Optional[StepIdentity], call: Call
) -> List[Tensor]:
    """Sums `values` for all replicas of this process at once, in a cross-replica context."""

    def sum_all(strategy: Strategy, values: List[Tensor], step: List[Tensor]) -> List[Tensor]:
        """Sums values over the shards, outside the replicas; each replica gets its own sums."""
        count = len(shards.devices)

        def by_replica(parts: List[Tensor]) -> List[List[Tensor]]:
            # A tensor that is the same object on all replicas is passed only once.
            local = [strategy.experimental_local_results(part) for part in parts]
            return [[copies[i % len(copies)] for copies in local] for i in range(count)]

        totals = _function(shards, call)(by_replica(values), by_replica(step))
        return [
            replicas.per_replica(value, [sums[number] for sums in totals])
            if len(strategy.experimental_local_results(value)) == count > 1
            else totals[0][number]
            for number, value in enumerate(values)
        ] or totals[0]

    arguments = (list(values), [] if step is None else list(step))
    return list(tf.distribute.get_replica_context().merge_call(sum_all, args=arguments))


def _after_all(totals: List[List[Tensor]]) -> List[List[Tensor]]:
    """Returns the same tensors, each computed only when all of them are."""
    with tf.control_dependencies([total for sums in totals for total in sums]):
        return [[tf.identity(total) for total in sums] for sums in totals]


_functions: Dict[Tuple[Any, ...], Function] = {}


def _function(shards: Shards, call: Call) -> Function:
    """Returns a function that takes the values and steps of all replicas of this process."""
    first = replicas.replicas_of_workers_before(shards.strategy)

    def reduce_all(values: List[List[Tensor]], steps: List[List[Tensor]]) -> List[List[Tensor]]:
        totals = []
        for replica, (own, step) in enumerate(zip(values, steps), first):
            of_replica = shards._replace(replica=replica)
            totals.append(_reduce_all(own, of_replica, StepIdentity(*step) if step else None, call))
        return _after_all(totals)

    if not tf.executing_eagerly():
        return reduce_all
    key = (id(shards.strategy), str(shards.groups))
    if key not in _functions:
        _functions[key] = tf.function(reduce_all, autograph=False)
    return _functions[key]


def _reduce_all(
    values: List[Tensor], shards: Shards, step: Optional[StepIdentity], call: Call
) -> List[Tensor]:
    """Builds the check of one replica, if there is a `step` or no value, and then its sums."""
    if step is None and values:
        return [_reduce(value, shards, call) for value in values]
    # On the member's own device, even if the surrounding code sets another: two members on one
    # device would wait for each other.
    with tf1.device(None), tf1.device(shards.device):
        if step is None:
            key = next_keys(shards, graphs.current_loop())[-1]
            return [check_between_workers(step_of(call, shards.groups, []), [], shards, key)]
        if len(shards.devices) > 1:
            next_keys(shards, graphs.current_loop(), 0)  # only to check that the loop is the same
        with tf.control_dependencies([replicas.advance(shards.device)]):
            results = [check_between_workers(step, values, shards, CHECK_KEY)]
        if values:
            with tf.control_dependencies(results):
                results = [_sum(x, shards, _sum_key(x, i, shards)) for i, x in enumerate(values)]
        with tf.control_dependencies(results), tf.control_dependencies(
            [replicas.advance(shards.device)]
        ):
            return [tf.identity(result) for result in results]


def _reduce(value: Tensor, shards: Shards, call: Call) -> Tensor:
    """Returns the sum of one tensor; before it, several workers check that they are at one call.

    The next round of a loop waits for the sum of this one.
    """
    loop = graphs.current_loop()
    # In a loop of control flow v1, in a Session's graph.
    apart = loop is not None and not hasattr(tf1.get_default_graph(), "outer_graph")
    keys = next_keys(shards, None if apart else loop)

    def reduce(x: Tensor) -> Tensor:
        with tf1.device(None), tf1.device(shards.device):
            checked = []
            if has_several_workers(shards.strategy):
                own = step_of(call, shards.groups, [x])
                checked = [check_between_workers(own, [x], shards, keys[-1])]
            with tf.control_dependencies(checked):
                return _sum(x, shards, keys[shards.group])

    if apart:
        with tf1.device(None), tf1.device(shards.device):
            return _tied(graphs.call_round_by_round(reduce, value), shards, keys)
    if loop is not None and not graphs.rounds_can_wait():
        raise NotImplementedError(
            "A sum over replicas is in a branch, a loop or a function that is itself in a loop, in "
            "a Session's graph. The rounds of that loop would overlap, and the sums fail. Put the "
            "sum into the body of the loop itself; in branches and loops, it also works if "
            "tf.compat.v1.disable_control_flow_v2() is called before the graph is built."
        )
    total = reduce(value)
    if loop is not None:
        # A collective that starts again while its devices are still finding each other fails ("did
        # not find collective implementation"), and TensorFlow considers it free of side effects.
        graphs.let_next_round_wait(total, replicas.host_of(shards.device))
    return _tied(total, shards, keys)


def _tied(total: Tensor, shards: Shards, keys: List[int]) -> Tensor:
    """Returns the sum of a replica, tied to the other replicas' sums (`graphs.tie`).

    Sums that are merged (`_together`) are made in a cross-replica context, all in one place.
    """
    if len(shards.devices) == 1 or tf.distribute.in_cross_replica_context():
        return total
    with tf1.device(None), tf1.device(shards.device):
        return graphs.tie(total, keys[-1])


def _sum(value: Tensor, shards: Shards, key: Tensor) -> Tensor:
    # In its own scope: TensorFlow may merge the collectives of one scope, which overwrites their
    # inputs up to 2.4.
    with tf1.name_scope(None, "replica_sum"):
        members = list(shards.groups[shards.group])
        return replicas.collective_reduce(value, len(members), group_key(shards, members), key)


# Seconds for which a replica in a Session waits before it fails. The others see the mismatch within
# milliseconds, or later on busy machines. Several checks can run at the same time there. If a
# replica failed immediately, that would abort its other checks, the workers in those would fail
# too, and a worker that still had to receive something from one of them would wait forever.
_GRACE = 10.0

_MESSAGE = (
    "The workers are at different steps of CrossShardOptimizer or cross_replica_sum, so nothing "
    "was added up. This worker is at: "
)

_ADVICE = (
    "One row for each replica follows: [line, number of the call, number of the shapes, number of "
    "the shapes known while tracing]. Rows must be equal. Where lines or calls differ, the workers "
    "call in another order; where shapes differ, they pass tensors of other shapes; where only the "
    "last number does, a tf.function without an input_signature was traced for other shapes. Rows: "
)


def check_between_workers(
    step: StepIdentity, values: Sequence[Tensor], shards: Shards, key: int
) -> Operation:
    """Returns a bool scalar, True, that is computed when all replicas are at the same step."""
    traced = 0  # a number for the shapes, if the key of a sum has to be known while tracing
    if not has(Since.COLLECTIVES_HAVE_KEYS_AT_RUN_TIME):
        traced = zlib.crc32(str([str(value.shape) for value in values]).encode()) % EXACT
    with tf1.name_scope(None, "check_between_workers"):
        row = tf.concat([step.row, [float(traced)]], axis=0)
        own = tf.expand_dims(tf.one_hot(shards.replica, shards.number), 1) * tf.expand_dims(row, 0)
        everybody = group_key(shards, list(range(shards.number)))
        rows = replicas.collective_reduce(own, shards.number, everybody, key)
        same = tf.reduce_all(tf.equal(rows, rows[:1]))
        host = replicas.host_of(shards.device)
        with tf1.device(host):
            waited = [] if graphs.outermost_graph() is None else [_wait_unless(same, host)]
            with tf.control_dependencies(waited):
                data = [_MESSAGE, step.text, _ADVICE, rows]
                check = tf.raw_ops.Assert(condition=same, data=data, summarize=4 * shards.number)
        with tf.control_dependencies([check]):
            return tf.identity(same)


def _wait_unless(same: Tensor, host: str) -> Operation:
    """Returns a tensor that `host` computes immediately if `same` is true, else after `_GRACE`."""

    def wait() -> Tensor:
        time.sleep(_GRACE)
        return np.bool_(False)

    def wait_on_host() -> Tensor:
        # A function, as some versions place such an operation, in branches, on "localhost".
        with tf1.device(lambda _: host):
            return tf.numpy_function(wait, [], tf.bool)

    return tf.cond(same, lambda: tf.constant(True), wait_on_host)


def _sum_key(value: Tensor, position: int, shards: Shards) -> Tensor:
    """Returns an instance key that depends on what is summed: a number or an int32 tensor."""
    members = list(shards.groups[shards.group])
    what = zlib.crc32(f"{value.dtype.base_dtype.name} {position} {members}".encode())
    if has(Since.COLLECTIVES_HAVE_KEYS_AT_RUN_TIME):
        number = (what + number_of_shapes([value])) % MODULUS
        return tf.cast(CHECK_KEY + 1 + number, tf.int32)
    return CHECK_KEY + 1 + zlib.crc32(f"{what} {value.shape}".encode()) % MODULUS
