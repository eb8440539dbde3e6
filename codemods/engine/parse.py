"""Parses sources, and checks trees and results."""

from __future__ import annotations

import re
from typing import Optional

import libcst as cst

from .libcst_internals import unvalidated
from .parts import parse_in_parts
from .python_tree import PythonTree, SourceError, python_tree

__all__ = ["check_round_trip", "check_syntax", "looks_like_python_2", "parsed"]

_PYTHON_2 = re.compile(
    rb"""^[ \t]*(?:print[ \t]+["'\w]|exec[ \t]+["'\w]"""
    rb"""|raise[ \t]+\w+[ \t]*,|except[ \t].*,\s*\w+:)""",
    re.MULTILINE,
)
_NEWLINE = re.compile(rb"\r\n?|\n")
_LOST = {
    b"\f": "it loses the form feed at the beginning of this line (remove it)",
    b"\r": "it loses the carriage return at the end (end the lines with LF or CRLF)",
}
"""Why a tree does not reproduce its source, by the first byte that it lacks."""
_OTHER_CAUSES = (
    "common causes are comments after the last statement that are partly indented (indent them "
    "fully or not at all), or spaces on blank lines at the end (remove them)"
)
_SPLIT_IT = "split the deepest expression"
_ENCODING_HINT = (
    "save it as UTF-8 or declare its encoding in the first line (# -*- coding: ... -*-)"
)


def parsed(source: bytes, tree: PythonTree) -> cst.Module:
    """Parses `source`.

    Args:
      source: the source.
      tree: what Python's own parser makes of it, which is many times faster.

    Raises:
      SourceError: if it cannot be parsed.
      MemoryError: if there is not enough memory.
    """
    problem = tree if isinstance(tree, Exception) else None
    line = _line_of_depth(problem)
    if line is not None:
        raise SourceError(line, f"is nested too deeply to be parsed; {_SPLIT_IT}")
    try:
        with unvalidated():
            return parse_in_parts(source, None if isinstance(tree, Exception) else tree)
    except cst.ParserSyntaxError as error:
        # LibCST reports the place after the error.
        line, what = error.raw_line, (error.message.strip() or "syntax error").splitlines()[0]
        if isinstance(problem, SyntaxError):
            line, what = problem.lineno or 0, problem.msg
        message = f"cannot be parsed: {what}; {_hint(source)}"
        raise SourceError(line, message, is_syntax=True) from None
    except (UnicodeDecodeError, LookupError, SyntaxError) as error:
        line = source.count(b"\n", 0, getattr(error, "start", 0)) + 1
        message = f"cannot be decoded: {error}; {_ENCODING_HINT}"
        raise SourceError(line, message, is_syntax=True) from None
    except SourceError:
        raise
    except RecursionError:
        raise SourceError(0, f"is nested too deeply to be parsed; {_SPLIT_IT}") from None
    except MemoryError:
        raise
    except Exception as error:  # the native parser can raise anything; it fails this file only
        raise SourceError(0, f"cannot be parsed: {type(error).__name__}: {error}") from error


def check_round_trip(module: cst.Module, text: str, source: bytes) -> None:
    """Compares `text`, the rendered `module`, with `source`.

    LibCST 1.9 drops comments that are indented less than the block that they end, form feeds before
    statements, and a carriage return at the end.

    Raises:
      SourceError: if they differ.
    """
    given_back = text.encode(module.encoding)
    if given_back == source:
        return
    differs = (at for at, (old, new) in enumerate(zip(source, given_back)) if old != new)
    at = next(differs, min(len(source), len(given_back)))
    line = len(_NEWLINE.findall(source, 0, at)) + 1
    cause = _LOST.get(source[at : at + 1], _OTHER_CAUSES)
    raise SourceError(line, f"not rewritten: the parser does not reproduce it exactly; {cause}")


def check_syntax(source: bytes) -> None:
    """Parses an edited source.

    Python's own parser runs first because it is many times faster. What it rejects may still be
    valid in a newer Python, so LibCST's parser decides.

    Raises:
      SourceError: if it cannot be parsed.
    """
    tree = python_tree(source)
    if isinstance(tree, Exception):
        try:
            parsed(source, tree)
        except SourceError as error:
            message = f"not rewritten: the result would not parse ({error.message})"
            raise SourceError(error.line, message) from None


def _line_of_depth(error: Optional[Exception]) -> Optional[int]:
    """The line at which Python's parser gives up on the depth of a source; 0 if it has none.

    LibCST's parser recurses in native code, where a stack overflow kills the process.
    """
    if isinstance(error, (RecursionError, MemoryError)):
        return 0
    is_depth = isinstance(error, SyntaxError) and re.search(
        "too many nested|too many levels", error.msg
    )
    return (error.lineno or 0) if isinstance(error, SyntaxError) and is_depth else None


def looks_like_python_2(source: bytes) -> bool:
    """Whether a line has a statement that Python 3 rejects, such as `print x`."""
    return bool(_PYTHON_2.search(source))


def _hint(source: bytes) -> str:
    if looks_like_python_2(source):
        return "it looks like Python 2: convert it first (2to3, futurize)"
    return "fix the syntax error, or --exclude the file"
