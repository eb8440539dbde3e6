"""Bounds the nesting depth of a source, in one pass over its bytes, before it is parsed.

A parser recurses as deep as its source is nested. LibCST's parser recurses in native code, where a
stack overflow kills the process, and its time and memory grow with the square of the depth; walks
over the tree recurse too. The depth counts brackets, blocks, and what nests without either:
`not not x`, `a.b.c`, `x if y else z`, `lambda: lambda: x`, `elif`. It can be too high for an
expression with many operators, but never too low.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

__all__ = ["MOST_BRACKETS", "MOST_LEVELS", "Depth", "too_deep"]

MOST_BRACKETS = 200
"""Python's own limit for nested brackets."""

MOST_LEVELS = 1000
"""The limit for everything together. Handwritten programs have a few dozen levels."""

_TOKEN = re.compile(
    rb"""
    \#[^\r\n]*
    | (?P<line> \r?\n[ \t\f]* | \r[ \t\f]*)
    | (?P<continued> \\\r?\n)
    | (?P<string>
        (?P<prefix> (?<!\w)[bBfFrRtTuU]{1,2} )?
        (?P<quoted>
          \"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:\"""|\\?\Z)
          | '''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\\?\Z)
          | "[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*(?:"|(?=[\r\n])|\\?\Z)
          | '[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*(?:'|(?=[\r\n])|\\?\Z)
        )
      )
    | (?P<open> [(\[{])
    | (?P<close> [)\]}])
    | (?P<comma> ,)
    | (?P<colon> :)
    | (?P<semicolon> ;)
    | (?P<lambda> (?<!\w)lambda(?!\w))
    | (?P<for> (?<!\w)for(?!\w))
    | (?P<operator>
        (?<!\w)(?:not|and|or|if|await|yield)(?!\w)
        | \.(?!\d) | [-+~%@&|^] | \*\*? | //? | << | >>
      )
    """,
    re.VERBOSE | re.DOTALL,
)
_DEFINITION = re.compile(rb"\n[ \t]*(?=def |class )")
_DEEP_DEFINITION = re.compile(rb"\n[ \t]{%d}[ \t]*(?:def|class) " % MOST_BRACKETS)
_NO_OPERATORS = bytes(byte for byte in range(256) if byte not in b"()[]{}.+-~%@&|^*/<>\"'")
_BRACE = re.compile(rb"\{\{?|\}")


class Depth(NamedTuple):
    """The depth of a source.

    Attributes:
      brackets: the most brackets that are open at one place.
      levels: the most levels of everything together.
      at: the byte at which a limit was exceeded; -1 if none was.
    """

    brackets: int
    levels: int
    at: int = -1


def too_deep(source: bytes) -> Optional[tuple[int, str]]:
    """The line and the reason if `source` is nested too deeply to be parsed; otherwise None."""
    if _is_clearly_shallow(source):
        return None
    found = _depth(source)
    if found.at < 0:
        return None
    line = source.count(b"\n", 0, found.at) + 1
    if found.brackets > MOST_BRACKETS:
        return line, f"has brackets nested more than {MOST_BRACKETS} deep"
    return line, f"is nested more than {MOST_LEVELS} deep"


def _is_clearly_shallow(source: bytes) -> bool:
    """Whether no definition in `source` has enough tokens to be deep; 10 times faster than a pass.

    A string that contains what looks like a definition can hide depth from this check. That is
    acceptable: the parser runs in a worker process, so a crash costs one file.
    """
    if source.count(b"elif") > MOST_BRACKETS or _DEEP_DEFINITION.search(source):
        return False
    for part in _DEFINITION.split(source):
        operators = part.translate(None, _NO_OPERATORS)
        few = len(operators) + len(part.split()) <= MOST_LEVELS - MOST_BRACKETS
        if not few or sum(map(operators.count, (b"(", b"[", b"{"))) > MOST_BRACKETS:
            found = _depth(part)
            if found.at >= 0 or found.levels > MOST_LEVELS - MOST_BRACKETS:
                return False
    return True


def _depth(source: bytes) -> Depth:
    """Measures the depth in one pass; stops where a limit is exceeded."""
    deepest = most_brackets = 0
    blocks = [0]  # indents of the enclosing blocks
    branches = [0]  # the number of preceding `elif`s in each of these blocks
    around = 0  # levels of the enclosing blocks
    outer: list[tuple[int, int, int]] = []  # of the enclosing brackets: operators, clauses, lambdas
    outside = 0  # levels of the enclosing brackets and of the expressions around them
    operators = clauses = lambdas = 0
    for token in _TOKEN.finditer(source):
        kind = token.lastgroup
        if kind == "operator":
            operators += 1
        elif kind == "open":
            outer.append((operators, clauses, lambdas))
            outside += operators + clauses + 1
            operators = clauses = lambdas = 0
        elif kind == "close":
            if outer:
                operators, clauses, lambdas = outer.pop()
                outside -= operators + clauses + 1
            operators += 1  # a call, subscript or attribute may follow
        elif kind == "comma":
            if not lambdas:  # otherwise it separates parameters of a lambda
                operators = 0
            continue
        elif kind == "line":
            if outer:
                continue
            operators = clauses = lambdas = 0
            end = token.end()
            if source[end : end + 1] in b"#\r\n":
                continue  # a line without code, or the end of the source
            indent = end - token.start() - source.count(b"\r", token.start(), end) - 1
            while indent < blocks[-1]:
                blocks.pop()
                around -= 1 + branches.pop()
            if indent > blocks[-1]:
                blocks.append(indent)
                branches.append(0)
                around += 1
            elif source.startswith(b"elif", end):
                branches[-1] += 1
                around += 1
            elif not source.startswith(b"else", end):
                around -= branches[-1]
                branches[-1] = 0
        elif kind == "string":
            operators += 1  # adjacent strings are nested pairs
            prefix = token["prefix"]
            if prefix and (b"f" in prefix.lower() or b"t" in prefix.lower()):
                for field in _fields(token["quoted"]):
                    inner = _depth(field)
                    brackets = len(outer) + 1 + inner.brackets
                    levels = around + outside + operators + clauses + 1 + inner.levels
                    if brackets > MOST_BRACKETS or levels > MOST_LEVELS:
                        return Depth(brackets, levels, token.start())
        elif kind == "lambda":
            lambdas += 1
            operators += 1
        elif kind == "for":
            clauses += bool(outer)  # in a comprehension; a `for` statement counts as a block
        elif kind == "colon":
            lambdas -= bool(lambdas)
            continue
        elif kind == "semicolon":
            operators = clauses = lambdas = 0
            continue
        else:
            continue
        levels = around + outside + operators + clauses
        if levels > deepest:
            deepest = levels
            if levels > MOST_LEVELS:
                return Depth(most_brackets, levels, token.start())
        if len(outer) > most_brackets:
            most_brackets = len(outer)
            if most_brackets > MOST_BRACKETS:
                return Depth(most_brackets, levels, token.start())
    return Depth(most_brackets, deepest)


def _fields(quoted: bytes) -> Iterator[bytes]:
    """The code in the braces of an f-string."""
    depth = start = 0
    for brace in _BRACE.finditer(quoted):
        if brace[0] == b"}":
            depth -= bool(depth)
            if not depth and start:
                yield quoted[start : brace.start()]
                start = 0
        elif depth or len(brace[0]) == 1:
            depth += len(brace[0])
            start = start or brace.end()
    if start:
        yield quoted[start:]
