"""Keeps the steps of graphs and functions on the device, and reads them from time to time.

A step writes its numbers into a ring of variables, which XLA can compile, too. The host reads it
after some calls of functions or runs of a Session, at least every second while they go on, before
a Session is closed, and when the recording ends. Steps that were overwritten before become a gap.
"""

import atexit
import time
import weakref
from typing import Any, Callable, List, MutableMapping

from tf_lossscale._core.steps import initialized
from tf_lossscale._recorder.measuring import COLUMNS, Row, unpacked
from tf_lossscale._records.writing import RecordFile
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.watching import RawVariable, after_each_call, before_sessions

_SIZE = 1024
_CALLS, _SECONDS = 200, 1.0  # the most calls, and the longest time, between two readings
_IDLE_CALLS = 8  # the most while calls make no steps: a later one may make many
_LATE = 16  # how many steps may still be running in other threads while the ring is read
_RINGS = "_tf_lossscale_rings"  # the attribute of a graph with its rings, as long as it exists


class Ring:
    """The last steps of one optimizer, in eager mode or in the graph of a Session.

    Its rows hold `measuring.COLUMNS`, the number of the step, and whether it was applied: 1 or 0,
    or -1 for a step that `mark_applied` is called for. `on_step` is called in order for each step,
    with its numbers and whether it was applied; `on_gap` with how many were overwritten before it.
    """

    def __init__(self, on_step: Callable[[Row, bool], None], on_gap: Callable[[int], None]) -> None:
        self._on_step = on_step
        self._on_gap = on_gap
        self._rows = RawVariable([_SIZE, COLUMNS + 2], tf.float64)
        self._marks = RawVariable([_SIZE])
        self._count = RawVariable([])
        self.is_eager = self._count.eager
        self._positions: MutableMapping[Any, int] = weakref.WeakKeyDictionary()
        """By Session, or this ring in eager mode: the number of the next step to read."""
        self._begins_with_first_step = True
        if not self.is_eager:
            with tf.init_scope():
                graph = tf1.get_default_graph()
            setattr(graph, _RINGS, [*getattr(graph, _RINGS, []), self])

    def add(self, values: Any, applied: Any) -> Any:
        """Writes a step of which everything is known; returns the operation."""
        one, zero = tf.constant(1.0, tf.float64), tf.constant(0.0, tf.float64)
        return self._write(values, where(applied, one, zero))[1]

    def begin(self, values: Any) -> Any:
        """Writes a step that may be applied; returns its number, for `mark_applied`."""
        number, written = self._write(values, tf.constant(-1.0, tf.float64))
        with tf1.control_dependencies([written]):
            return tf.identity(number)

    def mark_applied(self, number: Any) -> Any:
        return self._marks.update(number % _SIZE, number + 1)

    def _write(self, values: Any, applied: Any) -> Any:
        with tf1.control_dependencies(initialized(self._count, self._rows, self._marks)):
            number = self._count.read()
        with tf1.control_dependencies([number]):
            added = self._count.assign_add(1)
        row = tf.concat([values, [tf.cast(number, tf.float64), applied]], 0)
        with tf1.control_dependencies([added]):
            return number, self._rows.update(number % _SIZE, row)

    def restart(self) -> None:
        """Leaves out the steps that were made until now; in each Session, when it is first seen."""
        self._positions.clear()
        self._begins_with_first_step = False
        if self.is_eager:
            self._positions[self] = int(self._count.value(None))

    def flush(self, session: Any, is_last: bool = False) -> int:
        """Passes on the steps since the last call; returns how many there were.

        With `is_last`, the steps that were not applied until now are not running any more.
        """
        key = self if self.is_eager else session
        count = int(self._count.value(session))
        position = self._positions.setdefault(key, 0 if self._begins_with_first_step else count)
        if count == position:
            return 0
        rows, marks = self._rows.value(session), self._marks.value(session)
        lost = max(0, count - _SIZE - position)
        for number in range(position + lost, count):
            row, is_marked = rows[number % _SIZE], bool(marks[number % _SIZE] == number + 1)
            may_be_running = not is_last and number >= count - _LATE
            is_written = row[-2] == number
            if may_be_running and not (is_written and (row[-1] >= 0 or is_marked)):
                count = number
                break
            if not is_written:  # overwritten meanwhile, or by two threads at once
                lost += 1
                continue
            self._on_gap(lost)
            lost = 0
            self._on_step(unpacked(row[:COLUMNS]), is_marked if row[-1] < 0 else bool(row[-1]))
        self._on_gap(lost)
        self._positions[key] = count
        return count - position


class _Pace:
    """When to read next: rarely, but before steps are overwritten."""

    def __init__(self) -> None:
        self._calls = 0
        self._due = 1
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Counts a call; returns whether to read now."""
        self._calls += 1
        return self._calls >= self._due or time.monotonic() - self._last > _SECONDS

    def note(self, steps: int) -> None:
        """Notes how many steps the reading found."""
        if steps:
            # Twice as often as the ring lasts at this pace.
            self._due = max(1, min(_CALLS, _SIZE * self._calls // (2 * steps)))
        else:
            self._due = min(_IDLE_CALLS, 2 * self._due)
        self._calls = 0
        self._last = time.monotonic()


class Reader:
    """Reads all rings of a recording.

    `before_run` is called before each run with the Session, and whether its graph has steps with
    rings; an error that it raises ends the run.
    """

    def __init__(self, file: RecordFile, before_run: Callable[[Any, bool], None]) -> None:
        self._file = file
        self._before_run = before_run
        self._eager: List[Ring] = []
        self._pace = _Pace()
        self._sessions: MutableMapping[Any, _Pace] = weakref.WeakKeyDictionary()
        self._is_reading = False
        self._is_registered = False
        # From the beginning: a function that makes steps in its first call is running already.
        self._undo = [after_each_call(self._after_call), before_sessions(self._run, self._close)]

    def add(self, ring: Ring) -> None:
        if ring.is_eager:
            self._eager.append(ring)
            self._pace = _Pace()
        if not self._is_registered:
            # Runs before the exit handlers of TensorFlow, which was imported before.
            atexit.register(self.flush)
            self._is_registered = True

    def _after_call(self) -> None:
        if self._eager and not self._is_reading and self._pace.is_due():
            self._pace.note(self._read(None))

    def _run(self, session: Any) -> None:
        if self._is_reading:
            return
        has_steps = hasattr(session.graph, _RINGS)
        self._before_run(session, has_steps)
        if not has_steps:
            return
        pace = self._sessions.setdefault(session, _Pace())
        if pace.is_due():
            pace.note(self._read(session))

    def _read(self, session: Any, is_last: bool = False) -> int:
        """Reads the rings of a Session or of eager mode; returns the most steps of one of them."""
        rings = self._eager if session is None else getattr(session.graph, _RINGS, [])
        with self._file.guard:
            self._is_reading = True
            try:
                count = max([each.flush(session, is_last) for each in rings], default=0)
            except (RuntimeError, tf.errors.OpError):
                if session is None:
                    raise
                return 0  # it was closed, or its device failed
            finally:
                self._is_reading = False
            if count:
                self._file.flush()
            return count

    def _close(self, session: Any) -> None:
        if self._sessions.pop(session, None) is not None:
            self._read(session, is_last=True)

    def flush(self) -> None:
        for session in (None, *self._sessions):
            self._read(session, is_last=True)
        self._file.flush()

    def close(self) -> None:
        for undo in self._undo:
            undo()
        self.flush()
        atexit.unregister(self.flush)
