"""The names of our temporary files, and the removal of those that a killed run has left."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from typing import Optional

from .directories import Directory

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["claim", "new_name", "remove_leftovers"]

_NAME = re.compile(r"\.tf-lossscale-([1-9][0-9]{0,9})-[0-9a-f]{16}\.tmp")


def new_name() -> str:
    """A name for a temporary file of this process."""
    return f".tf-lossscale-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def claim(descriptor: int) -> None:
    """Marks an open and empty temporary file as in use, for as long as this process has it open.

    The process number in its name does not do by itself: a number is given again, and in another
    container, on the same files, other processes have these numbers.
    """
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_leftovers(directory: Directory) -> None:
    """Removes the temporary files in `directory` that belong to us and to no running process."""
    for name in directory.names():
        match = _NAME.fullmatch(name)
        if match:
            with contextlib.suppress(OSError):  # gone, or not ours to open: it does no harm
                _remove(directory, name, int(match[1]))


def _remove(directory: Directory, name: str, process: int) -> None:
    descriptor = directory.open(name, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return
        if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            return
        in_use = _is_claimed(descriptor)
        if in_use is None or (in_use is False and status.st_size == 0):
            in_use = _is_running(process)  # nobody can claim it, or somebody is just about to
        if not in_use:
            directory.unlink(name)
    finally:
        os.close(descriptor)


def _is_claimed(descriptor: int) -> Optional[bool]:
    """Whether a process has it open and claimed; None where the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def _is_running(process: int) -> bool:
    if process == os.getpid():
        return False  # we have none open when this is asked: it was another's with our number
    if os.name == "nt":
        return True  # there a signal of 0 would end the process; whoever finds it may delete it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
