"""Reads one ignore file, within limits."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

__all__ = ["LARGEST", "lines", "read"]

LARGEST = 1 << 20
"""Bytes that the ignore files from the top of the work tree down to one directory have together."""


def read(path: str, most: int = LARGEST, follow: bool = False) -> bytes:
    """The bytes of a regular file; whoever wrote the repository chose what stands at `path`.

    Args:
      path: of the file.
      most: bytes that it may have.
      follow: follow a link, as git does for the file of the user.

    Raises:
      OSError: it is a link, pipe or device, has more than `most` bytes, or cannot be read.
    """
    # Opening must not wait for the other end of a pipe, and must not follow a link out.
    flags = os.O_RDONLY
    for name in ("O_NONBLOCK", "O_NOCTTY", "O_BINARY", *(() if follow else ("O_NOFOLLOW",))):
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
        much = f"it has more than {LARGEST:,} bytes"
        if not follow:
            much = f"with those of the directories above it, {much}"
        raise OSError(errno.EFBIG, much, path)
    return data


def lines(data: bytes) -> Iterator[bytes]:
    """The lines as git cuts them: without a byte order mark, a CR at the end, all behind a NUL."""
    for line in (data[3:] if data.startswith(b"\xef\xbb\xbf") else data).split(b"\n"):
        yield (line[:-1] if line.endswith(b"\r") else line).partition(b"\0")[0]
