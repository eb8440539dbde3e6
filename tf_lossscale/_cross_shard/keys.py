"""The keys by which the devices of one collective find each other.

A collective has a group key, which is the same for all sums over one set of devices, and an
instance key, one for each sum. All members must arrive at the same keys without communicating:

* The replicas of a process build the same sums in the same order, so the n-th sum of one replica in
  a graph is the n-th sum of the others. The first replica that builds it creates its key.
* With Sessions, the workers of a cluster build the same graphs, so each worker assigns keys in the
  same order. With functions, each worker may trace again at any time, so the keys depend on what is
  summed (see `meeting`).

TensorFlow 1.15 looks up instances in the whole process by their key alone, so no two groups and no
two graphs may share a key. TensorFlow's own keys are small numbers; ours start far above them.
"""

import itertools
import threading
import weakref
import zlib
from typing import Any, Dict, List, Tuple

from tf_lossscale._versions.replicas import graph_of_all_replicas

__all__ = ["MEETING_KEY", "check_loop", "group_key", "instance_keys", "sum_key"]

BASE = 1 << 30
# The range above it has two halves; the second is for computed keys.
_COMPUTED = BASE + (1 << 29)

# The key of the meeting of the workers, equal at every step.
MEETING_KEY = _COMPUTED

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
    """Returns the instance key for a number that stands for what is summed.

    Args:
      number: an integer or integer tensor, at least 0 and less than `2**29 - 1`.
    """
    return MEETING_KEY + 1 + number


def check_loop(replica: int, loop: Any) -> None:
    """Counts a sum of `replica`, and checks that it is in the same loop as the others' sums.

    Args:
      replica: number of the replica.
      loop: the loop that contains the sum, or None.

    Raises:
      NotImplementedError: the other replicas' sum is in a different loop.
    """
    with _lock:
        _count(_tables.setdefault(graph_of_all_replicas(), _Table()), replica, loop)


def instance_keys(replica: int, groups: int, loop: Any) -> List[int]:
    """Returns the keys of the next sum that `replica` builds in the current graph.

    Args:
      replica: number of the replica.
      groups: number of groups; each gets its own key, and the meeting gets the last one.
      loop: the loop that contains the sum, or None.

    Raises:
      NotImplementedError: the other replicas' sum is in a different loop.
    """
    with _lock:
        table = _tables.setdefault(graph_of_all_replicas(), _Table())
        number = _count(table, replica, loop)
        for each in range(groups + 1):
            if (number, each) not in table.keys:
                table.keys[number, each] = next(_numbers)
        return [table.keys[number, each] for each in range(groups + 1)]


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
