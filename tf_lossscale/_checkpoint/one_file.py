"""Reads checkpoints of one file, the format of `Saver(write_version=V1)` and TensorFlow before 1.0.

The file is a table. Its first entry describes all tensors. Each further entry holds one tensor, or
one slice of a partitioned tensor. The checksums of the table cover all of it.
"""

import contextlib
from typing import Dict, Iterator, List, Tuple, Union

from tf_lossscale._checkpoint import storage, table, wire
from tf_lossscale._checkpoint.bundle import Record, encode_strings, shape_of
from tf_lossscale._checkpoint.dtypes import STRING, size_of
from tf_lossscale._checkpoint.errors import CheckpointError, DamagedError

__all__ = ["OneFile"]

_DESCRIPTION_KEY = b""
# A file up to this size is kept in memory; a larger one is read again for each tensor.
_SMALL = 2**28

# The field of a TensorProto that holds the values of each type, and the encoding of its elements.
_VARINT, _RAW = "varint", "raw"
_VALUES = {
    1: (5, _RAW),
    2: (6, _RAW),
    3: (7, _VARINT),
    4: (7, _VARINT),
    5: (7, _VARINT),
    6: (7, _VARINT),
    8: (9, _RAW),
    9: (10, _VARINT),
    10: (11, _VARINT),
    11: (7, _VARINT),
    12: (7, _VARINT),
    13: (7, _VARINT),
    14: (13, _VARINT),
    17: (7, _VARINT),
    18: (12, _RAW),
    19: (13, _VARINT),
}


class OneFile:
    """A checkpoint of one file, with the interface of `Bundle`.

    Attributes:
      prefix: its path.
      records: the description of each tensor, by key.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.records: Dict[bytes, Record] = {}
        self._small: Dict[bytes, bytes] = {}
        keep = storage.size(prefix) <= _SMALL
        described = False
        stored = set()
        for key, value in self._entries():
            with self._damage():
                if key == _DESCRIPTION_KEY:
                    described = True
                    self._describe(value)
                else:
                    name = _saved(value)[0]
                    stored.add(name)
                    if keep:
                        self._small.setdefault(name, value)
        if not described:
            raise CheckpointError(f"{prefix}: a table, but not a TensorFlow checkpoint")
        missing = sorted(set(self.records) - stored)
        if missing:
            raise CheckpointError(f"{prefix}: damaged: the value of {missing[0]!r} is missing")

    def read(self, key: bytes, limit: int) -> bytes:
        """Returns the bytes of a tensor as `Bundle` does."""
        data = b"".join(self.chunks(key))
        if len(data) > limit:
            raise CheckpointError(
                f"{self.prefix}: {key!r} has {len(data)} bytes, more than the limit of {limit}"
            )
        return data

    def chunks(self, key: bytes) -> Iterator[bytes]:
        """Yields the bytes of a tensor."""
        record = self.records[key]
        held = self._small.get(key)
        for _, value in self._entries() if held is None else [(key, held)]:
            with self._damage():
                name, extents, tensor = _saved(value)
                if name == key:
                    if any(extents):
                        raise CheckpointError(
                            f"{self.prefix}: {key!r} is stored in slices in a single-file "
                            "checkpoint; restore it with TensorFlow and save it again"
                        )
                    yield _bytes(tensor, record)
                    return

    def _entries(self) -> Iterator[Tuple[bytes, bytes]]:
        with self._damage(), storage.opened(self.prefix) as file:
            yield from table.entries(file, storage.size(self.prefix))

    @contextlib.contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except DamagedError as error:
            raise CheckpointError(
                f"{self.prefix}: damaged, or not a TensorFlow checkpoint: {error}"
            ) from error

    def _describe(self, value: bytes) -> None:
        for meta in wire.grouped(value).get(1, []):
            for each in wire.grouped(wire.message(meta)).get(1, []):
                values = wire.grouped(wire.message(each))
                name = wire.message(values.get(1, [b""])[-1])
                shape = shape_of(wire.message(values.get(2, [b""])[-1]))
                self.records[name] = Record(wire.integer(values, 3), shape)


def _saved(value: bytes) -> Tuple[bytes, List[bool], bytes]:
    """Returns the name of a stored tensor, whether each dimension is sliced, and its values."""
    values = wire.grouped(wire.message(wire.grouped(value).get(2, [b""])[-1]))
    extents = wire.grouped(wire.message(values.get(2, [b""])[-1])).get(1, [])
    return (
        wire.message(values.get(1, [b""])[-1]),
        [bool(wire.message(each)) for each in extents],
        wire.message(values.get(3, [b""])[-1]),
    )


def _bytes(tensor: bytes, record: Record) -> bytes:
    """Converts a TensorProto to the bytes that a data file would contain for it."""
    values = wire.grouped(tensor)
    count = 1
    for dimension in record.shape:
        count *= dimension
    if record.dtype == STRING:
        strings = [wire.message(each) for each in values.get(8, [])]
        if len(strings) != count:
            raise DamagedError("a tensor has more or fewer values than its shape")
        return encode_strings(strings)
    if record.dtype not in _VALUES:
        raise DamagedError("a tensor has an impossible type")
    size = size_of(record.dtype) or 0
    field, encoding = _VALUES[record.dtype]
    parts = [_part(each, encoding, size) for each in values.get(field, [])]
    data = b"".join(parts)
    if len(data) != size * count:
        raise DamagedError("a tensor has more or fewer values than its shape")
    return data


def _part(value: Union[int, bytes], encoding: str, size: int) -> bytes:
    if encoding == _RAW and isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    data = bytearray()
    at = 0
    while at < len(value):
        number, at = wire.read_varint(value, at)
        data += (number & (1 << 8 * size) - 1).to_bytes(size, "little")
    return bytes(data)
