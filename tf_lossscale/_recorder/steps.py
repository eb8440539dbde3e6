"""The steps of one optimizer, from the numbers that its operations send to the record."""

import threading
import weakref
from typing import Any, Dict, List, Optional, Set, Tuple

import numpy as np

from tf_lossscale._recorder.environment import run_header
from tf_lossscale._recorder.measuring import Row, unpacked
from tf_lossscale._recorder.optimizers import LossScale, Variables, hash_of
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._recorder.rings import Ring

__all__ = ["Steps", "known_steps", "steps_of"]

_OPEN = 16
"""How many steps wait for the news that they were applied; steps in flight are fewer."""


class _OpenStep:
    """A step that may still be applied."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.applied = False


class Steps:
    """Counts the steps of one optimizer, and adds them to the record in order.

    Args:
      file: the record.
      optimizer: the optimizer.
      loss_scale: its loss scale.
      variables: its variables, in the order of its first step.
    """

    def __init__(
        self, file: RecordFile, optimizer: Any, loss_scale: LossScale, variables: Variables
    ) -> None:
        self._lock = threading.RLock()
        self._cls = type(optimizer).__name__
        self._optimizer = weakref.ref(optimizer)
        self._loss_scale = loss_scale
        self._variables = variables
        self._begin_record(file)
        self.application_is_known = True
        self.may_skip_later = False
        self.xla: Optional[bool] = None
        self.replicas = 1
        self._ring: Optional[Ring] = None
        _known.add(self)

    def _begin_record(self, file: RecordFile) -> None:
        self._file = file
        self._initial_weights: Optional[str] = None
        self._number: Optional[int] = None
        self._count = 0
        self._open: Dict[int, _OpenStep] = {}
        self._last: Tuple[int, Optional[_OpenStep]] = (-1, None)
        self._after_errors: Set[int] = set()
        self.break_before: Optional[int] = None

    def record_to(self, file: RecordFile) -> Optional[Ring]:
        """Begins another record, of steps that were built for an earlier one, too.

        Returns:
          The ring to read for it, if there is one.
        """
        with self._lock:
            self._begin_record(file)
            if self._ring is not None:
                self._ring.discard()
            return self._ring

    def note_weights(self) -> None:
        """Remembers the weights before the first step; they are unknown if this is not called."""
        if self._number is None and self._count == 0:
            self._initial_weights = hash_of(self._variables.values())

    def belongs_to(self, optimizer: Any) -> bool:
        """Returns whether these are the steps of `optimizer`."""
        return self._optimizer() is optimizer

    @property
    def optimizer(self) -> Any:
        """The optimizer; None if it no longer exists."""
        return self._optimizer()

    @property
    def count(self) -> int:
        """The number of steps in this record."""
        return self._count

    @property
    def cls(self) -> str:
        """The name of the optimizer's class."""
        return self._cls

    def ring(self) -> Tuple[Ring, bool]:
        """Returns the ring for the steps that XLA compiles, and whether it is new."""
        is_new = self._ring is None
        if self._ring is None:
            self.xla = True
            self._ring = Ring(self._add, self._skip)
        return self._ring, is_new

    def begin(self, values: np.ndarray) -> np.int64:
        """Adds a step from its numbers; returns its number."""
        row = unpacked(values)
        if self._file.is_closed:
            return np.int64(0)
        with self._lock:
            if self._ring is not None:
                self._ring.flush()  # its steps come before this one
            return np.int64(self._begin(row))

    def _begin(self, row: Row) -> int:
        step = self._count
        self._count += 1
        self._describe(row, step)
        self._open[step] = _OpenStep(row)
        if len(self._open) > _OPEN:
            self._close(min(self._open))
        return step

    def _add(self, row: Row, applied: bool) -> None:
        """Adds a step of which everything is known."""
        with self._lock:
            self._open[self._begin(row)].applied = applied

    def _skip(self, count: int) -> None:
        """Leaves out some steps; the next one shows that they are missing."""
        with self._lock:
            self._count += count

    def mark_applied(self, step: Any) -> np.int64:
        """Notes that the inner optimizer applies a step."""
        with self._lock:
            known = self._open.get(int(step))
            if known is not None:
                known.applied = True
        return np.int64(0)

    def withdraw(self, step: Any) -> None:
        """Removes a step that ended with an error, and was neither applied nor skipped."""
        with self._lock:
            if self._open.pop(int(step), None) is not None and int(step) == self._count - 1:
                self._count -= 1
            self._after_errors.add(self._count)  # it may have updated the scale

    def close(self) -> None:
        """Adds the steps that are still open to the record."""
        with self._lock:
            if self._ring is not None:
                self._ring.flush()
            for step in sorted(self._open):
                self._close(step)

    def _describe(self, first: Row, step: int) -> None:
        if self._number is not None:
            return
        scale = self._loss_scale.parameters
        if step == 0:
            scale.initial_scale = first.scale
            scale.good_steps = first.good_steps or 0
            scale.bad_steps = first.bad_steps or 0
        self._number = self._file.add_optimizer(
            run_header(self.replicas, self.xla),
            self._cls,
            scale,
            self._variables.names,
            self._variables.shapes,
            self._initial_weights,
        )

    def _look_for_break(self, step: int, now: _OpenStep) -> None:
        (number, last), self._last = self._last, (step, now)
        if self.break_before is not None or last is None or number != step - 1:
            return
        if step in self._after_errors:
            return
        is_known = self.application_is_known and not self.may_skip_later
        if not is_known or not self._loss_scale.tests_gradients:
            return
        growth_steps = self._loss_scale.parameters.growth_steps
        if not last.row.may_precede(now.row, last.applied, growth_steps):
            self.break_before = step

    def _close(self, step: int) -> None:
        closed = self._open.pop(step)
        self._look_for_break(step, closed)
        row, applied = closed.row, closed.applied
        known: Optional[bool] = applied
        finite = applied if self._loss_scale.tests_gradients else row.finite
        if self.may_skip_later:
            known, finite = None, None if row.finite else row.finite
        elif not self.application_is_known:
            known, finite = None, row.finite
        assert self._number is not None
        self._file.add_step(
            self._number,
            step,
            loss=row.loss,
            scale=row.scale,
            finite=finite,
            applied=known,
            norm=row.norm if finite is not False else None,
            bad=row.bad,
        )


_known: "weakref.WeakSet[Steps]" = weakref.WeakSet()
"""A graph or function keeps the steps that are built into it."""


def known_steps() -> List[Steps]:
    """Returns the steps of all recordings, as long as something can still make them."""
    return list(_known)


def steps_of(optimizer: Any) -> Optional[Steps]:
    """Returns the steps of an optimizer that was recorded before, or None."""
    return next((each for each in known_steps() if each.belongs_to(optimizer)), None)
