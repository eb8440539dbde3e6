"""Keeps the steps of graphs and functions on the device, and reads them from time to time.

A step writes its numbers into a ring of variables, which XLA can compile, too. The host reads it
after some calls of functions or runs of a Session, at least every second while they go on, before
a Session is closed, and when the recording ends. Steps that were overwritten before become a gap.
"""

import atexit
import time
import weakref
from typing import Any, Callable, Dict, List, MutableMapping, Optional, Sequence, Set, Tuple

from tf_lossscale._core.unscaled import ancestors
from tf_lossscale._core.watching import initialized
from tf_lossscale._recorder.measuring import Measured, Row, unpacked
from tf_lossscale._records.writing import RecordFile
from tf_lossscale._types import Array, Graph, Operation, Session, Tensor
from tf_lossscale._versions.base import tf, tf1, where
from tf_lossscale._versions.hooks import after_each_call, before_runs, before_sessions
from tf_lossscale._versions.variables import RawVariable

_SIZE = 1024
_CALLS, _SECONDS = 200, 1.0  # the most calls, and the longest time, between two readings
_IDLE_CALLS = 8  # the most while calls make no steps: a later one may make many
_LATE = 16  # how many steps may still be running in other threads while the ring is read
_RINGS = "_tf_lossscale_rings"  # the attribute of a graph with its rings, as long as it exists


class Ring:
    """The last steps of one optimizer, in eager mode or in the graph of a Session.

    Its rows hold the numbers of `measuring`, the number of the step, and whether it was applied: 1
    or 0, or -1 for a step that `mark_applied` is called for. `on_step` is called in order for each
    step, with its numbers, whether it was applied, and for the first one the norms of its
    variables, negative if unknown; `on_gap` with how many were overwritten before it. `on_begin` is
    called before a Session makes the first step, with a function that reads variables. `variables`
    is how many the optimizer has, `width` how many numbers a step.

    Attributes:
      begun: the Sessions that have begun.
    """

    def __init__(
        self,
        on_step: Callable[[Row, bool, Optional[Array]], None],
        on_gap: Callable[[int], None],
        on_begin: Callable[[Callable[[Sequence[Tensor]], Sequence[Array]]], None],
        variables: int,
        width: int,
    ) -> None:
        self.on_begin = on_begin
        self.begun: weakref.WeakSet[Session] = weakref.WeakSet()
        self._variables = variables
        self._on_step = on_step
        self._on_gap = on_gap
        self._width = width
        self._rows = RawVariable([_SIZE, width + 2], tf.float64)
        # Of the first step, plus 1, and of the last one, which are not read.
        self._norms = RawVariable([2, variables], tf.float64)
        self._marks = RawVariable([_SIZE])
        self._count = RawVariable([])
        self.is_eager = self._count.eager
        self._positions: MutableMapping[Session, int] = weakref.WeakKeyDictionary()
        """By Session, or this ring in eager mode: the number of the next step to read."""
        self._begins_with_first_step = True
        if not self.is_eager:
            with tf.init_scope():
                graph = tf1.get_default_graph()
            setattr(graph, _RINGS, [*getattr(graph, _RINGS, []), self])

    def is_used_by(self, operations: Set[Operation]) -> bool:
        """Returns whether some operations, with all that they depend on, make a step."""
        return self._count.handle.op in operations

    def add(self, measured: Measured, applied: Tensor) -> Optional[Operation]:
        """Writes a step of which everything is known; returns the operation."""
        one, zero = tf.constant(1.0, tf.float64), tf.constant(0.0, tf.float64)
        return self._write(measured, where(applied, one, zero))[1]

    def begin(self, measured: Measured) -> Tensor:
        """Writes a step that may be applied; returns its number, for `mark_applied`."""
        number, written = self._write(measured, tf.constant(-1.0, tf.float64))
        with tf1.control_dependencies([written]):
            return tf.identity(number)

    def mark_applied(self, number: Tensor) -> Operation:
        return self._marks.update(number % _SIZE, number + 1)

    def _write(self, measured: Measured, applied: Tensor) -> Tuple[Tensor, Operation]:
        """Writes a row into the ring; returns the number of the step, and the operation.

        Each operation waits for the one before, so that the step has the number that was read
        first. Two threads that write at once can get the same number; `flush` counts the lost one
        as a gap.
        """
        variables = (self._count, self._rows, self._marks, self._norms)
        with tf1.control_dependencies(initialized(*variables)):
            number = self._count.read()
        with tf1.control_dependencies([number]):
            added = self._count.assign_add(1)
        row = tf.concat([measured.row, [tf.cast(number, tf.float64), applied]], 0)
        # Another function can train other variables.
        norms: Any = measured.norms
        has_norms = norms is not None and self._variables == norms.shape[0]
        with tf1.control_dependencies([added]):
            place = tf.minimum(number, 1)
            updates = [self._norms.update(place, norms + 1.0)] if has_norms else []
            with tf1.control_dependencies(updates):
                return number, self._rows.update(number % _SIZE, row)

    def restart(self) -> None:
        """Leaves out the steps that were made until now; in each Session, when it is first seen."""
        self._positions.clear()
        self._begins_with_first_step = False
        if self.is_eager:
            self._positions[self] = int(self._count.value(None))

    def flush(self, session: Session, is_last: bool = False) -> int:
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
        first_late = count if is_last else count - _LATE  # from there on, steps may be running
        for number in range(position + lost, count):
            row, is_marked = rows[number % _SIZE], bool(marks[number % _SIZE] == number + 1)
            is_written = row[-2] == number
            is_complete = is_written and (row[-1] >= 0 or is_marked)
            if not is_complete and number >= first_late:
                count = number
                break
            if not is_written:  # overwritten meanwhile, or by two threads at once
                lost += 1
                continue
            self._on_gap(lost)
            lost = 0
            applied = is_marked if row[-1] < 0 else bool(row[-1])
            self._on_step(unpacked(row[: self._width]), applied, self._norms_at(number, session))
        self._on_gap(lost)
        self._positions[key] = count
        return count - position

    def _norms_at(self, number: int, session: Session) -> Optional[Array]:
        """Returns the norms of the variables, which are kept for the first step only."""
        return None if number else self._norms.value(session)[0] - 1.0


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
    rings; an error that it raises ends the run. `disturb` is called before each run in such a graph
    with the Session, the operations, and whether they make a step.
    """

    def __init__(
        self,
        file: RecordFile,
        before_run: Callable[[Session, bool], None],
        disturb: Optional[Callable[[Session, Sequence[Operation], bool], None]] = None,
    ) -> None:
        self._file = file
        self._before_run = before_run
        self._disturb = disturb
        # By graph and operations: which of the rings of the graph they use.
        self._used: MutableMapping[Graph, Dict[Any, List[int]]] = weakref.WeakKeyDictionary()
        self._eager: List[Ring] = []
        self._pace = _Pace()
        self._sessions: MutableMapping[Session, _Pace] = weakref.WeakKeyDictionary()
        self._is_reading = False
        self._is_registered = False
        # From the beginning: a function that makes steps in its first call is running already.
        self._undo = [
            after_each_call(self._after_call),
            before_sessions(self._run, self._close),
            before_runs(self._begin),
        ]

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

    def _run(self, session: Session) -> None:
        if self._is_reading:
            return
        has_steps = hasattr(session.graph, _RINGS)
        self._before_run(session, has_steps)
        if not has_steps:
            return
        pace = self._sessions.setdefault(session, _Pace())
        if pace.is_due():
            pace.note(self._read(session))

    def _begin(self, session: Session, operations: Sequence[Operation]) -> None:
        """Looks at what is so before the first step of a Session."""
        rings = getattr(session.graph, _RINGS, [])
        if self._is_reading or self._has_begun(session, rings):
            return
        used = self._rings_used_by(session.graph, rings, operations)
        self._is_reading = True
        try:
            if self._disturb is not None:
                self._disturb(session, operations, bool(used))
            for ring in used:
                if session not in ring.begun:
                    ring.begun.add(session)
                    ring.on_begin(session.run)
        finally:
            self._is_reading = False

    def _has_begun(self, session: Session, rings: Sequence[Ring]) -> bool:
        return self._disturb is None and all(session in ring.begun for ring in rings)

    def _rings_used_by(
        self, graph: Graph, rings: Sequence[Ring], operations: Sequence[Operation]
    ) -> List[Ring]:
        known = self._used.setdefault(graph, {})
        key = (len(rings), frozenset(operation.name for operation in operations))
        if key not in known:
            needed = ancestors(operations)
            known[key] = [i for i, ring in enumerate(rings) if ring.is_used_by(needed)]
        return [rings[i] for i in known[key]]

    def _read(self, session: Session, is_last: bool = False) -> int:
        """Reads the rings of a Session or of eager mode; returns the most steps of one of them."""
        rings = self._eager if session is None else getattr(session.graph, _RINGS, [])
        with self._file.guard:
            self._is_reading = True
            try:
                count = max([ring.flush(session, is_last) for ring in rings], default=0)
            except (RuntimeError, tf.errors.OpError):
                if session is None:
                    raise
                return 0  # it was closed, or its device failed
            finally:
                self._is_reading = False
            if count:
                self._file.flush()
            return count

    def _close(self, session: Session) -> None:
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
        # The steps keep this object, and the rings of eager mode have variables.
        self._eager.clear()
        self._sessions.clear()
        self._used.clear()
