"""Renders a tree as text and finds the positions of some of its nodes, in one pass.

LibCST's `PositionProvider` takes longer than the parse, because it computes the positions of all
nodes and whitespace. This module renders the tree like `Module.code` and records where the wanted
nodes begin and end.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Optional

import libcst as cst

# The state that `Module.code` renders with. `code_for_node` is its only public use and gives no
# hook for positions; LibCST's own position provider subclasses it in the same way.
from libcst._nodes.internal import CodegenState

__all__ = ["LONGEST_LINE", "Place", "Rendered", "rendered", "text_of"]

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


class Rendered(NamedTuple):
    """A rendered tree: text, places of the wanted nodes, tokens of each top-level statement."""

    text: str
    places: dict[cst.CSTNode, Place]
    statements: dict[cst.CSTNode, list[str]]


class _Noting(contextlib.AbstractContextManager[None]):
    """Records the number of tokens before and after a node."""

    def __init__(self, state: _State, node: cst.CSTNode) -> None:
        self._state = state
        self._node = node

    def __enter__(self) -> None:
        self._state.spans[self._node] = (len(self._state.tokens), 0)

    def __exit__(self, *raised: object) -> None:
        start, _ = self._state.spans[self._node]
        self._state.spans[self._node] = (start, len(self._state.tokens))


class _State(CodegenState):
    def __init__(self, module: cst.Module, wanted: Collection[cst.CSTNode]) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}
        self.wanted = {id(node) for node in wanted}  # hashing a node is slow
        self._nothing = contextlib.nullcontext()
        # Saves one call for each token.
        self.add_token = self.tokens.append  # type: ignore[method-assign,assignment]

    def record_syntactic_position(
        self,
        node: cst.CSTNode,
        *,
        start_node: Optional[cst.CSTNode] = None,
        end_node: Optional[cst.CSTNode] = None,
    ) -> Any:  # the base class declares a generator context manager
        return _Noting(self, node) if id(node) in self.wanted else self._nothing


def rendered(module: cst.Module, source: int, wanted: Collection[cst.CSTNode]) -> Rendered:
    """Renders `module`, with the places of the `wanted` nodes."""
    state = _State(module, wanted)
    statements = _render(module, state, {})
    text = "".join(state.tokens)
    return Rendered(text, _places(state, source, text) if wanted else {}, statements)


def text_of(module: cst.Module, known: Mapping[cst.CSTNode, list[str]]) -> str:
    """Renders an edited `module`; `known` has the tokens of the unchanged statements."""
    state = _State(module, ())
    _render(module, state, known)
    return "".join(state.tokens)


def _render(
    module: cst.Module, state: _State, known: Mapping[cst.CSTNode, list[str]]
) -> dict[cst.CSTNode, list[str]]:
    """Renders like `Module.code`, and returns the tokens of each statement."""
    statements: dict[cst.CSTNode, list[str]] = {}
    for line in module.header:
        line._codegen(state)
    for statement in module.body:
        start = len(state.tokens)
        if statement in known:
            state.tokens += known[statement]
        else:
            statement._codegen(state)
        statements[statement] = state.tokens[start:]
    for line in module.footer:
        line._codegen(state)
    if not module.has_trailing_newline:
        state.pop_trailing_newline()
    elif not state.tokens:
        state.add_token(state.default_newline)
    return statements


def _places(state: _State, source: int, text: str) -> dict[cst.CSTNode, Place]:
    ends = list(itertools.accumulate(map(len, state.tokens)))
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    places = {}
    for node, (first, last) in state.spans.items():
        begin = ends[first - 1] if first else 0
        line = bisect.bisect_right(starts, begin)
        end = ends[last - 1] if last else begin
        end_line = bisect.bisect_right(starts, max(begin, end - 1))
        end_column = max(begin, end) - starts[end_line - 1] + 1
        shown = _line(text, starts[line - 1])
        places[node] = Place(
            source, line, begin - starts[line - 1] + 1, end_line, end_column, shown
        )
    return places


def _line(text: str, start: int) -> str:
    """The line of `text` that begins at `start`; empty if it is long."""
    found = _NEWLINE.search(text, start, start + LONGEST_LINE)
    line = text[start : found.start() if found else start + LONGEST_LINE]
    return line if len(line) < LONGEST_LINE else ""
