"""One source of a program: its tree, the positions of some nodes, and its bytes after edits.

LibCST's `PositionProvider` takes longer than the parse, because it computes the positions of all
nodes and whitespace. This module renders the tree like `Module.code` and records where the wanted
nodes begin and end.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import re
from collections.abc import Iterator, Set
from typing import Any, NamedTuple

import libcst as cst

from ..model import Finding, Safety
from .libcst_internals import CodegenState, generate
from .parse import check_round_trip, check_syntax, parsed
from .python_tree import PythonTree

__all__ = ["LONGEST_LINE", "Place", "Source"]

_NEWLINE = re.compile(r"\r\n?|\n")

LONGEST_LINE = 300
"""Characters of a line that a report shows with its finding."""


class Place(NamedTuple):
    """The position of a node: lines and columns from 1; `source` is the index of the source.

    `end_column` is the column after the node. `text` is its first line; empty if it is long.
    """

    source: int
    line: int
    column: int
    end_line: int
    end_column: int = 0
    text: str = ""

    def finding(self, path: str, code: str, symbol: str, message: str) -> Finding:
        """A finding about this place, to be done by hand."""
        finding = Finding(path, self.line, self.column, code, symbol, Safety.MANUAL, False, message)
        return finding._replace(end_line=self.end_line, end_column=self.end_column, text=self.text)


class Source:
    """A parsed source.

    Attributes:
      data: its bytes.
      index: its position in the program.
      module: its tree.
      text: its text, once nodes have been located.
      places: the places of the located nodes.

    Args:
      data: the bytes of a file, or of a cell of a notebook.
      index: its position in the program.
      tree: what Python's own parser makes of it.

    Raises:
      SourceError: if it cannot be parsed.
    """

    def __init__(self, data: bytes, index: int, tree: PythonTree) -> None:
        self.data = data
        self.index = index
        self.module = parsed(data, tree)
        self.text = ""
        self.places: dict[cst.CSTNode, Place] = {}
        self._statements: dict[cst.CSTNode, list[str]] = {}
        self._wanted: Set[cst.CSTNode] = frozenset()

    def locate(self, nodes: Set[cst.CSTNode]) -> None:
        """Finds the places of those nodes that belong to this source.

        Raises:
          SourceError: if the tree does not reproduce the source.
        """
        if not self._statements or not nodes <= self._wanted:
            self._wanted |= nodes
            state = _State(self.module, self._wanted)
            self._statements = _render(self.module, state, {})
            self.text = "".join(state.tokens)
            check_round_trip(self.module, self.text, self.data)
            self.places = dict(_places(state, self.index, self.text))

    def edited(self, module: cst.Module) -> bytes:
        """The bytes of an edited tree, which shares unchanged statements with the source's tree.

        Raises:
          SourceError: if they cannot be parsed.
        """
        state = _State(module, frozenset())
        _render(module, state, self._statements)
        data = "".join(state.tokens).encode(module.encoding)
        check_syntax(data)
        return data


class _State(CodegenState):
    """Collects the tokens of a tree, and how many there are before and after the wanted nodes."""

    def __init__(self, module: cst.Module, wanted: Set[cst.CSTNode]) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self.wanted = {id(node) for node in wanted}  # hashing a node is slow
        self._nothing = contextlib.nullcontext()
        # Saves one call for each token.
        self.add_token = self.tokens.append  # type: ignore[method-assign,assignment]

    def record_syntactic_position(self, node: cst.CSTNode, **_: Any) -> Any:
        return self._noting(node) if id(node) in self.wanted else self._nothing

    @contextlib.contextmanager
    def _noting(self, node: cst.CSTNode) -> Iterator[None]:
        """Records the number of tokens before and after a node."""
        start = len(self.tokens)
        yield
        self.spans[node] = start, len(self.tokens)


def _render(
    module: cst.Module, state: _State, known: dict[cst.CSTNode, list[str]]
) -> dict[cst.CSTNode, list[str]]:
    """Renders like `Module.code`, and returns the tokens of each top-level statement.

    `known` has the tokens of statements that need not be rendered again.
    """
    statements: dict[cst.CSTNode, list[str]] = {}
    for line in module.header:
        generate(line, state)
    for statement in module.body:
        start = len(state.tokens)
        if statement in known:
            state.tokens += known[statement]
        else:
            generate(statement, state)
        statements[statement] = state.tokens[start:]
    for line in module.footer:
        generate(line, state)
    if not module.has_trailing_newline:
        state.pop_trailing_newline()
    elif not state.tokens:
        state.add_token(state.default_newline)
    return statements


def _places(state: _State, source: int, text: str) -> Iterator[tuple[cst.CSTNode, Place]]:
    ends = [0, *itertools.accumulate(map(len, state.tokens))]
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    for node, (first, last) in state.spans.items():
        begin, end = ends[first], max(ends[first], ends[last])
        line = bisect.bisect_right(starts, begin)
        end_line = bisect.bisect_right(starts, max(begin, end - 1))
        column, end_column = begin - starts[line - 1] + 1, end - starts[end_line - 1] + 1
        shown = _line(text, starts[line - 1])
        yield node, Place(source, line, column, end_line, end_column, shown)


def _line(text: str, start: int) -> str:
    """The line of `text` that begins at `start`; empty if it is long."""
    found = _NEWLINE.search(text, start, start + LONGEST_LINE)
    line = text[start : found.start() if found else start + LONGEST_LINE]
    return line if len(line) < LONGEST_LINE else ""
