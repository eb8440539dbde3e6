"""Where the values of a JSON text stand, for edits that leave every other byte alone."""

from __future__ import annotations

import json
import json.decoder
import re
from typing import NamedTuple, Union

__all__ = ["MOST_LEVELS", "Array", "NestingError", "Object", "Scalar", "Value", "spans"]

MOST_LEVELS = 200
"""Of arrays and objects in each other. A notebook has some dozens, with its richest outputs."""

_SPACE = re.compile(r"[ \t\r\n]*")


class NestingError(ValueError):
    """The text is nested more than `MOST_LEVELS` deep; `at` says where."""

    def __init__(self, at: int) -> None:
        super().__init__(f"nested more than {MOST_LEVELS} deep")
        self.at = at


class Scalar(NamedTuple):
    """A string, number, true, false or null, and where it stands."""

    value: object
    start: int
    end: int


class Array(NamedTuple):
    """The elements, and where it stands."""

    items: list[Value]
    start: int
    end: int


class Object(NamedTuple):
    """The members, and where it stands."""

    members: dict[str, Value]
    start: int
    end: int

    def text(self, name: str) -> str:
        """The string member `name`; empty where there is none."""
        member = self.members.get(name)
        value = member.value if isinstance(member, Scalar) else ""
        return value if isinstance(value, str) else ""

    def object(self, name: str) -> Object:
        """The object member `name`; an empty one where there is none."""
        member = self.members.get(name)
        return member if isinstance(member, Object) else Object({}, 0, 0)

    def array(self, name: str) -> list[Value]:
        """The elements of the array member `name`; none where there is none."""
        member = self.members.get(name)
        return member.items if isinstance(member, Array) else []


Value = Union[Scalar, Array, Object]

_MOST_DIGITS = 1000


def _whole_number(digits: str) -> object:
    """The number, or the text of one so long that Python takes quadratic time, or refuses."""
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


_DECODER = json.JSONDecoder(strict=False, parse_int=_whole_number)


def spans(text: str) -> Value:
    """The values of a JSON text.

    Raises:
      json.JSONDecodeError: it is none.
      NestingError: it is nested too deeply.
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
