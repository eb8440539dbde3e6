"""Keeps two processes from recording to the same file.

The lock belongs to the open file, so it survives that `tf-lossscale run` becomes the script, and it
ends with the process, however that ends.
"""

import os
import stat
from typing import Any, Optional, Set

from tf_lossscale._recorder.errors import RecordingError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["hand_over", "hold", "keep", "release"]

_held: Set[int] = set()


def hold(path: str) -> int:
    """Opens the file of a record, and locks it.

    Args:
      path: the file, which is created if it does not exist, and otherwise not changed.

    Returns:
      The file descriptor, for `release`.

    Raises:
      OSError: the file cannot be written.
      RecordingError: another process records to it.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    if fcntl is not None and stat.S_ISREG(os.fstat(descriptor).st_mode):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise RecordingError(
                f"Another process is recording to {path}. Each process needs a file of its own, "
                "such as run-0.jsonl and run-1.jsonl for two workers."
            ) from None
        except OSError:
            pass  # a file system without locks
    _held.add(descriptor)
    return descriptor


def hand_over(descriptor: int) -> Optional[int]:
    """Prepares the lock for the program that this process becomes with `exec`.

    Returns:
      The descriptor for `keep`, or None on Windows, where that program is another process.
    """
    if os.name == "nt":
        release(descriptor)
        return None
    os.set_inheritable(descriptor, True)
    return descriptor


def keep(descriptor: int) -> None:
    """Takes over the lock of the program that this process was before `exec`."""
    os.set_inheritable(descriptor, False)
    _held.add(descriptor)


def release(descriptor: int) -> None:
    """Closes the file, and so ends the lock; does nothing in a forked process."""
    if descriptor in _held:
        _held.remove(descriptor)
        os.close(descriptor)


def _release_all() -> None:
    for descriptor in list(_held):
        release(descriptor)


# A forked process does not record to the file, and can live longer than the one that does.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_release_all)
