"""Reads one ignore file, within limits."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

__all__ = ["LARGEST", "lines", "read"]

LARGEST = 1 << 20
"""Limit for the total size of the ignore files that apply to a directory, in bytes."""


def read(path: str, most: int = LARGEST, follow: bool = False) -> bytes:
    """Reads a regular file at a path that the repository may control.

    Args:
      path: the path of the file.
      most: the largest size allowed, in bytes.
      follow: whether to follow a link, as git does for the user's own ignore file.

    Raises:
      OSError: if it is a link, pipe or device, is larger than `most`, or cannot be read.
    """
    # Opening must not wait for the other end of a pipe, and must not follow a link.
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
    """Splits lines like git: without byte order mark, trailing CR, and anything after a NUL."""
    for line in (data[3:] if data.startswith(b"\xef\xbb\xbf") else data).split(b"\n"):
        yield (line[:-1] if line.endswith(b"\r") else line).partition(b"\0")[0]
