"""The steps of one optimizer, from the numbers that its operations send to the record."""

import threading
from typing import Any, Dict, Optional, Tuple

import numpy as np

from tf_lossscale._recorder.environment import run_header
from tf_lossscale._recorder.measuring import Row, unpacked
from tf_lossscale._recorder.optimizers import LossScale, Variables, hash_of
from tf_lossscale._recorder.record_file import RecordFile
from tf_lossscale._recorder.rings import Ring

__all__ = ["Steps"]

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
      cls: name of the optimizer's class.
      loss_scale: its loss scale.
      variables: its variables, in the order of its first step.
    """

    def __init__(
        self, file: RecordFile, cls: str, loss_scale: LossScale, variables: Variables
    ) -> None:
        self._file = file
        self._cls = cls
        self._loss_scale = loss_scale
        self._variables = variables
        self._initial_weights = hash_of(variables.values())
        self._number: Optional[int] = None
        self._count = 0
        self._open: Dict[int, _OpenStep] = {}
        self._lock = threading.RLock()
        self.application_is_known = True
        self.may_skip_later = False
        self.xla: Optional[bool] = None
        self.replicas = 1
        self._ring: Optional[Ring] = None

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

    def _close(self, step: int) -> None:
        closed = self._open.pop(step)
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
