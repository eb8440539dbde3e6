"""Estimates from the bytes of a source how much memory its trees take, before it is parsed.

The limit depends on the source alone, and not on the machine: the same file fails everywhere, or
nowhere. A source of 1 MB of ordinary code is below it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from ..files.excludes import NOTEBOOK
from .python_tree import SourceError

__all__ = [
    "LIBCST",
    "MOST_MEMORY",
    "PYTHON",
    "TREES",
    "Weights",
    "check_json",
    "check_sizes",
    "memory_of_file",
    "memory_of_json",
    "memory_of_source",
    "tokens_of",
]

_MB = 1024 * 1024
MOST_MEMORY = 225 * _MB
"""Bytes that the trees of all files may take that a worker has; without any, it needs 65 MB."""
_TOO_LARGE = f"needs more than {MOST_MEMORY // _MB} MB of memory; split it, or --exclude it"


class Weights(NamedTuple):
    """What a parser and the work with its trees take, in bytes.

    Attributes:
      token: for each word, operator, and end of a line of code.
      line: for each line, with or without code.
      byte: for each byte, mostly in copies of the source.
    """

    token: int
    line: int
    byte: int


LIBCST = Weights(3_600, 600, 8)
"""Those of LibCST's parser, which remembers the rules that it has tried at each token."""
TREES = Weights(1_300, 600, 8)
"""Those of all trees of a source, and of the work with them."""
PYTHON = Weights(800, 20, 4)
"""Those of Python's own parser."""
_PER_JSON_VALUE = 160
"""What a string or number in JSON takes, with its position; an array or object, twice as much."""
_PER_JSON_BYTE = 5
"""What a character of a notebook takes in the copies of its text."""

_KINDS = bytes(
    ord("w") if byte >= 0x80 or chr(byte).isalnum() or chr(byte) == "_"
    else byte if chr(byte) == "\n"
    else ord(" ") if chr(byte).isspace()
    else ord("o")
    for byte in range(256)
)  # fmt: skip
"""The kind of each byte: of a word, white space, a line end, or of an operator."""
_OUTSIDE = re.compile(rb"'''|\"\"\"|['\"#]")
_INSIDE = {
    b"'''": re.compile(rb"'''|\\[\s\S]"),
    b'"""': re.compile(rb'"""|\\[\s\S]'),
    b"'": re.compile(rb"'|\n|\\[\s\S]"),
    b'"': re.compile(rb'"|\n|\\[\s\S]'),
}
"""What counts outside of strings, and inside those with each quote."""
_PER_TEXT = {False: 2, True: 0}
"""What a string and a comment count; with a string, a line can end."""
_FORMAT = re.compile(rb"[fF][rR]?\Z|[rR][fF]\Z")
"""The prefix of a string that has expressions in it."""


def check_sizes(sources: Collection[bytes], weights: Weights) -> None:
    """Checks that the trees of the sources of a file take no more memory than the limit.

    Raises:
      SourceError: if they would; hardly anybody has written a source of that size.
    """
    most = weights.token + weights.line + 2 * weights.byte  # of a byte, as if each were all of it
    if sum(map(len, sources)) * most <= MOST_MEMORY:
        return  # nearly all files, without a count of tokens, which takes as long as a search
    if sum(memory_of_source(source, weights) for source in sources) <= MOST_MEMORY:
        return
    exact = (memory_of_source(source, weights, is_exact=True) for source in sources)
    if sum(exact) > MOST_MEMORY:
        raise SourceError(0, _TOO_LARGE, is_syntax=True)


def check_json(data: bytes) -> None:
    """Checks that the values of a JSON text take no more memory than the limit.

    Raises:
      SourceError: if they would.
    """
    if memory_of_json(data) > MOST_MEMORY:
        raise SourceError(0, _TOO_LARGE, is_syntax=True)


def memory_of_file(data: bytes, path: str) -> int:
    """The memory that the trees of a file take, or those of the code in it, at most."""
    size = memory_of_json(data) if path.endswith(NOTEBOOK) else 0
    return min(size + memory_of_source(data, TREES), MOST_MEMORY)


def memory_of_source(source: bytes, weights: Weights, is_exact: bool = False) -> int:
    """The memory that the trees of a source take, in bytes.

    Args:
      source: the source.
      weights: those of a parser.
      is_exact: whether to leave out what stands in strings and comments. It takes longer.
    """
    tokens = _tokens_of_code(source) if is_exact else tokens_of(source)
    width = 1 if source.isascii() else 2
    lines = source.count(b"\n")
    return tokens * weights.token + lines * weights.line + len(source) * weights.byte * width


def memory_of_json(data: bytes) -> int:
    """The memory that the values of a JSON text take, at most."""
    values = data.count(b",") + data.count(b":") + 2 * (data.count(b"[") + data.count(b"{"))
    width = 1 if data.isascii() else 4
    return values * _PER_JSON_VALUE + len(data) * _PER_JSON_BYTE * width


def tokens_of(source: bytes) -> int:
    """The number of words, operators, and ends of lines with one of them."""
    kinds = source.translate(_KINDS)
    starts = sum(kinds.count(start) for start in (b"ow", b" w", b"\nw"))
    ends = kinds.count(b"w\n") + kinds.count(b"o\n")
    scopes = 2 * source.count(b"lambda")  # each takes as much as three names
    return kinds.count(b"o") + starts + ends + scopes + kinds.startswith(b"w")


def _tokens_of_code(source: bytes) -> int:
    """The number of tokens outside of strings and comments."""
    found = at = 0
    while True:
        match = _OUTSIDE.search(source, at)
        if match is None:
            return found + tokens_of(source[at:])
        start, end = match.start(), _end_of(source, match)
        found += tokens_of(source[at:start]) + _PER_TEXT[match[0] == b"#"]
        if _FORMAT.search(source, max(start - 2, 0), start):
            found += tokens_of(source[match.end() : end])
        at = end


def _end_of(source: bytes, match: re.Match[bytes]) -> int:
    """Where a string or a comment ends that begins with a match."""
    if match[0] == b"#":
        end = source.find(b"\n", match.end())
        return len(source) if end < 0 else end
    inside = _INSIDE[match[0]]
    at = match.end()
    while True:
        found = inside.search(source, at)
        if found is None:
            return len(source)
        at = found.end()
        if not found[0].startswith(b"\\"):
            return at
