"""Parses JSON with the position of each value, so that edits can keep all other bytes."""

from __future__ import annotations

import json
import json.decoder
import re
from typing import NamedTuple, Union

__all__ = ["MOST_LEVELS", "Array", "NestingError", "Object", "Scalar", "Value", "spans"]

MOST_LEVELS = 200
"""The limit for nested arrays and objects. Notebooks have at most a few dozen levels."""

_SPACE = re.compile(r"[ \t\r\n]*")


class NestingError(ValueError):
    """The text is nested more than `MOST_LEVELS` deep, at the index `at`."""

    def __init__(self, at: int) -> None:
        super().__init__(f"nested more than {MOST_LEVELS} deep")
        self.at = at


class Scalar(NamedTuple):
    """A string, number, true, false or null, and its position."""

    value: object
    start: int
    end: int


class Array(NamedTuple):
    """The elements of an array, and its position."""

    items: list[Value]
    start: int
    end: int


class Object(NamedTuple):
    """The members of an object, and its position."""

    members: dict[str, Value]
    start: int
    end: int

    def text(self, name: str) -> str:
        """The string member `name`; empty if there is none."""
        member = self.members.get(name)
        value = member.value if isinstance(member, Scalar) else ""
        return value if isinstance(value, str) else ""

    def object(self, name: str) -> Object:
        """The object member `name`; an empty object if there is none."""
        member = self.members.get(name)
        return member if isinstance(member, Object) else Object({}, 0, 0)

    def array(self, name: str) -> list[Value]:
        """The elements of the array member `name`; an empty list if there is none."""
        member = self.members.get(name)
        return member.items if isinstance(member, Array) else []


Value = Union[Scalar, Array, Object]

_MOST_DIGITS = 1000


def _whole_number(digits: str) -> object:
    """The number, or its digits if there are so many that Python is slow or refuses."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


_DECODER = json.JSONDecoder(strict=False, parse_int=_whole_number)


def spans(text: str) -> Value:
    """Parses a JSON text into values with positions.

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


def _value(text: str, at: int, depth: int) -> Value:
    if text.startswith(("{", "["), at):
        if depth == MOST_LEVELS:
            raise NestingError(at)
        read = _object if text[at] == "{" else _array
        return read(text, at, depth + 1)
    try:
        value, end = _DECODER.raw_decode(text, at)
    except StopIteration:
        raise json.JSONDecodeError("Expecting value", text, at) from None
    return Scalar(value, at, end)


def _array(text: str, start: int, depth: int) -> Array:
    items: list[Value] = []
    at = _skip(text, start + 1)
    while not text.startswith("]", at):
        if items:
            at = _expect(text, at, ",")
        items.append(_value(text, at, depth))
        at = _skip(text, items[-1].end)
    return Array(items, start, at + 1)


def _object(text: str, start: int, depth: int) -> Object:
    members: dict[str, Value] = {}
    at = _skip(text, start + 1)
    while not text.startswith("}", at):
        if members:
            at = _expect(text, at, ",")
        key = _value(text, at, depth)
        if not isinstance(key, Scalar) or not isinstance(key.value, str):
            raise json.JSONDecodeError("Expecting property name", text, at)
        at = _expect(text, _skip(text, key.end), ":")
        members[key.value] = _value(text, at, depth)
        at = _skip(text, members[key.value].end)
    return Object(members, start, at + 1)


def _expect(text: str, at: int, character: str) -> int:
    if not text.startswith(character, at):
        raise json.JSONDecodeError(f"Expecting {character!r}", text, at)
    return _skip(text, at + 1)
