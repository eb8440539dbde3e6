"""Reads files and puts new bytes in their place: whole, or not at all.

Paths are absolute and free of symbolic links, as `discover` gives them. Each is opened from the top
name by name, so a directory that has since become a link leads nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from .directories import Directory, SwappedError
from .leftovers import claim, new_name, remove_leftovers

__all__ = [
    "ChangedOnDiskError",
    "HardLinkedError",
    "ReadOnlyFileError",
    "SwappedError",
    "read",
    "replace",
]


class ChangedOnDiskError(OSError):
    """The file is not what was read; somebody else is writing to it."""


class HardLinkedError(OSError):
    """The file has several names, and a rename would put new bytes behind one of them only."""


class ReadOnlyFileError(PermissionError):
    """The file says that it must not be written."""


def read(path: str) -> bytes:
    """The bytes of a regular file.

    Raises:
      SwappedError: a link is in the path, or at its end.
      OSError: it cannot be read, or is a pipe or device.
    """
    folder, name = os.path.split(path)
    with Directory(folder) as directory:
        return _read(directory, name)


def replace(path: str, old: bytes, new: bytes) -> None:
    """Puts `new` where `old` was; mode, owner and attributes stay.

    The new bytes are complete on the disk before one rename puts them in place, so that after a
    kill or a power cut the file is whole, old or new. What kills have left beside it is removed.

    Raises:
      ChangedOnDiskError: the file no longer holds `old`.
      HardLinkedError: the file has other names.
      ReadOnlyFileError: its mode lets nobody write it.
      SwappedError: a link is in the path, or at its end.
      OSError: the directory cannot be written, the disk is full, the owner cannot be kept.
    """
    folder, name = os.path.split(path)
    with Directory(folder) as directory:
        status = directory.status(name)
        if status.st_nlink > 1:
            raise HardLinkedError(
                errno.EMLINK, f"it has {status.st_nlink} hard links, which would part", path
            )
        if not status.st_mode & 0o222 or not directory.is_writable(name):
            raise ReadOnlyFileError(0, "read-only", path)
        _sweep(directory)
        temporary = new_name()
        descriptor = directory.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with open(descriptor, "wb") as file:
                claim(descriptor)
                file.write(new)
                file.flush()  # before the mode: to a user, writing takes setuid away again
                _give_attributes(descriptor, directory, name, status)
                os.fsync(descriptor)
                if os.name == "nt":
                    file.close()  # there no open file can be renamed; elsewhere it stays claimed
                now = directory.status(name)
                if _read(directory, name) != old or not os.path.samestat(now, status):
                    raise ChangedOnDiskError(0, "changed since it was read", path)
                directory.check_place()
                directory.rename(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                directory.unlink(temporary)
            raise
        directory.sync()


_swept: set[tuple[int, int]] = set()


def _sweep(directory: Directory) -> None:
    """Removes leftovers, once for each directory that this process writes in."""
    status = directory.status()
    if (status.st_dev, status.st_ino) not in _swept:
        _swept.add((status.st_dev, status.st_ino))
        remove_leftovers(directory)


def _read(directory: Directory, name: str) -> bytes:
    descriptor = directory.open(name, os.O_RDONLY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file", os.path.join(directory.path, name))
    with open(descriptor, "rb") as file:
        return file.read()


def _give_attributes(
    descriptor: int, directory: Directory, name: str, status: os.stat_result
) -> None:
    if hasattr(os, "fchown"):
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # after chown, which drops setuid
    if hasattr(os, "listxattr"):
        source = directory.open(name, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # a file system without attributes has none to lose
                for attribute in os.listxattr(source):
                    with contextlib.suppress(OSError):  # security labels are the system's to give
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)
