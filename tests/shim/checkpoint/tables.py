"""Reads and writes small indexes of checkpoints, also such as TensorFlow never writes.

An index, like a single-file checkpoint, is a table: one block of keys and values here, a block that
lists the first one, and a footer. Each block has a checksum.
"""

import struct

FOOTER = 48
_MAGIC = 0xDB4775248B80FB57


def varint(value):
    """Encodes a number as protocol buffers do."""
    value &= 2**64 - 1
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def message(*fields):
    """Encodes pairs of a number and a value: an int, or the bytes of a message."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, bytes):
            encoded += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            encoded += varint(number << 3) + varint(value)
    return encoded


def checksum(data):
    """Returns the masked CRC-32C of some bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read(path):
    """Returns the keys and values of a table of one block."""
    with open(path, "rb") as file:
        data = file.read()
    handles = [_varint_at(data, len(data) - FOOTER)]
    for _ in range(3):
        handles.append(_varint_at(data, handles[-1][1]))
    ((_, value),) = _entries(data, handles[2][0], handles[3][0])
    offset, at = _varint_at(value, 0)
    return list(_entries(data, offset, _varint_at(value, at)[0]))


def write(path, entries):
    """Writes a table of one block."""
    with open(path, "wb") as file:
        block = _block(file, entries)
        empty = _block(file, [])
        index = _block(file, [(entries[-1][0], block)])
        file.write((empty + index).ljust(FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC))


def _varint_at(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _entries(data, offset, size):
    block = data[offset : offset + size]
    at, key = 0, b""
    while at < size - 4 - 4 * struct.unpack("<I", block[-4:])[0]:
        shared, at = _varint_at(block, at)
        added, at = _varint_at(block, at)
        length, at = _varint_at(block, at)
        key = key[:shared] + block[at : at + added]
        at += added + length
        yield key, block[at - length : at]


def _block(file, entries):
    """Writes a block and returns its position."""
    at, data = file.tell(), b""
    restarts = []
    for key, value in entries:
        restarts.append(len(data))
        data += b"\0" + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    data += struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    file.write(data + b"\0" + struct.pack("<I", checksum(data + b"\0")))
    return varint(at) + varint(len(data))
