"""The shards that share a step, the call that they must have in common, and the keys of their sums.

A collective has a group key, which is the same for all sums over one set of devices, and an
instance key, one for each sum. All members must arrive at the same keys without communicating:

* The replicas of a process build the same sums in the same order, so the n-th sum of one replica in
  a graph is the n-th sum of the others. The first replica that builds it creates its key.
* With Sessions, the workers of a cluster build the same graphs, so each worker assigns keys in the
  same order. With functions, each worker may trace again at any time, so the keys depend on what is
  summed, once it is known that the workers sum the same.

TensorFlow 1.15 looks up instances in the whole process by their key alone, so no two groups and no
two graphs may share a key. TensorFlow's own keys are small numbers; the shim's keys start far above
them.
"""

import itertools
import os
import threading
import weakref
import zlib
from typing import Any, List, NamedTuple, Optional, Sequence, Union

from tf_lossscale._types import Loop, Strategy, Tensor
from tf_lossscale._versions import replicas
from tf_lossscale._versions.base import do_not_convert, tf, tf1
from tf_lossscale._versions.callers import innermost_line_outside
from tf_lossscale._versions.graphs import outermost_graph


class Shards(NamedTuple):
    """The shards that share the current step."""

    number: int
    # Lists of the shards summed together; on a TPU unchecked, as the user gave them.
    groups: Sequence[Sequence[int]]
    tpu: bool = False  # whether the TPU's own operation sums them
    strategy: Any = None  # the `Strategy` whose replicas are the shards; None without one
    replica: int = 0  # the index of this one; 0 on a TPU, where one graph is built for all shards

    @property
    def devices(self) -> Sequence[str]:
        """The devices of this process, one for each of its replicas."""
        return self.strategy.extended.worker_devices

    @property
    def device(self) -> str:
        return self.devices[self.replica % len(self.devices)]

    @property
    def group(self) -> int:
        """The number of the group of this replica."""
        return next(number for number, group in enumerate(self.groups) if self.replica in group)


def current_shards(who: str, group_assignment: Optional[Sequence[Sequence[int]]] = None) -> Shards:
    """Returns the shards of the current step; one, with a warning, if their number is not set."""
    number = replicas.tpu_shards()
    if number is None and tf.distribute.has_strategy():
        strategy = tf.distribute.get_strategy()
        number = int(strategy.num_replicas_in_sync)
        if number == 1:
            return Shards(1, groups_of(group_assignment, 1))
        if tf.distribute.in_cross_replica_context():
            raise RuntimeError(
                f"{who} was called outside the replicas of {type(strategy).__name__}, which has "
                f"{number}. Call it in the function that `strategy.run` "
                "(`strategy.experimental_run_v2` in TensorFlow 1.15) runs on each replica."
            )
        groups = groups_of(group_assignment, number)
        return Shards(number, groups, strategy=strategy, replica=replicas.replica_id())
    if number is None:
        tf1.logging.warning(
            "%s should be used within a tpu_shard_context, but got unset number_of_shards. "
            "Assuming 1.",
            who,
        )
        if not replicas.in_tpu_replication():
            return Shards(1, groups_of(group_assignment, 1))
    number = number or 1
    return Shards(number, group_assignment or [list(range(number))], tpu=True)


def groups_of(group_assignment: Optional[Sequence[Sequence[int]]], count: int) -> List[List[int]]:
    """Returns the groups of shards over which gradients are summed; one of all for None or []."""
    if not group_assignment:
        return [list(range(count))]
    if not isinstance(group_assignment, list) or not all(
        isinstance(group, list) for group in group_assignment
    ):
        raise ValueError(
            "Argument `group_assignment` must be a list of lists. Received: "
            f"group_assignment={group_assignment}"
        )
    members = [member for group in group_assignment for member in group]
    if sorted(members) != list(range(count)):
        raise ValueError(
            f"Argument `group_assignment` must be a permutation of range({count}). Each of the "
            f"{count} shards must be in one group, once. Received: "
            f"group_assignment={group_assignment}"
        )
    sizes = [len(group) for group in group_assignment]
    if len(set(sizes)) != 1:
        raise ValueError(
            "The size of each subgroup in `group_assignment` must be equal. Received: "
            f"group_assignment={group_assignment}, with groups of sizes {sizes}"
        )
    return [list(group) for group in group_assignment]


def has_several_workers(strategy: Strategy) -> bool:
    """Returns whether some replicas run in other processes."""
    return len(strategy.extended.worker_devices) < strategy.num_replicas_in_sync


def workers_are_checked(strategy: Strategy) -> bool:
    """Returns whether steps begin with a check: with several workers, outside Sessions."""
    return has_several_workers(strategy) and outermost_graph() is None


# Packages whose frames lie between the user's line and our line, and modules that call functions
# that are passed to them, because the threads of replicas begin there.
_LIBRARIES = frozenset({"keras", "tensorflow", "tensorflow_core", "tensorflow_estimator"})
_LIBRARIES |= {"contextlib", "functools", "tf_keras", "tf_lossscale", "threading"}


class Call(NamedTuple):
    """A call in the user's program."""

    what: str  # the symbol that is called, as text that is equal on all workers
    place: str  # the function that calls and its file, without the directory: workers may differ
    line: int  # 0 if no user code calls, as when a strategy runs TensorFlow's own function

    @property
    def site(self) -> str:
        return f"{self.place}, line {self.line}"


def this_call(what: str) -> Call:
    """Returns the call by the innermost line that is not in TensorFlow, Keras or this package."""
    line = innermost_line_outside(_LIBRARIES)
    if line is None:
        return Call(what, "no file", 0)
    name = os.path.basename(line.file)
    if name.startswith("__autograph_generated_file"):
        name = "code by AutoGraph"  # the file has another name in each process
    return Call(what, f"{name}, in {line.function}", line.number)


class StepIdentity(NamedTuple):
    """By what workers see that they are at the same step: it must be equal on all of them."""

    row: (
        Tensor  # float32 of shape `[3]`: the line, numbers for the rest of the call, and the shapes
    )
    text: Tensor  # string of shape `[]`: the same for the error


EXACT = 1 << 24  # float32 holds whole numbers exactly up to here
MODULUS = (1 << 29) - 3  # a prime; numbers that stand for shapes are smaller
_FACTOR = 1000003
_WEIGHTS = [pow(_FACTOR, power, MODULUS) for power in range(1, 256)]  # more than dimensions
_SHOWN = 8


@do_not_convert
def step_of(call: Call, groups: Sequence[Sequence[int]], values: Sequence[Tensor]) -> StepIdentity:
    dtypes = [value.dtype.base_dtype.name for value in values]
    number = zlib.crc32(f"{call.what} {call.place} {groups} {dtypes}".encode()) % EXACT
    numbers = [call.line, number, number_of_shapes(values) % EXACT]
    row = tf.stack([tf.cast(number, tf.float32) for number in numbers])
    shown = [f"{dtype}{value.shape}" for dtype, value in zip(dtypes, values)][:_SHOWN]
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return StepIdentity(
        row, tf.constant(f"{call.what} at {call.site}, with {', '.join(shown)}{more}")
    )


def number_of_shapes(values: Sequence[Tensor]) -> Union[int, Tensor]:
    """Returns a number, or an int64 scalar, that represents the shapes of `values`."""
    number: Any = 0
    for value in values:
        number = (number * _FACTOR + _number_of_shape(value)) % MODULUS
    return number


def _number_of_shape(value: Tensor) -> Union[int, Tensor]:
    if value.shape.is_fully_defined():
        dims = value.shape.as_list()
        terms = [(dim + 1) * weight % MODULUS for dim, weight in zip(dims, _WEIGHTS)]
        return (sum(terms) + len(dims)) % MODULUS
    shape = tf.shape(value, out_type=tf.int64)
    weights = tf.constant(_WEIGHTS, tf.int64)[: tf.size(shape)]
    terms = (shape + 1) * weights % MODULUS
    return (tf.reduce_sum(terms) + tf.size(shape, out_type=tf.int64)) % MODULUS


_BASE = 1 << 30

# The range above it has two halves; the second is for computed keys.
CHECK_KEY = _BASE + (1 << 29)
"""The key of the check between workers, equal at every step; keys that depend on shapes follow."""


def group_key(shards: Shards, members: List[int]) -> int:
    across = has_several_workers(shards.strategy)
    # Only the other workers know the names of their devices, but there is only one cluster.
    devices = "cluster" if across else ",".join(shards.devices[member] for member in members)
    return _BASE + zlib.crc32(f"{devices} {members}".encode()) % _BASE


# For each graph the number of sums that each replica has built, and the loop and keys of each sum.
_tables: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()
_numbers = itertools.count(_BASE)
_lock = threading.Lock()


def next_keys(shards: Shards, loop: Optional[Loop], count: Optional[int] = None) -> List[int]:
    """Returns the keys of the next sum that this replica builds in the current graph.

    There are `count`; by default, each group gets its own key, and the check between workers the
    last one. `loop` is the loop that contains the sum, or None; all replicas must be in the same.
    """
    count = len(shards.groups) + 1 if count is None else count
    with _lock:
        built, sums = _tables.setdefault(replicas.graph_of_all_replicas(), ({}, {}))
        number = built.get(shards.replica, 0)
        built[shards.replica] = number + 1
        first_loop, keys = sums.setdefault(number, (loop, []))
        if first_loop is not loop:
            raise NotImplementedError(
                "A sum over replicas is inside a loop that each replica runs separately, so the "
                "replicas cannot find each other: TensorFlow distinguishes the rounds of different "
                "loops. Put the loop around `strategy.run`, or unroll it in Python; in a Session's "
                "graph, it works after tf.compat.v1.disable_control_flow_v2()."
            )
        keys.extend(itertools.islice(_numbers, max(0, count - len(keys))))
        return keys[:count]
