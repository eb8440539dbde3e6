"""Which paths git ignores, by the rules of its ignore files.

Patterns are matched against one entry at a time, on the way down the tree: what is below an ignored
directory is never asked for, as git never looks there either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import Callable, NamedTuple, Optional

from .patterns import Patterns

__all__ = ["LARGEST", "IgnoreFiles", "Warn"]

LARGEST = 1 << 20
"""Bytes that the ignore files from the top of the work tree down to one directory have together."""

Warn = Callable[[str, str], None]
"""Takes the path of an ignore file that cannot be used, and why."""


class IgnoreFiles(NamedTuple):
    """The ignore files that concern one directory: its own and those above it.

    Attributes:
      base: the directory of the innermost file.
      patterns: its patterns.
      above: what the directories above say.
      size: bytes of all these files.
    """

    base: str
    patterns: Optional[Patterns] = None
    above: Optional[IgnoreFiles] = None
    size: int = 0

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Whether the entry `path` itself is ignored; the last pattern that matches decides."""
        level: Optional[IgnoreFiles] = self
        while level is not None:
            if level.patterns is not None:
                relative = path[len(level.base.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
                ignored = level.patterns.match(os.fsencode(relative), is_directory)
                if ignored is not None:
                    return ignored
            level = level.above
        return False

    def below(self, directory: str, warn: Warn) -> IgnoreFiles:
        """What concerns the entries of `directory`, which lies below this one."""
        return self._with(directory, os.path.join(directory, ".gitignore"), warn)

    def _with(self, directory: str, path: str, warn: Warn) -> IgnoreFiles:
        try:
            data = _read(path, LARGEST - self.size)
        except (FileNotFoundError, NotADirectoryError):
            return self
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # so deep that git cannot read it either
                return self
            warn(path, f"is ignored: {(error.strerror or str(error)).lower()}")
            return self
        patterns = Patterns(_lines(data))
        return IgnoreFiles(directory, patterns, self, self.size + len(data)) if patterns else self

    @classmethod
    def around(cls, directory: str, warn: Warn) -> IgnoreFiles:
        """What concerns the entries of `directory`, from the top of its git work tree down.

        Where that says that `directory` is itself ignored, the files above it do not count: someone
        who names it wants to see into it.
        """
        top = _work_tree(directory)
        files = cls(top)._with(top, os.path.join(top, ".git", "info", "exclude"), warn)
        for between in _steps(top, directory):
            if between != top and files.ignores(between, is_directory=True):
                files = cls(directory)
                break
            files = files.below(between, warn)
        else:
            return files
        return files.below(directory, warn)


def _work_tree(directory: str) -> str:
    above = directory
    while True:
        if os.path.exists(os.path.join(above, ".git")):
            return above
        parent = os.path.dirname(above)
        if parent == above:
            return directory
        above = parent


def _steps(top: str, directory: str) -> Iterator[str]:
    yield top
    relative = os.path.relpath(directory, top)
    if relative != ".":
        for part in relative.split(os.sep):
            top = os.path.join(top, part)
            yield top


def _read(path: str, most: int) -> bytes:
    """The bytes of a regular file; whoever wrote the repository chose what stands at `path`.

    Raises:
      OSError: it is a link, pipe or device, has more than `most` bytes, or cannot be read.
    """
    # Opening must not wait for the other end of a pipe, and must not follow a link out.
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise OSError(errno.EINVAL, "it is not a regular file", path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    with open(descriptor, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        much = f"with those of the directories above it, it has more than {LARGEST:,} bytes"
        raise OSError(errno.EFBIG, much, path)
    return data


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines as git cuts them: without a byte order mark, a CR at the end, all behind a NUL."""
    for line in (data[3:] if data.startswith(b"\xef\xbb\xbf") else data).split(b"\n"):
        yield (line[:-1] if line.endswith(b"\r") else line).partition(b"\0")[0]
