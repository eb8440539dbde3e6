"""Finds `TF_USE_LEGACY_KERAS` and imports of `tf_keras` in the bytes of a file.

Python is split into tokens but not parsed: a parser can be crashed by its input, and Python 2 code
counts as well.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import Any

from tf_lossscale._versions.releases import LEGACY_KERAS, LEGACY_KERAS_VALUES

from .evidence import Evidence, Rank

__all__ = ["WORDS", "in_notebook", "in_python", "in_text", "tokens"]

WORDS = (LEGACY_KERAS.encode(), b"tf_keras")
"""A file with evidence of this kind contains one of these words."""

_LONGEST_LINE = 2000
_LONG_LINE = re.compile(rb"[^\r\n]{2001,}")
_VALUE = re.compile(
    # Not the expansion `$TF_USE_LEGACY_KERAS`. Dockerfiles allow a space instead of `=`.
    rf"(?<![\w$\{{]){LEGACY_KERAS}[\"']?(?:\s*[:=]\s*|[ \t]+)[\"']?(\w+)"
)
_STRING = re.compile(r"[bBrRuU]{0,2}([\"'])(\w*)\1\Z")
_READS = frozenset(["get", "getenv", "pop"])
_SKIPPED = frozenset(
    [tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING]
)


def in_text(path: str, data: bytes) -> Iterator[Evidence]:
    """Yields the evidence in a shell script, a Dockerfile, an env file or YAML."""
    yield from _in_lines(path, data.decode("utf-8", "replace").splitlines())


def in_python(path: str, data: bytes) -> Iterator[Evidence]:
    """Yields the evidence in a Python source file."""
    statement: list[tokenize.TokenInfo] = []
    for token in tokens(data):
        if token.type == tokenize.NEWLINE or token.string == ";":
            yield from _in_statement(path, statement)
            statement = []
        elif token.type not in _SKIPPED:
            statement.append(token)
    yield from _in_statement(path, statement)


def in_notebook(path: str, data: bytes) -> Iterator[Evidence]:
    """Yields the evidence in the code cells of a notebook; their lines are those of the cell."""
    try:
        cells = json.loads(data)["cells"]
        sources = [_source(cell) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return  # the run reports it if a rule could apply
    for source in sources:
        if any(word in source for word in WORDS):
            magic = [line.lstrip(" \t%!") if _is_magic(line) else "" for line in _lines(source)]
            yield from _in_lines(path, magic)
            code = [b"" if _is_magic(line) else line.encode() for line in _lines(source)]
            yield from in_python(path, b"\n".join(code) + b"\n")


def _source(cell: Any) -> bytes:
    source = cell["source"]
    return (source if isinstance(source, str) else "".join(source)).encode("utf-8", "replace")


def _lines(source: bytes) -> list[str]:
    return source.decode("utf-8").split("\n")


def _is_magic(line: str) -> bool:
    return line.lstrip().startswith(("%", "!"))


def _in_lines(path: str, lines: Iterable[str]) -> Iterator[Evidence]:
    for number, line in enumerate(lines, 1):
        if LEGACY_KERAS in line and len(line) <= _LONGEST_LINE:
            for match in _VALUE.finditer(line.split("#")[0]):
                yield from _set(path, number, match[1])


def _set(path: str, line: int, value: str) -> Iterator[Evidence]:
    if value in LEGACY_KERAS_VALUES:
        yield Evidence(Rank.LEGACY_KERAS, 2, path, line, f"{LEGACY_KERAS}={value}")
    elif value.lower() in ("0", "false"):
        yield Evidence(Rank.LEGACY_KERAS, 3, path, line, f"{LEGACY_KERAS}={value}")


def _in_statement(path: str, statement: list[tokenize.TokenInfo]) -> Iterator[Evidence]:
    words = [token.string for token in statement]
    if words and (words[0] == "import" or (words[0] == "from" and words[1:2] == ["tf_keras"])):
        for before, token in zip(statement, statement[1:]):
            if token.string == "tf_keras" and before.string in ("import", "from", ","):
                yield Evidence(Rank.LEGACY_KERAS, 2, path, token.start[0], "an import of tf_keras")
        return
    for index, token in enumerate(statement):
        if LEGACY_KERAS not in token.string or _text(token) != LEGACY_KERAS:
            continue
        if index > 1 and words[index - 1] == "(" and words[index - 2] in _READS:
            continue
        at = index + (2 if words[index + 1 : index + 2] == ["]"] else 1)
        if words[at : at + 1] not in (["="], [","], [":"]):
            continue
        for value in statement[at + 1 : at + 2]:
            yield from _set(path, token.start[0], _text(value))


def _text(token: tokenize.TokenInfo) -> str:
    """The text of a string without escapes, or the token itself."""
    match = _STRING.match(token.string)
    return match[2] if match else token.string


def tokens(data: bytes) -> Iterator[tokenize.TokenInfo]:
    """Yields the tokens up to the first error; what comes before an error counts.

    Lines of more than 2,000 bytes are left out, because Python 3.12 takes quadratic time for them.
    """
    readline = io.BytesIO(_LONG_LINE.sub(b"", data)).readline
    with contextlib.suppress(tokenize.TokenError, SyntaxError, UnicodeDecodeError, LookupError):
        yield from tokenize.tokenize(readline)
