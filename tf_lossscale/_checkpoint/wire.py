"""The wire format of protocol buffers: the fields of a message, without its schema.

TensorFlow's parsers are not used: a damaged or malicious file never reaches native code.
"""

from typing import Dict, Iterator, List, Tuple, Union

from tf_lossscale._checkpoint.errors import DamagedError

__all__ = [
    "Field",
    "Values",
    "any_field",
    "bytes_field",
    "fields",
    "fixed32_field",
    "grouped",
    "integer",
    "message",
    "read_varint",
    "signed",
    "varint",
    "varint_field",
]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
Field = Tuple[int, int, Union[int, bytes]]
Values = Dict[int, List[Union[int, bytes]]]


def read_varint(data: bytes, at: int) -> Tuple[int, int]:
    """Returns the varint at a position, and the position after it."""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise DamagedError("a number ends too early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**64:
                raise DamagedError("a number is too large")
            return value, at
        shift += 7
    raise DamagedError("a number is too long")


def fields(data: bytes) -> Iterator[Field]:
    """Yields number, wire type and value of each field: an int, or the bytes of a length field."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        value: Union[int, bytes]
        if number == 0:
            raise DamagedError("a field has no number")
        if kind == VARINT:
            value, at = read_varint(data, at)
        elif kind in (FIXED64, FIXED32, LENGTH):
            size = {FIXED64: 8, FIXED32: 4}.get(kind, 0)
            if kind == LENGTH:
                size, at = read_varint(data, at)
            if size > len(data) - at:
                raise DamagedError("a field ends too early")
            raw = data[at : at + size]
            value = raw if kind == LENGTH else int.from_bytes(raw, "little")
            at += size
        else:
            raise DamagedError("a field has an unknown type")
        yield number, kind, value


def grouped(data: bytes) -> Values:
    """Returns the values of a message, by the number of the field."""
    values: Values = {}
    for number, _, value in fields(data):
        values.setdefault(number, []).append(value)
    return values


def integer(values: Values, number: int) -> int:
    """Returns the value of an unsigned integer field; 0 if it is missing."""
    value = values.get(number, [0])[-1]
    if not isinstance(value, int):
        raise DamagedError("a field that should be a number is not one")
    return value


def signed(values: Values, number: int) -> int:
    """Returns the value of a signed integer field (two's complement); 0 if it is missing."""
    value = integer(values, number)
    return value - 2**64 if value >= 2**63 else value


def message(value: Union[int, bytes]) -> bytes:
    """Returns the bytes of a message or string field."""
    if isinstance(value, int):
        raise DamagedError("a field that should be a message is a number")
    return value


def varint(value: int) -> bytes:
    """Encodes a number as a varint."""
    value &= 2**64 - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def varint_field(number: int, value: int) -> bytes:
    """Encodes an integer field; nothing for 0, the default."""
    return varint(number << 3 | VARINT) + varint(value) if value else b""


def fixed32_field(number: int, value: int) -> bytes:
    """Encodes a field of four bytes."""
    return varint(number << 3 | FIXED32) + value.to_bytes(4, "little")


def bytes_field(number: int, value: bytes) -> bytes:
    """Encodes a message or string field."""
    return varint(number << 3 | LENGTH) + varint(len(value)) + value


def any_field(number: int, kind: int, value: Union[int, bytes]) -> bytes:
    """Encodes a field in the form that `fields` yields."""
    tag = varint(number << 3 | kind)
    if isinstance(value, bytes):
        return tag + varint(len(value)) + value
    if kind == VARINT:
        return tag + varint(value)
    return tag + value.to_bytes(8 if kind == FIXED64 else 4, "little")
