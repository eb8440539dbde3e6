"""The names of our temporary files, and the removal of those that a killed run has left."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
from typing import Optional

from .directories import Directory

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["claim", "new_name", "remove_leftovers"]

_NAME = re.compile(r"\.tf-lossscale-([1-9][0-9]{0,9})-[0-9a-f]{16}\.tmp")
_TRIES = 1000


def new_name() -> str:
    """A name for a temporary file of this process."""
    return f".tf-lossscale-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def claim(descriptor: int) -> None:
    """Marks an open and empty temporary file as in use, for as long as this process has it open.

    The process number in its name does not do by itself: a number is given again, and in another
    container, on the same files, other processes have these numbers.
    """
    # Another worker that looks for leftovers may hold it for a moment. It must not wait for ever.
    for _ in range(_TRIES):
        if _claimed(descriptor) is not False:
            return
        time.sleep(0.001)


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
        claimed = _claimed(descriptor)
        if claimed is False:
            return
        # Without locks the number has to do; and an empty file may be about to be claimed.
        if (claimed is None or status.st_size == 0) and _is_running(process):
            return
        directory.unlink(name)
    finally:
        os.close(descriptor)


def _claimed(descriptor: int) -> Optional[bool]:
    """Whether it is now ours, or another's; None where the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_running(process: int) -> bool:
    if process == os.getpid():
        return False  # an earlier process with the same id has left it
    if os.name == "nt":
        return True  # there a signal of 0 would end the process; whoever finds it may delete it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """Whether it has ended and nobody has waited for it; in containers often nobody does."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:  # no Linux, or gone in this moment
        return False
