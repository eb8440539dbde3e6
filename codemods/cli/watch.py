"""Limits the work that a run does in its own process, where it cannot be killed like a worker."""

from __future__ import annotations

import math
import signal
import threading
import time
from typing import Any

from ..workers.limits import Limits

__all__ = ["LateError", "Watch"]

_TICK = 0.25
"""Seconds between checks."""
_TO_CLEAN_UP = 5.0
"""Seconds after which the error is raised again, if something has caught it."""


class LateError(Exception):
    """A step, or all steps together, exceeded the time limit."""


class Watch:
    """Raises an error in the block if its work takes too long.

    What counts is processor time: a slow disk, a suspended run and the time to wait for workers,
    which have limits of their own, do not. A timer signal interrupts the work wherever it is, even
    inside a regular expression. Without such signals (on Windows, or outside the main thread), and
    under a profiler that uses them, nothing is limited.

    Attributes:
      step: a context manager that limits the time of a block within this one.
      is_over: whether the time for all steps is over, rather than for one of them.

    Args:
      limits: a step may take as long as a worker may take for a file.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = math.inf
        self._installed = False
        self.step = _Step()
        self.is_over = False

    def __enter__(self) -> Watch:
        self._end = time.process_time() + self._limits.all_seconds
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and hasattr(signal, "setitimer"):
            self._installed = signal.getsignal(signal.SIGPROF) == signal.SIG_DFL
        if self._installed:
            signal.signal(signal.SIGPROF, self._tick)
            signal.setitimer(signal.ITIMER_PROF, _TICK, _TICK)
        return self

    def __exit__(self, *_: object) -> None:
        self._end = math.inf
        if self._installed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def _tick(self, *_: Any) -> None:
        now = time.process_time()
        if now > self._end:
            self.is_over = True
            self._end = now + _TO_CLEAN_UP
            seconds = self._limits.all_seconds
            raise LateError(
                f"the search took more than {seconds:g} seconds; raise --time-limit, or pass fewer "
                "files"
            )
        if self.step.seconds(now) > self._limits.seconds:
            self.step.is_open = False
            raise LateError(self._limits.too_slow)


class _Step:
    """Counts the steps; the timer notes when it first sees each, so that a step costs nothing."""

    def __init__(self) -> None:
        self._number = self._seen = 0
        self._since = 0.0
        self.is_open = False

    def __enter__(self) -> None:
        self._number += 1
        self.is_open = True

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    def seconds(self, now: float) -> float:
        """The time since the open step was first seen by the timer."""
        if not self.is_open or self._number != self._seen:
            self._seen, self._since = self._number, now
        return now - self._since
