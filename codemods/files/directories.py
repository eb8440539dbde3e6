"""Directory handles, which protect against paths that change between two operations.

A path is looked up each time it is used, and a directory in it may have been replaced by a link in
the meantime. A handle always refers to the directory that was opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, Optional, Union

__all__ = ["Directory", "Entry", "SwappedError", "TooLargeError"]

_HAS_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
# O_PATH, if available, needs no permission to list the directories on the way.
_STEP = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
_LIST = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_QUIET = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NO_DIRECTORY = (errno.ENOTDIR, errno.ELOOP)


class SwappedError(OSError):
    """A directory or file has been replaced by a symbolic link."""


class TooLargeError(OSError):
    """A file is larger than the caller reads."""


class Entry(NamedTuple):
    """A directory entry; the kind is `link`, `directory`, `file` or `other`."""

    name: str
    kind: str


class Directory:
    """An open directory, given by its absolute path without symbolic links.

    On systems without directory handles (Windows), every operation checks that the path still
    contains no links.

    Args:
      path: the path.
      above: the directory that contains it, if that is open: then only the last name is looked up.

    Raises:
      SwappedError: if the path contains a symbolic link.
      OSError: if the directory cannot be opened.
    """

    def __init__(self, path: str, above: Optional[Directory] = None) -> None:
        self.path = path
        self._handle: Optional[int] = None
        if above is not None and above._handle is not None:
            self._handle = _step(path, os.path.basename(path), above._handle)
        elif _HAS_HANDLES:
            self._handle = _open(path)
        else:
            self._check()

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """Opens `name`; never waits for a pipe and never follows a link."""
        try:
            return os.open(self._of(name), flags | _QUIET | _BINARY, mode, dir_fd=self._handle)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _swapped(os.path.join(self.path, name)) from None
            raise

    def read(self, name: str, most: Optional[int] = None) -> bytes:
        """Reads the regular file `name`.

        Raises:
          TooLargeError: if it has more than `most` bytes.
          OSError: if it cannot be read, or is a pipe or device.
        """
        descriptor = self.open(name, os.O_RDONLY)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(0, "not a regular file", os.path.join(self.path, name))
            size = status.st_size
            if most is not None and size > most:
                raise TooLargeError(errno.EFBIG, f"is larger than {most:,} bytes", name)
            data = os.read(descriptor, size + 1)
            if len(data) == size:
                return data
            with open(descriptor, "rb", closefd=False) as file:  # it grows, or is in /proc
                return data + file.read()
        finally:
            os.close(descriptor)

    def status(self, name: str = os.curdir) -> os.stat_result:
        """The status of `name`, without following a link."""
        return os.stat(self._of(name), dir_fd=self._handle, follow_symlinks=False)

    def is_writable(self, name: str) -> bool:
        """Whether this process may write to the file `name`."""
        return os.access(self._of(name), os.W_OK, dir_fd=self._handle)

    def entries(self) -> list[Entry]:
        """All entries, sorted by name."""
        with self._listed() as listed, os.scandir(listed) as scanned:
            found = [Entry(entry.name, _kind(entry)) for entry in scanned]
        return sorted(found)

    def close(self) -> None:
        """Closes the handle."""
        if self._handle is not None:
            os.close(self._handle)

    def rename(self, old: str, new: str) -> None:
        """Renames `old` to `new` atomically, replacing `new`."""
        if self._handle is None:
            os.replace(self._of(old), self._of(new))
        else:
            os.replace(old, new, src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def unlink(self, name: str) -> None:
        """Removes the file `name`."""
        os.unlink(self._of(name), dir_fd=self._handle)

    def check_place(self) -> None:
        """Checks that the path still refers to this directory.

        Raises:
          SwappedError: if it refers to another directory.
          OSError: if it does not exist.
        """
        with Directory(self.path) as now:
            if not os.path.samestat(now.status(), self.status()):
                raise _swapped(self.path)

    def sync(self) -> None:
        """Flushes renames to disk, where the system supports it; they are atomic in any case."""
        with contextlib.suppress(OSError), self._listed() as listed:
            if isinstance(listed, int):
                os.fsync(listed)

    @contextlib.contextmanager
    def _listed(self) -> Iterator[Union[int, str]]:
        """The argument for `os.scandir`."""
        if self._handle is None:
            self._check()
            yield self.path
            return
        descriptor = os.open(os.curdir, _LIST, dir_fd=self._handle)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _of(self, name: str) -> str:
        if self._handle is not None:
            return name
        self._check()
        return os.path.join(self.path, name)

    def _check(self) -> None:
        if os.path.realpath(self.path) != self.path:
            raise _swapped(self.path)


def _open(path: str) -> int:
    """Opens `path` name by name, so that none of them can be a link."""
    handle = os.open(os.sep, _STEP)
    for name in path.split(os.sep):
        if not name:
            continue
        outer = handle
        try:
            handle = _step(path, name, outer)
        finally:
            os.close(outer)
    return handle


def _step(path: str, name: str, outer: int) -> int:
    """Opens a name of `path` in the directory above it."""
    try:
        return os.open(name, _STEP, dir_fd=outer)
    except OSError as error:
        if error.errno in _NO_DIRECTORY:
            raise _swapped(path) from None
        raise


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _swapped(path: str) -> SwappedError:
    return SwappedError(errno.ELOOP, "its path now contains a symbolic link", path)
