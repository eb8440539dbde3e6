"""Report files: each is written under a temporary name and renamed when it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Optional, TextIO

from ..files.directories import Directory
from ..files.leftovers import claim, new_name, remove_leftovers

__all__ = ["replacing"]

_BY_HANDLE = {os.open, os.unlink, os.stat, os.rename} <= os.supports_dir_fd
_BINARY = getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """Opens a text stream that replaces the file `path` if the block ends without an exception.

    Symbolic links are not followed: a link at `path` itself is replaced, and a link in place of a
    directory below the working directory is an error. A character device such as /dev/null is
    written to.

    Raises:
      OSError: if the file cannot be created, or is neither a regular file nor a link to one.
    """
    directory, name = os.path.split(os.path.abspath(path))
    with _handle(directory) as handle:
        where = name if handle is not None else os.path.join(directory, name)
        if _is_device(where, handle):
            descriptor = os.open(where, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), dir_fd=handle)
            with _text(descriptor) as file:
                yield file
            return
        with contextlib.suppress(OSError), Directory(os.path.realpath(directory)) as opened:
            remove_leftovers(opened)
        temporary = new_name()
        if handle is None:
            temporary = os.path.join(directory, temporary)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
        descriptor = os.open(temporary, flags, 0o666, dir_fd=handle)
        try:
            with _text(descriptor) as file:
                claim(descriptor)
                yield file
            os.replace(temporary, where, src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=handle)
            raise


def _text(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", errors="surrogateescape")


def _is_device(where: str, handle: Optional[int]) -> bool:
    try:
        status = os.lstat(where, dir_fd=handle)
        if stat.S_ISCHR(status.st_mode):
            return True
        link = stat.S_ISLNK(status.st_mode)
        target = os.stat(where, dir_fd=handle) if link else status
    except OSError:  # it does not exist, or is a broken link
        return False
    if link and not stat.S_ISREG(target.st_mode):
        raise OSError(0, "Links to something other than a regular file", where)
    if not (stat.S_ISREG(target.st_mode) or stat.S_ISDIR(target.st_mode)):
        raise OSError(0, "Is not a regular file", where)
    return False


@contextlib.contextmanager
def _handle(directory: str) -> Iterator[Optional[int]]:
    """Opens the directory; yields None if the system has no directory handles.

    Links below the working directory are not followed, because they may come from the repository.
    Paths to directories outside come from the user.
    """
    if not _BY_HANDLE:
        yield None
        return
    here = os.getcwd()
    inside = os.path.commonpath([here, directory]) == here
    flags = os.O_RDONLY | os.O_DIRECTORY
    handle = os.open(here if inside else directory, flags)
    try:
        parts = os.path.relpath(directory, here).split(os.sep) if inside else []
        for part in parts:
            if stat.S_ISLNK(os.lstat(part, dir_fd=handle).st_mode):
                raise OSError(errno.ELOOP, f"symbolic link {part} is not followed")
            below = os.open(part, flags | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)
