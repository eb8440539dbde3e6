"""The limits on the work for a file: time, size, memory.

Those of a worker process are enforced by its parent or by the operating system. The work that a run
does in its own process, which cannot be killed, is interrupted by a timer.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = [
    "LateError",
    "Limits",
    "Watch",
    "bound_memory",
    "memory_bound",
    "memory_left",
    "memory_limit",
]

_MB = 1024 * 1024
_GB = 1024 * _MB
_LEAST_SECONDS = 600.0
"""Enough to search a million files, however short the limit for one of them is."""


class Limits(NamedTuple):
    """The limits on one file.

    They come from the command line only: a repository must not raise its own limits.

    Attributes:
      seconds: processing time, not counting the time to write the result.
      size: bytes of a file to which a rule could apply.
    """

    seconds: float = 60.0
    size: int = 32 * _MB

    @property
    def search(self) -> int:
        """Bytes that are searched for legacy names in files of more than `size` bytes together."""
        return 8 * self.size

    @property
    def all_seconds(self) -> float:
        """Processor time to search all files, not counting the workers."""
        return max(10 * self.seconds, _LEAST_SECONDS)

    @property
    def too_slow(self) -> str:
        """The error for a file that exceeds the time limit."""
        return f"took more than {self.seconds:g} seconds; raise --time-limit, or --exclude it"

    @property
    def too_large(self) -> str:
        """The error for a file that exceeds the size limit."""
        return f"is larger than {self.size / _MB:.3g} MB; raise --size-limit, or --exclude it"


def memory_bound() -> int:
    """The memory limit of a worker in bytes: half of the machine's memory, but 1 to 8 GB."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 * _GB
    return min(max(physical // 2, _GB), 8 * _GB)


def bound_memory(more: int) -> None:
    """Limits this process to `more` bytes beyond what it uses now, where the system supports it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit = _mapped() + more
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        if soft == resource.RLIM_INFINITY or limit < soft:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def memory_left() -> float:
    """The bytes that this process may still map, such as below `ulimit -v`; infinity if any."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            return soft - _mapped()
    return math.inf


def memory_limit() -> str:
    """The memory limit of a worker, for a message: `ulimit -v` if it is lower."""
    limit = memory_bound()
    with contextlib.suppress(ImportError, OSError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            limit = min(limit, soft)
    return f"{limit / _GB:.0f} GB" if limit >= _GB else f"{limit / _MB:.0f} MB"


def _mapped() -> int:
    """The bytes of address space that this process uses, which is what the limit counts."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


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
      is_over: whether the time for all steps is over, rather than for one of them.

    Args:
      limits: a step may take as long as a worker may take for a file.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end = math.inf
        self._step = math.inf
        self._installed = False
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

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Limits the time of a block within this one."""
        self._step = time.process_time()
        try:
            yield
        finally:
            self._step = math.inf

    def _tick(self, *_: Any) -> None:
        """Called by a timer; raises LateError in the code that takes too long."""
        now = time.process_time()
        if now > self._end:
            self.is_over = True
            self._end = now + _TO_CLEAN_UP
            seconds = self._limits.all_seconds
            raise LateError(
                f"the search took more than {seconds:g} seconds; raise --time-limit, or pass fewer "
                "files"
            )
        if now - self._step > self._limits.seconds:
            self._step = math.inf
            raise LateError(self._limits.too_slow)
