"""Reads members of an untrusted zip archive; never unpacks one under its own name."""

import collections
import contextlib
import tempfile
import zipfile
from typing import IO, Any, Iterator, List

from tf_lossscale._checkpoint.errors import CheckpointError

__all__ = ["Archive"]

_ENCRYPTED = 0x1
# Weights hardly compress, and Keras does not compress them. Limits for an unpacked member: this
# factor, or this size if that is more.
_LARGEST_RATIO = 100
_FREE_BYTES = 2**26
_CHUNK_BYTES = 2**20


class Archive:
    """An open zip archive.

    Attributes:
      names: the names of its members.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise self._damaged(f"the zip archive is damaged: {error}") from error
        self.names: List[str] = self._zip.namelist()
        counts = collections.Counter(self.names)
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            raise self._damaged(f"it has two members named {twice[0]!r}")

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._zip.close()

    def read(self, name: str, limit: int) -> bytes:
        """Returns the bytes of a member.

        Args:
          name: the name of the member.
          limit: the largest size allowed, in bytes.
        """
        return b"".join(self._chunks(name, limit))

    @contextlib.contextmanager
    def unpacked(self, name: str) -> Iterator[IO[bytes]]:
        """Opens a copy of a member, because HDF5 needs random access, which is slow in archives."""
        info = self._info(name)
        limit = max(_FREE_BYTES, _LARGEST_RATIO * info.compress_size)
        with tempfile.TemporaryFile() as copy:
            for chunk in self._chunks(name, limit):
                copy.write(chunk)
            copy.seek(0)
            yield copy

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            info = self._zip.getinfo(name)
        except KeyError as error:
            raise self._damaged(f"it has no member {name}") from error
        if info.flag_bits & _ENCRYPTED:
            raise self._damaged(f"its member {name} is encrypted")
        return info

    def _chunks(self, name: str, limit: int) -> Iterator[bytes]:
        info = self._info(name)
        size = 0
        if info.file_size <= limit:
            with self._zip.open(info) as member:
                while True:
                    chunk = member.read(_CHUNK_BYTES)
                    if not chunk:
                        break
                    size += len(chunk)
                    if size > limit:
                        break
                    yield chunk
        if max(size, info.file_size) > limit:
            raise self._damaged(f"its member {name} unpacks to more than {limit} bytes")
        if size != info.file_size:
            raise self._damaged(f"its member {name} ends too early")

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._path}: not a valid .keras file: {what}")
