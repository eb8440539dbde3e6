"""The keys by which the devices of one collective find each other.

A collective has a group key, the same for all sums over one set of devices, and an instance key,
one for each sum. All members must come to the same keys without speaking to each other:

* The replicas of a process build the same sums in the same order, so the n-th sum of one replica
  in a graph is the n-th of the others. The table gives it its key when the first of them asks.
* The workers of a cluster with Sessions build the same graphs, so their tables hand out keys in the
  same order. Those with functions may trace again, each for itself: their keys depend on what is
  summed (see `meeting`).

TensorFlow 1.15 looks instances up by their key alone, in the whole process: no two groups and no
two graphs may share one. TensorFlow's own keys are small numbers; ours begin far above.
"""

import itertools
import threading
import weakref
import zlib
from typing import Any, Dict, List, Tuple

from tf_lossscale._versions.replicas import graph_of_all_replicas

__all__ = ["MEETING_KEY", "check_loop", "group_key", "instance_keys", "sum_key"]

BASE = 1 << 30
# Of the two halves above it, the second is for keys that are computed.
_COMPUTED = BASE + (1 << 29)

# The key of the meeting of the workers, the same at every step.
MEETING_KEY = _COMPUTED

_numbers = itertools.count(BASE)
_lock = threading.Lock()


class _Table:
    """The sums of one graph: how many each replica has built, and the keys given to them."""

    def __init__(self) -> None:
        self.built: Dict[int, int] = {}
        self.keys: Dict[Tuple[int, int], int] = {}
        self.loops: Dict[int, Any] = {}


_tables: "weakref.WeakKeyDictionary[Any, _Table]" = weakref.WeakKeyDictionary()


def group_key(strategy: Any, members: List[int]) -> int:
    """Returns the key of the devices of `members` (numbers of replicas) under `strategy`."""
    local = strategy.extended.worker_devices
    across = len(local) < strategy.num_replicas_in_sync
    # The other workers' devices have names that only they know; there is one cluster, though.
    devices = "cluster" if across else ",".join(local[member] for member in members)
    return BASE + zlib.crc32(f"{devices} {members}".encode()) % BASE


def sum_key(number: Any) -> Any:
    """Returns the key of what `number` stands for.

    Args:
      number: an integer, or integer tensor, of at least 0 and less than `2**29 - 1`.
    """
    return MEETING_KEY + 1 + number


def check_loop(replica: int, loop: Any) -> None:
    """Counts one more sum of `replica`, and tests that it stands where those of the others do.

    Args:
      replica: number of the replica.
      loop: the loop that the sum stands in, or None.

    Raises:
      NotImplementedError: the loop is not the one that the other replicas' sum stands in.
    """
    with _lock:
        _count(_tables.setdefault(graph_of_all_replicas(), _Table()), replica, loop)


def instance_keys(replica: int, groups: int, loop: Any) -> List[int]:
    """Returns the keys of the next sum that `replica` builds in the current graph.

    Args:
      replica: number of the replica.
      groups: how many groups there are; each gets a key of its own, and the meeting the last one.
      loop: the loop that the sum stands in, or None.

    Raises:
      NotImplementedError: the loop is not the one that the other replicas' sum stands in.
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
            "A sum over replicas stands in a loop that each replica has for itself, so the "
            "replicas cannot find each other: TensorFlow tells the rounds of different loops "
            "apart. Put the loop around `strategy.run`, or write it out in Python; in a "
            "Session's graph, tf.compat.v1.disable_control_flow_v2() lets it stand."
        )
    return number
