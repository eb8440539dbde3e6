"""The files of a TensorFlow checkpoint: an index, and the data files that it points into.

Sizes and positions are checked before anything is read, and checksums as it is read, so that
every kind of damage is reported, and a file cannot make the reader use much memory.
"""

import struct
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from tf_lossscale._checkpoint import crc32c, storage, table, wire
from tf_lossscale._checkpoint.dtypes import STRING, VARIANT, size_of
from tf_lossscale._checkpoint.errors import CheckpointError, DamagedError

__all__ = [
    "INDEX",
    "Bundle",
    "Record",
    "data_file",
    "encode_strings",
    "shape_of",
    "slice_key",
    "split_slice_key",
    "write",
]

INDEX = ".index"
# One data file, little-endian, format version 1.
_HEADER = wire.varint_field(1, 1) + wire.bytes_field(3, wire.varint_field(1, 1))

_HEADER_KEY = b""
_LARGEST_RANK = 254
_LARGEST_DIMENSION = 2**63 - 1
_CHUNK_BYTES = 2**23


class Record(NamedTuple):
    """The index entry of a tensor, or of one slice of a partitioned tensor.

    Attributes:
      dtype: the number of its type.
      shape: its dimensions.
      shard: the number of its data file.
      offset: the position of its bytes in the data file.
      size: the number of bytes.
      checksum: the masked CRC-32C of the bytes; None if it must be computed.
      slices: for a partitioned tensor, which has no bytes itself, the extents of its slices, as
        encoded in the index.
    """

    dtype: int
    shape: Tuple[int, ...]
    shard: int = 0
    offset: int = 0
    size: int = 0
    checksum: Optional[int] = None
    slices: Tuple[bytes, ...] = ()


class Bundle:
    """A TensorFlow checkpoint of one index and its data files.

    Attributes:
      prefix: its path, without the suffixes of its files.
      records: the index entries by key; the keys of slices begin with a zero byte.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.records: Dict[bytes, Record] = {}
        self._shards = 0
        path = prefix + INDEX
        try:
            with storage.opened(path) as file:
                for key, value in table.entries(file, storage.size(path)):
                    if key == _HEADER_KEY:
                        self._shards = _shards(value)
                    else:
                        self.records[key] = _record(value)
            if not self._shards:
                raise DamagedError("its first entry, the header, is missing")
        except DamagedError as error:
            raise CheckpointError(
                f"{path}: damaged, or not the index of a checkpoint: {error}"
            ) from error
        self._check_data_files(path)

    def _check_data_files(self, path: str) -> None:
        """Checks that the data files are as long as the index needs."""
        needed: Dict[int, int] = {}
        for record in self.records.values():
            if record.slices:
                continue
            if record.shard >= self._shards:
                raise CheckpointError(f"{path}: damaged: it refers to an impossible data file")
            end = record.offset + record.size
            needed[record.shard] = max(needed.get(record.shard, 0), end)
        for shard, end in sorted(needed.items()):
            data = self._data_file(shard)
            if not storage.is_file(data):
                raise CheckpointError(f"{data}: the data file is missing")
            size = storage.size(data)
            if size < end:
                raise CheckpointError(
                    f"{data}: truncated: it has {size} bytes, but the index needs {end}"
                )

    def _data_file(self, shard: int) -> str:
        return data_file(self.prefix, shard, self._shards)

    def read(self, key: bytes, limit: int) -> bytes:
        """Returns the bytes of a tensor.

        Args:
          key: the key of the tensor.
          limit: the largest size allowed, in bytes.

        Raises:
          CheckpointError: if it is larger or damaged.
        """
        record = self.records[key]
        if record.size > limit:
            raise CheckpointError(
                f"{self.prefix}: {key!r} has {record.size} bytes, more than the limit of {limit}"
            )
        return b"".join(self.chunks(key))

    def chunks(self, key: bytes) -> Iterator[bytes]:
        """Yields the bytes of a tensor in parts, and checks their checksum after the last one."""
        record = self.records[key]
        path = self._data_file(record.shard)
        checksum = 0
        with storage.opened(path) as file:
            file.seek(record.offset)
            left = record.size
            whole = []
            while left:
                chunk = file.read(min(left, _CHUNK_BYTES))
                if not chunk:
                    raise CheckpointError(f"{path}: truncated")
                left -= len(chunk)
                if record.dtype == STRING:
                    whole.append(chunk)
                else:
                    checksum = crc32c.extend(checksum, chunk)
                    yield chunk
        if record.dtype == STRING:
            data = b"".join(whole)
            try:
                checksum = _checksum_of_strings(data, _elements(record.shape))
            except DamagedError as error:
                raise CheckpointError(f"{path}: damaged: {error}") from error
            yield data
        if record.dtype != VARIANT and crc32c.masked(checksum) != record.checksum:
            raise CheckpointError(
                f"{path}: damaged: the checksum of the tensor {_name(key)!r} does not match"
            )


def data_file(prefix: str, shard: int, shards: int) -> str:
    """Returns the path of a data file."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def split_slice_key(key: bytes) -> Tuple[bytes, bytes]:
    """Splits the key of a slice into the key of its tensor and the encoded extent of the slice.

    The key begins with a zero byte. Then comes the key of the tensor, in which 00 is written as
    00 FF and FF as FF 00, ended by 00 01.
    """
    at = key.find(b"\0\1", 1)
    if at < 0:
        raise DamagedError("the key of a slice has no end")
    name = key[1:at]
    return name.replace(b"\0\xff", b"\0").replace(b"\xff\0", b"\xff"), key[at + 2 :]


def slice_key(name: bytes, rest: bytes) -> bytes:
    """Returns the key of a slice; the inverse of `split_slice_key`."""
    escaped = b"".join({0: b"\0\xff", 255: b"\xff\0"}.get(byte, bytes([byte])) for byte in name)
    return b"\0" + escaped + b"\0\1" + rest


def shape_of(data: bytes) -> Tuple[int, ...]:
    """Parses a shape."""
    values = wire.grouped(data)
    if wire.integer(values, 3):
        raise DamagedError("a tensor has no shape")
    dimensions = values.get(2, [])
    if len(dimensions) > _LARGEST_RANK:
        raise DamagedError("a tensor has too many dimensions")
    shape = tuple(wire.signed(wire.grouped(wire.message(each)), 1) for each in dimensions)
    if any(dimension < 0 for dimension in shape) or _elements(shape) > _LARGEST_DIMENSION:
        raise DamagedError("a tensor has an impossible shape")
    return shape


def encode_strings(strings: List[bytes]) -> bytes:
    """Returns the bytes of a tensor of strings, as data files have them."""
    encoded = b"".join(wire.varint(len(each)) for each in strings)
    return (
        encoded
        + struct.pack("<I", crc32c.masked(_checksum_of_lengths(map(len, strings))))
        + b"".join(strings)
    )


def write(prefix: str, items: Iterable[Tuple[bytes, Record, Iterable[bytes]]]) -> None:
    """Writes a checkpoint of one data file. The index comes last.

    Args:
      prefix: its path, without the suffixes of its files.
      items: the key, the record and the bytes (in parts) of each tensor; a partitioned tensor has
        no bytes, and its slices are separate items.
    """
    records: Dict[bytes, Record] = {}
    with open(data_file(prefix, 0, 1), "wb") as data:
        for key, record, chunks in items:
            if record.slices:
                records[key] = record
                continue
            offset, checksum = data.tell(), 0
            for chunk in chunks:
                data.write(chunk)
                if record.checksum is None and record.dtype == STRING:
                    checksum = _checksum_of_strings(chunk, _elements(record.shape))
                elif record.checksum is None:
                    checksum = crc32c.extend(checksum, chunk)
            records[key] = record._replace(
                shard=0,
                offset=offset,
                size=data.tell() - offset,
                checksum=crc32c.masked(checksum) if record.checksum is None else record.checksum,
            )
    with open(prefix + INDEX, "wb") as index:
        table.write(
            index,
            [(_HEADER_KEY, _HEADER)]
            + [(key, _encoded(record)) for key, record in sorted(records.items())],
        )


def _shards(value: bytes) -> int:
    header = wire.grouped(value)
    shards = wire.integer(header, 1)
    if not 0 < shards <= 99999:
        raise DamagedError("its number of data files is impossible")
    if wire.integer(header, 2):
        raise DamagedError("it was written on a big-endian machine, which is not supported")
    return shards


def _record(value: bytes) -> Record:
    values = wire.grouped(value)
    record = Record(
        dtype=wire.integer(values, 1),
        shape=shape_of(wire.message(values.get(2, [b""])[-1])),
        shard=wire.signed(values, 3),
        offset=wire.signed(values, 4),
        size=wire.signed(values, 5),
        checksum=wire.integer(values, 6),
        slices=tuple(wire.message(each) for each in values.get(7, [])),
    )
    if min(record.shard, record.offset, record.size) < 0:
        raise DamagedError("a tensor is outside the data files")
    item = size_of(record.dtype)
    if item is not None and not record.slices and record.size != item * _elements(record.shape):
        raise DamagedError("the size of a tensor does not match its shape")
    return record


def _elements(shape: Tuple[int, ...]) -> int:
    count = 1
    for dimension in shape:
        count *= dimension
    return count


def _checksum_of_strings(data: bytes, count: int) -> int:
    """The checksum of a tensor of strings, which are stored after all their lengths.

    The lengths have a masked checksum of their own after them. Both checksums treat a length as
    four bytes, or as eight if it needs them.
    """
    at = 0
    lengths = []
    for _ in range(count):
        length, at = wire.read_varint(data, at)
        lengths.append(length)
    checksum = _checksum_of_lengths(lengths)
    if data[at : at + 4] != struct.pack("<I", crc32c.masked(checksum)):
        raise DamagedError("the checksum of the lengths of strings does not match")
    if len(data) != at + 4 + sum(lengths):
        raise DamagedError("strings are longer or shorter than their tensor")
    return crc32c.extend(checksum, data[at:])


def _checksum_of_lengths(lengths: Iterable[int]) -> int:
    packed = (struct.pack("<I" if each < 2**32 else "<Q", each) for each in lengths)
    return crc32c.extend(0, b"".join(packed))


def _name(key: bytes) -> str:
    return key.decode("utf-8", "backslashreplace")


def _encoded(record: Record) -> bytes:
    """Returns the value in the index that stands for a record."""
    shape = b"".join(
        wire.bytes_field(2, wire.varint_field(1, dimension)) for dimension in record.shape
    )
    value = wire.varint_field(1, record.dtype) + wire.bytes_field(2, shape)
    if record.slices:
        return value + b"".join(wire.bytes_field(7, extent) for extent in record.slices)
    value += wire.varint_field(3, record.shard) + wire.varint_field(4, record.offset)
    return value + wire.varint_field(5, record.size) + wire.fixed32_field(6, record.checksum or 0)
