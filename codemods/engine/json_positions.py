"""JSON texts whose strings and arrays know their positions, so that only these are replaced.

The public decoder of Python tells no positions, and a C function parses the text. The scanner that
is written in Python calls functions of the decoder, here ours, with each position. It and those
functions are not documented. They are the same in Python 3.9 to 3.13, and the tests compare each
value and position with the public decoder. This is the only module that uses them.
"""

from __future__ import annotations

import json

# typeshed leaves them out.
from json.decoder import JSONArray, JSONObject, scanstring  # type: ignore[attr-defined]
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, Callable

__all__ = ["Array", "NestingError", "String", "parsed_json"]

_MOST_LEVELS = 200
"""The limit for nested arrays and objects. Notebooks have at most a few dozen levels."""


class NestingError(ValueError):
    """The text is nested more than `_MOST_LEVELS` deep, at the index `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(f"nested more than {_MOST_LEVELS} deep")
        self.at = at


class String(str):
    """A string, which is the text from `start` to `end`, with the quotes."""

    start: int
    end: int


class Array(list[Any]):
    """An array, which is the text from `start` to `end`, with the brackets."""

    start: int
    end: int


class _Decoder(json.JSONDecoder):
    """A decoder with Python's scanner that is written in Python, which calls the functions here."""

    def __init__(self) -> None:
        # Python is slow to convert many digits to an integer, or refuses.
        super().__init__(strict=False, parse_int=float)
        self._depth = 0
        self.parse_array = self._array
        self.parse_object = self._object
        self.parse_string = self._string
        self.scan_once = py_make_scanner(self)

    def _array(self, at: tuple[str, int], *more: Any) -> tuple[Array, int]:
        value, end = self._nested(JSONArray, at, *more)
        array = Array(value)
        array.start, array.end = at[1] - 1, end
        return array, end

    def _object(self, at: tuple[str, int], *more: Any) -> Any:
        return self._nested(JSONObject, at, *more)

    def _string(self, text: str, at: int, strict: bool) -> tuple[String, int]:
        value, end = scanstring(text, at, strict)
        string = String(value)
        string.start, string.end = at - 1, end
        return string, end

    def _nested(self, parse: Callable[..., Any], at: tuple[str, int], *more: Any) -> Any:
        if self._depth == _MOST_LEVELS:
            raise NestingError(at[1] - 1)
        self._depth += 1
        found = parse(at, *more)
        self._depth -= 1
        return found


def parsed_json(text: str) -> Any:
    """Parses a JSON text, of which every `Array` and `String` has its position.

    Raises:
      json.JSONDecodeError: if the text is not JSON.
      NestingError: if it is nested too deeply.
    """
    return _Decoder().decode(text)
