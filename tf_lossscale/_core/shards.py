"""The shards that share a step, their groups, and the keys of their collectives.

A collective has a group key, which is the same for all sums over one set of devices, and an
instance key, one for each sum. All members must arrive at the same keys without communicating:

* The replicas of a process build the same sums in the same order, so the n-th sum of one replica in
  a graph is the n-th sum of the others. The first replica that builds it creates its key.
* With Sessions, the workers of a cluster build the same graphs, so each worker assigns keys in the
  same order. With functions, each worker may trace again at any time, so the keys depend on what is
  summed (see `workers`).

TensorFlow 1.15 looks up instances in the whole process by their key alone, so no two groups and no
two graphs may share a key. TensorFlow's own keys are small numbers; ours start far above them.
"""

import itertools
import threading
import weakref
import zlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.replicas import (
    graph_of_all_replicas,
    in_tpu_replication,
    replica_id,
    tpu_shards,
)

__all__ = [
    "ALONE",
    "BASE",
    "CHECK_KEY",
    "Groups",
    "Shards",
    "all_shards",
    "check_loop",
    "current_shards",
    "group_key",
    "group_of",
    "groups_of",
    "instance_keys",
    "sum_key",
]


class Shards(NamedTuple):
    """The shards that share the current step.

    Attributes:
      number: number of shards.
      tpu: whether they are TPU shards, which the TPU's own operation sums.
      strategy: the strategy whose replicas are the shards, or None.
      replica: the index of this replica; 0 on a TPU, where one graph is built for all shards.
    """

    number: int
    tpu: bool = False
    strategy: Any = None
    replica: int = 0


ALONE = Shards(number=1)


def current_shards(who: str) -> Shards:
    """Returns the shards of the current step; one, with a warning, if their number is not set.

    Raises:
      RuntimeError: the call is made in the cross-replica context of a strategy with several
        replicas, where values do not belong to one shard.
    """
    count = tpu_shards()
    if count is not None:
        return Shards(count, tpu=True)
    if tf.distribute.has_strategy():
        strategy = tf.distribute.get_strategy()
        replicas = int(strategy.num_replicas_in_sync)
        if replicas == 1:
            return ALONE
        if tf.distribute.in_cross_replica_context():
            raise RuntimeError(
                f"{who} was called outside the replicas of {type(strategy).__name__}, which has "
                f"{replicas}. Call it in the function that `strategy.run` "
                "(`strategy.experimental_run_v2` in TensorFlow 1.15) runs on each replica."
            )
        return Shards(number=replicas, strategy=strategy, replica=replica_id())
    tf1.logging.warning(
        "%s should be used within a tpu_shard_context, but got unset number_of_shards. Assuming 1.",
        who,
    )
    return Shards(1, tpu=in_tpu_replication())


Groups = List[List[int]]


def all_shards(count: int) -> Groups:
    return [list(range(count))]


def groups_of(group_assignment: Optional[Any], count: int) -> Groups:
    """Returns the groups of shards over which gradients are summed; one of all for None or [].

    Raises:
      ValueError: the assignment is not a list of lists, does not contain each shard exactly once,
        or has groups of different sizes.
    """
    if not group_assignment:
        return all_shards(count)
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


def group_of(index: int, groups: Sequence[Sequence[int]]) -> int:
    return next(number for number, group in enumerate(groups) if index in group)


BASE = 1 << 30

# The range above it has two halves; the second is for computed keys.
_COMPUTED = BASE + (1 << 29)

# The key of the check between workers, equal at every step.
CHECK_KEY = _COMPUTED
_numbers = itertools.count(BASE)
_lock = threading.Lock()


class _Table:
    """The sums of one graph: how many each replica has built, and their keys."""

    def __init__(self) -> None:
        self.built: Dict[int, int] = {}
        self.keys: Dict[Tuple[int, int], int] = {}
        self.loops: Dict[int, Any] = {}


_tables: "weakref.WeakKeyDictionary[Any, _Table]" = weakref.WeakKeyDictionary()


def group_key(strategy: Any, members: List[int]) -> int:
    """Returns the group key of the replicas with the numbers `members` under `strategy`."""
    local = strategy.extended.worker_devices
    across = len(local) < strategy.num_replicas_in_sync
    # Only the other workers know the names of their devices, but there is only one cluster.
    devices = "cluster" if across else ",".join(local[member] for member in members)
    return BASE + zlib.crc32(f"{devices} {members}".encode()) % BASE


def sum_key(number: Any) -> Any:
    """Returns the instance key of a sum, for a number that depends on what is summed.

    It is at least 0 and less than `2**29 - 1`, an integer or an integer tensor.
    """
    return CHECK_KEY + 1 + number


def check_loop(replica: int, loop: Any) -> None:
    """Counts a sum of `replica`, and checks that it is in the same loop as the others' sums."""
    with _lock:
        _count(_tables.setdefault(graph_of_all_replicas(), _Table()), replica, loop)


def instance_keys(replica: int, groups: int, loop: Any) -> List[int]:
    """Returns the keys of the next sum that `replica` builds in the current graph.

    Each of the `groups` gets its own key, and the check between workers the last one. `loop` is the
    loop that contains the sum, or None.
    """
    with _lock:
        table = _tables.setdefault(graph_of_all_replicas(), _Table())
        number = _count(table, replica, loop)
        for index in range(groups + 1):
            if (number, index) not in table.keys:
                table.keys[number, index] = next(_numbers)
        return [table.keys[number, index] for index in range(groups + 1)]


def _count(table: _Table, replica: int, loop: Any) -> int:
    number = table.built.get(replica, 0)
    table.built[replica] = number + 1
    if table.loops.setdefault(number, loop) is not loop:
        raise NotImplementedError(
            "A sum over replicas is inside a loop that each replica runs separately, so the "
            "replicas cannot find each other: TensorFlow distinguishes the rounds of different "
            "loops. Put the loop around `strategy.run`, or unroll it in Python; in a Session's "
            "graph, it works after tf.compat.v1.disable_control_flow_v2()."
        )
    return number
