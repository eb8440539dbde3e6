"""Limits the work that a run does in its own process, where it cannot be killed like a worker."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
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

    Args:
      limits: a step may take as long as a worker may take for a file.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = self._end_of_step = math.inf
        self._installed = self._is_over = False

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
        self._end = self._end_of_step = math.inf
        if self._installed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)

    @property
    def is_over(self) -> bool:
        """Whether the time for all steps is over, rather than for one of them."""
        return self._is_over

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Limits the time of a block within this one.

        Raises:
          LateError: if the block takes too long; the message continues the name of a file.
        """
        self._end_of_step = time.process_time() + self._limits.seconds
        try:
            yield
        finally:
            self._end_of_step = math.inf

    def _tick(self, *_: Any) -> None:
        now = time.process_time()
        if now > self._end:
            self._is_over = True
            self._end = now + _TO_CLEAN_UP
            seconds = self._limits.all_seconds
            raise LateError(
                f"the search took more than {seconds:g} seconds; raise --time-limit, or pass fewer "
                "files"
            )
        if now > self._end_of_step:
            self._end_of_step = math.inf
            raise LateError(self._limits.too_slow)
