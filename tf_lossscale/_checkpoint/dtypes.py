"""The numbers of TensorFlow's dtypes in checkpoints."""

from typing import Dict, Optional

__all__ = ["INTEGERS", "STRING", "VARIANT", "name_of", "number_of", "size_of"]

STRING = 7
VARIANT = 21

# name and size in bytes by number
_TYPES = {
    1: ("float32", 4),
    2: ("float64", 8),
    3: ("int32", 4),
    4: ("uint8", 1),
    5: ("int16", 2),
    6: ("int8", 1),
    STRING: ("string", None),
    8: ("complex64", 8),
    9: ("int64", 8),
    10: ("bool", 1),
    11: ("qint8", 1),
    12: ("quint8", 1),
    13: ("qint32", 4),
    14: ("bfloat16", 2),
    15: ("qint16", 2),
    16: ("quint16", 2),
    17: ("uint16", 2),
    18: ("complex128", 16),
    19: ("float16", 2),
    VARIANT: ("variant", None),
    22: ("uint32", 4),
    23: ("uint64", 8),
}
_NUMBERS: Dict[str, int] = {name: number for number, (name, _) in _TYPES.items()}

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def name_of(number: int) -> str:
    """Returns the name of a type; a placeholder for types that later versions may add."""
    return str(_TYPES[number][0]) if number in _TYPES else f"type-{number}"


def number_of(name: str) -> int:
    """Returns the number of a type that this module knows."""
    return _NUMBERS[name]


def size_of(number: int) -> Optional[int]:
    """Returns the size of one element in bytes; None if it varies or is unknown."""
    return _TYPES[number][1] if number in _TYPES else None
