"""Parses JSON with the position of each value, so that edits can keep all other bytes."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

__all__ = ["MOST_LEVELS", "NestingError", "Span", "spans"]

MOST_LEVELS = 200
"""The limit for nested arrays and objects. Notebooks have at most a few dozen levels."""

_MOST_DIGITS = 1000
_SPACE = re.compile(r"[ \t\r\n]*")


class NestingError(ValueError):
    """The text is nested more than `MOST_LEVELS` deep, at the index `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(f"nested more than {MOST_LEVELS} deep")
        self.at = at


class Span(NamedTuple):
    """A value and its position; an object is a dict of spans, an array a list of spans."""

    value: Any
    start: int
    end: int

    def member(self, name: str) -> Span:
        """The member `name` of an object; a span of None if there is none."""
        found: Span = self.value.get(name, _NONE) if isinstance(self.value, dict) else _NONE
        return found

    @property
    def items(self) -> list[Span]:
        """The elements of an array; an empty list if it is none."""
        return self.value if isinstance(self.value, list) else []

    @property
    def text(self) -> str:
        """The string; empty if it is none."""
        return self.value if isinstance(self.value, str) else ""


_NONE = Span(None, 0, 0)


def _whole_number(digits: str) -> object:
    """The number, or its digits if there are so many that Python is slow or refuses."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


_DECODER = json.JSONDecoder(strict=False, parse_int=_whole_number)


def spans(text: str) -> Span:
    """Parses a JSON text.

    Raises:
      json.JSONDecodeError: if the text is not JSON.
      NestingError: if it is nested too deeply.
    """
    value = _value(text, _skip(text, 0), 0)
    end = _skip(text, value.end)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def _value(text: str, start: int, depth: int) -> Span:
    opening = text[start : start + 1]
    if opening not in ("{", "["):
        try:
            value, end = _DECODER.raw_decode(text, start)
        except StopIteration:
            raise json.JSONDecodeError("Expecting value", text, start) from None
        return Span(value, start, end)
    if depth == MOST_LEVELS:
        raise NestingError(start)
    is_object = opening == "{"
    closing = "}" if is_object else "]"
    members: dict[str, Span] = {}
    elements: list[Span] = []
    at = _skip(text, start + 1)
    while not text.startswith(closing, at):
        if members or elements:
            at = _expect(text, at, ",")
        key = ""
        if is_object:
            name = _value(text, at, depth + 1)
            if not isinstance(name.value, str):
                raise json.JSONDecodeError("Expecting property name", text, at)
            key = name.value
            at = _expect(text, _skip(text, name.end), ":")
        value = _value(text, at, depth + 1)
        if is_object:
            members[key] = value
        else:
            elements.append(value)
        at = _skip(text, value.end)
    return Span(members if is_object else elements, start, at + 1)


def _expect(text: str, at: int, character: str) -> int:
    if not text.startswith(character, at):
        raise json.JSONDecodeError(f"Expecting {character!r}", text, at)
    return _skip(text, at + 1)
