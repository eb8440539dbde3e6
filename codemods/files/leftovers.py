"""Names temporary files, and removes those that killed runs have left."""

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
    """Returns a new name for a temporary file of this process."""
    return f".tf-lossscale-{os.getpid()}-{secrets.token_hex(8)}.tmp"


def claim(descriptor: int) -> None:
    """Marks an open, empty temporary file as in use while this process has it open.

    The process id in its name is not sufficient: ids are reused, and another container that uses
    the same files has other processes with the same ids.
    """
    # Another worker that looks for leftovers may hold the lock briefly; do not wait forever.
    for _ in range(_TRIES):
        if _claimed(descriptor) is not False:
            return
        time.sleep(0.001)


def remove_leftovers(directory: Directory) -> None:
    """Removes temporary files in `directory` that belong to this user and no running process."""
    for entry in directory.entries():
        match = _NAME.fullmatch(entry.name)
        if match:
            with contextlib.suppress(OSError):  # already deleted, or not accessible: harmless
                _remove(directory, entry.name, int(match[1]))


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
        # Without locks, the process id decides; and an empty file may be about to be claimed.
        if (claimed is None or status.st_size == 0) and _is_running(process):
            return
        directory.unlink(name)
    finally:
        os.close(descriptor)


def _claimed(descriptor: int) -> Optional[bool]:
    """Tries to lock the file: False if another process has it locked, None without locks."""
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
        return False  # left by an earlier process with the same id
    if os.name == "nt":
        return True  # signal 0 would end the process on Windows
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return not _is_zombie(process)


def _is_zombie(process: int) -> bool:
    """Whether the process has ended but was not waited for, as often happens in containers."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:  # not Linux, or the process has ended
        return False
