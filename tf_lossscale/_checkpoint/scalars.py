"""Converts single numbers from and to their bytes in checkpoints."""

import struct
from typing import Union

from tf_lossscale._checkpoint.dtypes import INTEGERS, number_of, size_of

__all__ = ["decode", "encode", "is_number"]

_FLOATS = {"float16": "<e", "float32": "<f", "float64": "<d"}


def is_number(dtype: str) -> bool:
    """Whether `decode` supports a type."""
    return dtype in _FLOATS or dtype in INTEGERS or dtype == "bfloat16"


def decode(data: bytes, dtype: str) -> Union[int, float]:
    """Returns the number that the bytes encode."""
    if dtype in INTEGERS:
        return int.from_bytes(data, "little", signed=dtype.startswith("int"))
    if dtype == "bfloat16":  # the upper half of a float32
        return float(struct.unpack("<f", b"\0\0" + data)[0])
    return float(struct.unpack(_FLOATS[dtype], data)[0])


def encode(value: int, dtype: str) -> bytes:
    """Returns the bytes of an integer."""
    size = size_of(number_of(dtype)) or 0
    return value.to_bytes(size, "little", signed=dtype.startswith("int"))
