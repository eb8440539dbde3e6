"""Reads files and puts new bytes in their place: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

__all__ = ["ChangedOnDiskError", "ReadOnlyFileError", "read", "replace"]


class ChangedOnDiskError(OSError):
    """The file is not what was read; somebody else is writing to it."""


class ReadOnlyFileError(PermissionError):
    """The file says that it must not be written."""


def read(path: str) -> bytes:
    """The bytes of a regular file.

    Raises:
      OSError: it cannot be read, or is a pipe or device.
    """
    # Without O_NONBLOCK the mere opening of a pipe that nobody writes to waits for ever.
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file", path)
        return file.read()


def replace(path: str, old: bytes, new: bytes) -> None:
    """Puts `new` where `old` was, through symbolic links; mode, owner and attributes stay.

    The new bytes are complete on the disk before one rename puts them in place, so that after a
    kill or a power cut the file is whole, old or new.

    Raises:
      ChangedOnDiskError: the file no longer holds `old`.
      ReadOnlyFileError: its mode lets nobody write it.
      OSError: the directory cannot be written, the disk is full, the owner cannot be kept.
    """
    path = os.path.realpath(path)
    status = os.stat(path)
    if not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise ReadOnlyFileError(0, "read-only", path)
    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".tf-lossscale-", suffix=".tmp", dir=directory)
    try:
        with open(descriptor, "wb") as file:
            file.write(new)
            _give_attributes(file.fileno(), path, status)
            file.flush()
            os.fsync(file.fileno())
        if read(path) != old:
            raise ChangedOnDiskError(0, "changed since it was read", path)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_directory(directory)


def _give_attributes(descriptor: int, path: str, status: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # after chown, which drops setuid
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):  # a file system without attributes has none to lose
            for name in os.listxattr(path):
                with contextlib.suppress(OSError):  # security labels are the system's to give
                    os.setxattr(descriptor, name, os.getxattr(path, name))


def _sync_directory(directory: str) -> None:
    with contextlib.suppress(OSError):  # not every system can; the rename is atomic all the same
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
