"""CRC-32C, the checksum in TensorFlow checkpoints.

Python has no function for it. Large buffers are processed by numpy, if it is installed: the buffer
is split into lanes of equal length, all lanes advance together, and the results are combined, which
is possible because the checksum is linear.
"""

from typing import Any, List, Optional, Sequence, Tuple

__all__ = ["extend", "masked"]

_POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reversed
_MASK_DELTA = 0xA282EAD8
_LANES = 2048
_LANE_BYTES = 512
_CHUNK = _LANES * _LANE_BYTES

Combined = Tuple[Any, Any, List[List[int]]]


def _byte_table() -> List[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _byte_table()
_combined: Optional[Combined] = None


def extend(checksum: int, data: bytes) -> int:
    """Updates a checksum with more bytes.

    Args:
      checksum: the checksum of the preceding bytes; 0 if there are none.
      data: the bytes to add.
    """
    register = checksum ^ 0xFFFFFFFF
    start = 0
    if len(data) >= _CHUNK:
        numpy = _numpy()
        if numpy is not None:
            start = len(data) - len(data) % _CHUNK
            for offset in range(0, start, _CHUNK):
                register = _chunk(numpy, register, data[offset : offset + _CHUNK])
    table = _TABLE
    for byte in data[start:] if start else data:
        register = table[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """Returns a checksum in the masked form that files store: rotated, plus a constant."""
    return (((checksum >> 15) | (checksum << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _chunk(numpy: Any, register: int, data: bytes) -> int:
    global _combined
    if _combined is None:
        _combined = _tables(numpy)
    low, high, shift = _combined
    words = numpy.frombuffer(data, "<u4").reshape(_LANES, _LANE_BYTES // 4)
    lanes = numpy.zeros(_LANES, numpy.uint32)
    lanes[0] = register
    lanes = _advance(numpy, lanes, words, low, high)
    result = 0
    for lane in lanes.tolist():
        result = _shifted(result, shift) ^ lane
    return result


def _advance(numpy: Any, lanes: Any, words: Any, low: Any, high: Any) -> Any:
    for column in numpy.ascontiguousarray(words.T):
        mixed = lanes ^ column
        lanes = low[mixed & numpy.uint32(0xFFFF)] ^ high[mixed >> numpy.uint32(16)]
    return lanes


def _shifted(register: int, shift: Sequence[Sequence[int]]) -> int:
    """Returns the register after the number of zero bytes in a lane."""
    return (
        shift[0][register & 0xFF]
        ^ shift[1][(register >> 8) & 0xFF]
        ^ shift[2][(register >> 16) & 0xFF]
        ^ shift[3][register >> 24]
    )


def _tables(numpy: Any) -> Combined:
    table = numpy.array(_TABLE, numpy.uint32)

    def four_zero_bytes(registers: Any) -> Any:
        for _ in range(4):
            registers = table[registers & numpy.uint32(0xFF)] ^ (registers >> numpy.uint32(8))
        return registers

    halves = numpy.arange(2**16, dtype=numpy.uint32)
    low, high = four_zero_bytes(halves), four_zero_bytes(halves << numpy.uint32(16))
    bytes_ = numpy.arange(256, dtype=numpy.uint32)
    lanes = numpy.concatenate([bytes_ << numpy.uint32(8 * place) for place in range(4)])
    zeros = numpy.zeros((len(lanes), _LANE_BYTES // 4), numpy.uint32)
    after = _advance(numpy, lanes, zeros, low, high).reshape(4, 256)
    return low, high, after.tolist()
