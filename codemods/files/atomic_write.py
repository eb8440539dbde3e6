"""Reads files and replaces them atomically.

Paths are absolute and without symbolic links, as `discover` returns them. Each path is opened name
by name from the root, so that a directory that has since become a link is an error.
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
    """The file has changed since it was read."""


class HardLinkedError(OSError):
    """The file has several hard links, of which a rename would replace only one."""


class ReadOnlyFileError(PermissionError):
    """The file is read-only."""


def read(path: str) -> bytes:
    """Reads a regular file.

    Raises:
      SwappedError: if the path contains a symbolic link.
      OSError: if the file cannot be read, or is a pipe or device.
    """
    folder, name = os.path.split(path)
    with Directory(folder) as directory:
        return directory.read(name)


def replace(path: str, old: bytes, new: bytes) -> None:
    """Replaces the content `old` of a file by `new`; keeps mode, owner and attributes.

    The new bytes are complete on disk before a rename puts them in place, so that after a kill or a
    power failure the file has either the old or the new content. Temporary files that killed runs
    left in the directory are removed.

    Raises:
      ChangedOnDiskError: if the file no longer has the content `old`.
      HardLinkedError: if the file has several hard links.
      ReadOnlyFileError: if the file is read-only.
      SwappedError: if the path contains a symbolic link.
      OSError: if the directory cannot be written, the disk is full, or the owner cannot be kept.
    """
    folder, name = os.path.split(path)
    with Directory(folder) as directory:
        status = directory.status(name)
        if status.st_nlink > 1:
            raise HardLinkedError(
                errno.EMLINK,
                f"it has {status.st_nlink} hard links, of which only one would be replaced",
                path,
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
                file.flush()  # before setting the mode, because writing can clear setuid
                _give_attributes(descriptor, directory, name, status)
                os.fsync(descriptor)
                if os.name == "nt":
                    file.close()  # an open file cannot be renamed there
                now = directory.status(name)
                if directory.read(name) != old or not os.path.samestat(now, status):
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
    """Removes leftover temporary files, once for each directory that this process writes to."""
    status = directory.status()
    if (status.st_dev, status.st_ino) not in _swept:
        _swept.add((status.st_dev, status.st_ino))
        remove_leftovers(directory)


def _give_attributes(
    descriptor: int, directory: Directory, name: str, status: os.stat_result
) -> None:
    if hasattr(os, "fchown"):
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # after chown, which clears setuid
    if hasattr(os, "listxattr"):
        source = directory.open(name, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):  # the file system has no attributes
                for attribute in os.listxattr(source):
                    with contextlib.suppress(OSError):  # security labels are set by the system
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)
