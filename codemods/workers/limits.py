"""The limits on processing one file: time, size, memory."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

__all__ = ["Limits", "bound_memory", "memory_bound"]

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

    @classmethod
    def of(cls, seconds: float, megabytes: float) -> Limits:
        """Creates the limits from the command-line options."""
        return cls(seconds, round(megabytes * _MB))

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

        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[0])
        limit = pages * os.sysconf("SC_PAGE_SIZE") + more
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        if soft == resource.RLIM_INFINITY or limit < soft:
            resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
