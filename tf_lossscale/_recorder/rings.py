"""The steps that XLA compiles, which cannot call Python: they are kept on the device for a while.

A compiled step writes its numbers into a ring of variables. The host reads it after some calls of
functions, and when the recording ends. Steps that were overwritten before become a gap.
"""

import atexit
import threading
from typing import Any, Callable, List

from tf_lossscale._recorder.measuring import COLUMNS, Row, unpacked
from tf_lossscale._versions.base import tf
from tf_lossscale._versions.watching import RawVariable, after_each_call

__all__ = ["Ring", "Rings"]

_SIZE = 1024
_CALLS = 200
"""The most calls of functions between two readings."""


class Ring:
    """The last steps of one optimizer.

    Args:
      on_step: called in order for each step, with its numbers and whether it was applied.
      on_gap: called with a number of steps that were overwritten.
    """

    def __init__(self, on_step: Callable[[Row, bool], None], on_gap: Callable[[int], None]) -> None:
        self._on_step = on_step
        self._on_gap = on_gap
        self._rows = RawVariable([_SIZE, COLUMNS], tf.float64)
        self._applied = RawVariable([_SIZE])
        self._count = RawVariable([])
        self._read = 0
        self._lock = threading.RLock()

    def begin(self, values: Any) -> Any:
        """Writes the numbers of a step, in the function that is being built; returns its number."""
        number = self._count.read()
        with tf.control_dependencies([number]):
            added = self._count.assign_add(1)
        with tf.control_dependencies([added, self._rows.update(number % _SIZE, values)]):
            return tf.identity(number)

    def mark_applied(self, number: Any) -> Any:
        """Writes that a step is applied; returns the operation."""
        return self._applied.update(number % _SIZE, number + 1)

    def discard(self) -> None:
        """Leaves out the steps that were made until now."""
        with self._lock:
            self._read = int(self._count.numpy())

    def flush(self) -> int:
        """Passes on the steps since the last call; returns how many there were."""
        with self._lock:
            count = int(self._count.numpy())
            new = count - self._read
            if not new:
                return 0
            rows, applied = self._rows.numpy(), self._applied.numpy()
            if new > _SIZE:
                self._on_gap(new - _SIZE)
            for number in range(max(self._read, count - _SIZE), count):
                slot = number % _SIZE
                self._on_step(unpacked(rows[slot]), bool(applied[slot] == number + 1))
            self._read = count
            return new


class Rings:
    """All rings of a recording, which are read often enough if calls make few steps each."""

    def __init__(self) -> None:
        self._rings: List[Ring] = []
        self._calls = 0
        self._due = 1
        # From the beginning: a function that makes steps in its first call is running already.
        self._undo = after_each_call(self._after_call)

    def add(self, ring: Ring) -> None:
        """Reads a ring from now on."""
        if not self._rings:
            # Runs before the exit handlers of TensorFlow, which was imported before.
            atexit.register(self._flush)
        self._rings.append(ring)
        self._due = 1

    def _after_call(self) -> None:
        if not self._rings:
            return
        self._calls += 1
        if self._calls < self._due:
            return
        steps = self._flush()
        if steps:
            # Twice as often as the ring lasts at this pace.
            self._due = max(1, min(_CALLS, _SIZE * self._calls // (2 * steps)))
        self._calls = 0

    def _flush(self) -> int:
        return max([each.flush() for each in list(self._rings)], default=0)

    def close(self) -> None:
        """Stops reading; what is in the rings is passed on by their own `flush`."""
        self._undo()
        atexit.unregister(self._flush)
