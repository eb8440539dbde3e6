"""Reads files and replaces them atomically.

Paths are absolute and without symbolic links, as `discover` returns them. Each path is opened name
by name from the root, so that a directory that has since become a link is an error.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO, Optional

from tf_lossscale._process import signals_delayed

from .directories import Directory, SwappedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "BusyError",
    "ChangedOnDiskError",
    "ReadOnlyFileError",
    "SwappedError",
    "read",
    "replace",
    "replacing",
]

_TRIES = 100


class BusyError(OSError):
    """Another process is replacing the file."""


class ChangedOnDiskError(OSError):
    """The file has changed since it was read."""


class ReadOnlyFileError(PermissionError):
    """The file is read-only."""


def read(path: str, most: Optional[int] = None) -> bytes:
    """Reads a regular file.

    Raises:
      TooLargeError: if it has more than `most` bytes.
      SwappedError: if the path contains a symbolic link.
      OSError: if the file cannot be read, or is a pipe or device.
    """
    folder, name = os.path.split(path)
    with Directory(folder) as directory:
        return directory.read(name, most)


def replace(path: str, old: bytes, new: bytes) -> None:
    """Replaces the content `old` of a file by `new`; keeps mode, owner and attributes.

    The new bytes are complete on disk before a rename puts them in place, so that after a kill or a
    power failure the file has either the old or the new content.

    Raises:
      BusyError: if another process is replacing the file.
      ChangedOnDiskError: if the file no longer has the content `old`.
      ReadOnlyFileError: if the file is read-only.
      SwappedError: if the path contains a symbolic link.
      OSError: if the file has several hard links, of which only one would be replaced, the
        directory cannot be written, the disk is full, or the owner cannot be kept.
    """
    folder, name = os.path.split(path)
    # A signal that ends the run waits: at some moments it would leave the temporary file.
    with signals_delayed(), Directory(folder) as directory:
        status = directory.status(name)
        if status.st_nlink > 1:
            links = f"it has {status.st_nlink} hard links, of which only one would be replaced"
            raise OSError(errno.EMLINK, links, path)
        if not status.st_mode & 0o222 or not directory.is_writable(name):
            raise ReadOnlyFileError(0, "read-only", path)
        with replacing(directory, name) as file:
            file.write(new)
            file.flush()  # before setting the mode, because writing can clear setuid
            _give_attributes(file.fileno(), directory, name, status)
            os.fsync(file.fileno())
            now = directory.status(name)
            if directory.read(name) != old or not os.path.samestat(now, status):
                raise ChangedOnDiskError(0, "changed since it was read", path)
            directory.check_place()
        directory.sync()


@contextlib.contextmanager
def replacing(directory: Directory, name: str, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of `name` if the block ends without an exception.

    The name of the temporary file follows from `name`, so the next run that replaces the file finds
    and removes what a killed run has left. A lock shows whether the process that made it still
    runs; its id would not, since ids are reused and other containers have the same ones.

    Raises:
      BusyError: if another process is replacing the file.
      OSError: if the file cannot be created or renamed.
    """
    import hashlib  # takes as long as the search of fifty files, and most runs write nothing

    hashed = hashlib.sha1(os.fsencode(name), usedforsecurity=False).hexdigest()[:16]
    temporary = f".tf-lossscale-{hashed}.tmp"
    descriptor = None
    try:
        with signals_delayed():  # so that a file that was created is also removed
            descriptor = _created(directory, temporary, mode)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            made = os.fstat(descriptor)
            if os.name == "nt":
                file.close()  # an open file cannot be renamed there
            if not os.path.samestat(directory.status(temporary), made):  # only without locks
                raise BusyError(errno.EBUSY, "another run is writing it", name)
            directory.rename(temporary, name)
    except BaseException:
        with signals_delayed(), contextlib.suppress(OSError):
            if descriptor is not None:
                directory.unlink(temporary)
        raise


def _created(directory: Directory, temporary: str, mode: int) -> int:
    """Creates the temporary file and claims it; removes what a killed run has left."""
    for _ in range(_TRIES):
        try:
            descriptor = directory.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                _remove(directory, temporary)
            continue
        # Between the two calls, another run may have taken the file for a left one.
        with contextlib.suppress(FileNotFoundError):
            if claim(descriptor) and os.path.samestat(
                os.fstat(descriptor), directory.status(temporary)
            ):
                return descriptor
        os.close(descriptor)
    raise BusyError(errno.EBUSY, "another run is writing it", temporary)


def _remove(directory: Directory, temporary: str) -> None:
    descriptor = directory.open(temporary, os.O_RDONLY)
    try:
        if not claim(descriptor):
            raise BusyError(errno.EBUSY, "another run is writing it", temporary)
        directory.unlink(temporary)
    finally:
        os.close(descriptor)


def claim(descriptor: int) -> bool:
    """Locks a file while this process has it open; false if another process has it locked."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # the file system has no locks
            pass
    return True


def _give_attributes(
    descriptor: int, directory: Directory, name: str, status: os.stat_result
) -> None:
    """Gives a new file the owner, the mode and the extended attributes of the file `name`."""
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
