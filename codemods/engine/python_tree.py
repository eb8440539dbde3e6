"""Reads sources with Python's own parser, which is many times faster than LibCST's.

Nothing here imports LibCST, which takes longer than the search of a thousand files.
"""

from __future__ import annotations

import ast
import functools
import warnings
from typing import Optional, Union

from ..model import FileError
from ..resolve.python_nodes import PythonNodes

__all__ = ["PythonSource", "PythonTree", "SourceError", "error_of", "python_tree"]

PythonTree = Union[ast.Module, Exception]
"""What Python's own parser makes of a source: a tree, or its error."""

_DEEP = "is nested too deeply to be edited; split the deepest expression"


class SourceError(Exception):
    """A source, a file or a cell of a notebook, cannot be parsed or edited.

    Attributes:
      line: the line in that source, from 1; 0 if the error has no line.
      message: what is wrong, and what to do.
      is_syntax: whether the source cannot be decoded or parsed.
    """

    def __init__(self, line: int, message: str, is_syntax: bool = False) -> None:
        super().__init__(message)
        self.line = line
        self.message = message
        self.is_syntax = is_syntax


def python_tree(source: bytes) -> PythonTree:
    """The tree of Python's own parser, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error


class PythonSource:
    """A source, which is parsed once, and whose nodes are collected once.

    Attributes:
      data: its bytes.
      tree: what Python's own parser makes of it.

    Args:
      data: its bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.tree = python_tree(data)

    @functools.cached_property
    def nodes(self) -> Optional[PythonNodes]:
        """The nodes of the tree; None if the source cannot be parsed."""
        return PythonNodes([self.tree]) if isinstance(self.tree, ast.Module) else None


def error_of(path: str, error: Union[SourceError, RecursionError]) -> FileError:
    """The error of a file that cannot be parsed or edited."""
    if isinstance(error, SourceError):
        return FileError(path, error.line, error.message, error.is_syntax)
    return FileError(path, 0, _DEEP)
