"""How much of a machine one file may cost: time, size, memory."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

__all__ = ["Limits", "bound_memory", "memory_bound"]

_MB = 1024 * 1024
_GB = 1024 * _MB


class Limits(NamedTuple):
    """What one file may cost at most.

    They come from the command line only: a repository must not lift its own limits.

    Attributes:
      seconds: of processing; writing the result does not count.
      size: in bytes, of a file that a rule could concern.
    """

    seconds: float = 60.0
    size: int = 32 * _MB

    @classmethod
    def of(cls, seconds: float, megabytes: float) -> Limits:
        """From the options of the command line."""
        return cls(seconds, round(megabytes * _MB))

    @property
    def search(self) -> int:
        """In bytes, of a file that is searched for names that concern a rule."""
        return 32 * self.size

    @property
    def too_slow(self) -> str:
        """The error of a file that takes longer."""
        return f"took more than {self.seconds:g} seconds; raise --time-limit, or --exclude it"

    @property
    def too_large(self) -> str:
        """The error of a file that is larger."""
        return f"is larger than {self.size / _MB:.3g} MB; raise --size-limit, or --exclude it"


def memory_bound() -> int:
    """The bytes that a worker may take: half of what the machine has, from one to eight GB."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 * _GB
    return min(max(physical // 2, _GB), 8 * _GB)


def bound_memory(more: int) -> None:
    """Lets this process take `more` bytes than it has, where the system can be asked that."""
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
