"""Report files: each is written under a temporary name and renamed when it is complete."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from typing import TextIO

from ..files import atomic_write
from ..files.directories import Directory, SwappedError

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str) -> Iterator[TextIO]:
    """Opens a text stream that replaces the file `path` if the block ends without an exception.

    Symbolic links are not followed: a link at `path` itself is replaced, and a link in place of a
    directory below the working directory is an error. A character device such as /dev/null is
    written to.

    Raises:
      OSError: if the file cannot be created, or is neither a regular file nor a link to one.
    """
    folder, name = os.path.split(os.path.abspath(path))
    with _directory(folder) as directory, contextlib.ExitStack() as stack:
        if _is_device(folder, name):
            file = stack.enter_context(open(directory.open(name, os.O_WRONLY), "wb"))
        else:
            file = stack.enter_context(atomic_write.replacing(directory, name, 0o666))
        text = io.TextIOWrapper(file, "utf-8", "surrogateescape")
        yield text
        text.flush()


def _directory(folder: str) -> Directory:
    """Opens the directory.

    Links below the working directory are not followed, because they may come from the repository.
    Paths to directories outside come from the user.
    """
    here = os.getcwd()
    if os.path.commonpath([here, folder]) != here:
        return Directory(os.path.realpath(folder))
    try:
        below = os.path.relpath(folder, here)
        return Directory(os.path.normpath(os.path.join(os.path.realpath(here), below)))
    except SwappedError:
        why = "symbolic links below the working directory are not followed"
        raise OSError(errno.ELOOP, why, folder) from None


def _is_device(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    try:
        status = os.lstat(path)
        target = os.stat(path)
    except OSError:  # it does not exist, or is a broken link
        return False
    if stat.S_ISCHR(status.st_mode):
        return True
    if stat.S_ISLNK(status.st_mode) and not stat.S_ISREG(target.st_mode):
        raise OSError(0, "Links to something other than a regular file", path)
    if not (stat.S_ISREG(target.st_mode) or stat.S_ISDIR(target.st_mode)):
        raise OSError(0, "Is not a regular file", path)
    return False
