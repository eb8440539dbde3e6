"""Directories held by a handle, so that nobody can lead a path elsewhere between two steps.

A path is looked up again each time it is used, and a directory in it may have become a link by
then. A handle stays with the directory that was opened.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Optional, Union

__all__ = ["Directory", "Entry", "SwappedError"]

_HAS_HANDLES = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
# O_PATH, where there is one, asks for no right to list the directories on the way.
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
    """A link stands where there was a directory or file."""


class Entry(NamedTuple):
    """One name in a directory, and what it is: `link`, `directory`, `file` or `other`."""

    name: str
    kind: str


class Directory:
    """A directory, from its absolute path without symbolic links.

    Where the system has no such handles (Windows), each step checks that the path is still free of
    links.

    Raises:
      SwappedError: a link is in the path.
      OSError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._handle: Optional[int] = None
        if _HAS_HANDLES:
            self._handle = _open(path)
        else:
            self._check()

    def __enter__(self) -> Directory:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        """A file descriptor for `name`; never waits for a pipe, never follows a link."""
        try:
            return os.open(self._of(name), flags | _QUIET | _BINARY, mode, dir_fd=self._handle)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _swapped(os.path.join(self.path, name)) from None
            raise

    def status(self, name: str = os.curdir) -> os.stat_result:
        """That of `name` itself, where it is a link too."""
        return os.stat(self._of(name), dir_fd=self._handle, follow_symlinks=False)

    def is_writable(self, name: str) -> bool:
        """Whether we may write to the file `name`."""
        return os.access(self._of(name), os.W_OK, dir_fd=self._handle)

    def entries(self) -> list[Entry]:
        """All names in it, in their order."""
        with self._listed() as listed, os.scandir(listed) as scanned:
            return sorted(Entry(entry.name, _kind(entry)) for entry in scanned)

    def names(self) -> list[str]:
        """The same without what they are."""
        with self._listed() as listed:
            return os.listdir(listed)

    def rename(self, old: str, new: str) -> None:
        """Puts `old` in the place of `new`, in one step."""
        if self._handle is None:
            os.replace(self._of(old), self._of(new))
        else:
            os.replace(old, new, src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def unlink(self, name: str) -> None:
        """Removes the file `name`."""
        os.unlink(self._of(name), dir_fd=self._handle)

    def check_place(self) -> None:
        """Makes sure that the path still leads here.

        Raises:
          SwappedError: it leads elsewhere.
          OSError: it leads nowhere.
        """
        with Directory(self.path) as now:
            if not os.path.samestat(now.status(), self.status()):
                raise _swapped(self.path)

    def sync(self) -> None:
        """Brings renames to the disk; not every system can, and they are atomic all the same."""
        with contextlib.suppress(OSError), self._listed() as listed:
            if isinstance(listed, int):
                os.fsync(listed)

    @contextlib.contextmanager
    def _listed(self) -> Iterator[Union[int, str]]:
        """What `os.scandir` takes for this directory."""
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
    """Opens `path` one name at a time, so that none of them can be a link."""
    handle = os.open(os.sep, _STEP)
    for name in path.split(os.sep):
        if not name:
            continue
        outer = handle
        try:
            handle = os.open(name, _STEP, dir_fd=outer)
        except OSError as error:
            if error.errno in _NO_DIRECTORY:
                raise _swapped(path) from None
            raise
        finally:
            os.close(outer)
    return handle


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _swapped(path: str) -> SwappedError:
    return SwappedError(errno.ELOOP, "a link now stands in its path", path)
