"""Reads and writes sorted tables, the format of the index of a TensorFlow checkpoint.

A table is a sequence of blocks, each with a checksum, and a footer with the position of the last
block, which lists all others. Keys are stored without the prefix that they share with the previous
key.
"""

import struct
from typing import BinaryIO, Iterable, Iterator, List, Tuple

from tf_lossscale._checkpoint import crc32c
from tf_lossscale._checkpoint.errors import DamagedError
from tf_lossscale._checkpoint.wire import read_varint, varint

__all__ = ["entries", "write"]

_FOOTER = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER = 5  # kind of compression, checksum
_BLOCK_BYTES = 4096
# Limits on the memory that a damaged file can make the reader use. No real checkpoint reaches them.
_LARGEST_BLOCK = 2**31
_LARGEST_KEY = 2**16
_LARGEST_KEYS = 2**28

Entry = Tuple[bytes, bytes]


def entries(file: BinaryIO, size: int) -> Iterator[Entry]:
    """Yields the keys and values of a table, in the order of the keys.

    Args:
      file: the open file.
      size: its size in bytes.

    Raises:
      DamagedError: the file is not a complete table.
    """
    if size < _FOOTER:
        raise DamagedError("too short for a table of tensors")
    footer = _read(file, size - _FOOTER, _FOOTER)
    if struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise DamagedError("the end of the table of tensors is missing")
    at = 0
    handles = []
    for _ in range(2):
        offset, at = read_varint(footer[:-8], at)
        length, at = read_varint(footer[:-8], at)
        handles.append((offset, length))
    end = size - _FOOTER
    (metaindex, index) = handles
    if any(_block(file, metaindex, end)):
        raise DamagedError("a table of tensors has no filters")
    last, total = None, 0
    for _, value in _block(file, index, end):
        offset, at = read_varint(value, 0)
        length, at = read_varint(value, at)
        for key, content in _block(file, (offset, length), end):
            if last is not None and key <= last:
                raise DamagedError("keys are out of order")
            total += len(key)
            if total > _LARGEST_KEYS:
                raise DamagedError("the names of its tensors are too long")
            last = key
            yield key, content


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = file.read(size)
    if len(data) != size:
        raise DamagedError("the file ends too early")
    return data


def _block(file: BinaryIO, handle: Tuple[int, int], end: int) -> Iterator[Entry]:
    offset, size = handle
    if size > _LARGEST_BLOCK or offset + size + _TRAILER > end:
        raise DamagedError("a block is outside the file")
    data = _read(file, offset, size + _TRAILER)
    kind, checksum = struct.unpack("<BI", data[-_TRAILER:])
    if crc32c.masked(crc32c.extend(0, data[:-4])) != checksum:
        raise DamagedError("a checksum does not match")
    if kind != 0:
        raise DamagedError("a block is compressed, which TensorFlow does not do")
    return _parsed(data[:-_TRAILER])


def _parsed(data: bytes) -> Iterator[Entry]:
    if len(data) < 4:
        raise DamagedError("a block is too short")
    end = len(data) - 4 - 4 * struct.unpack("<I", data[-4:])[0]
    if end < 0:
        raise DamagedError("a block is too short")
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(data, at)
        added, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if shared > len(key) or shared + added > _LARGEST_KEY or added + size > end - at:
            raise DamagedError("an entry is outside its block")
        key = key[:shared] + data[at : at + added]
        at += added
        yield key, data[at : at + size]
        at += size


def write(file: BinaryIO, items: Iterable[Entry]) -> None:
    """Writes a table.

    Args:
      file: the file, open for writing, at its start.
      items: keys and values, in the order of the keys.
    """
    index: List[Entry] = []
    block: List[Entry] = []
    at = size = 0
    for key, value in items:
        block.append((key, value))
        size += len(key) + len(value)
        if size >= _BLOCK_BYTES:
            at = _finish(file, at, block, index)
            block, size = [], 0
    if block:
        at = _finish(file, at, block, index)
    handles: List[Entry] = []
    at = _finish(file, at, [], handles)
    _finish(file, at, index, handles)
    footer = b"".join(value for _, value in handles)
    file.write(footer.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC))


def _finish(file: BinaryIO, at: int, block: List[Entry], index: List[Entry]) -> int:
    """Writes a block, adds its position to the list, and returns the position of the next one."""
    data, restarts = bytearray(), []
    for key, value in block:
        restarts.append(len(data))
        data += b"\0" + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    data += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    index.append((block[-1][0] if block else b"", varint(at) + varint(len(data))))
    data += b"\0"
    file.write(data)
    file.write(struct.pack("<I", crc32c.masked(crc32c.extend(0, bytes(data)))))
    return at + len(data) + 4
