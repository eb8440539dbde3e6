"""The text of a tree and where some of its nodes stand in it, in one pass.

LibCST's `PositionProvider` costs more than the parse, as it places every node and all whitespace.
This renders the tree as `Module.code` does and notes where the wanted nodes begin and end.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Optional

import libcst as cst

# The state that `Module.code` renders with. `code_for_node` is its only public use and gives no
# hook for positions; LibCST's own position provider subclasses it in the same way.
from libcst._nodes.internal import CodegenState

__all__ = ["Place", "Rendered", "rendered", "text_of"]

_NEWLINE = re.compile(r"\r\n?|\n")


class Place(NamedTuple):
    """Lines and columns, counted from 1; `source` is the index of the source."""

    source: int
    line: int
    column: int
    end_line: int


class Rendered(NamedTuple):
    """The text of a tree, the places of the wanted nodes, and each top-level statement's tokens."""

    text: str
    places: dict[cst.CSTNode, Place]
    statements: dict[cst.CSTNode, list[str]]


class _Nothing(AbstractContextManager[None]):
    def __exit__(self, *raised: object) -> None:
        return None


class _Noting(AbstractContextManager[None]):
    """Notes how many tokens there are before and after a node."""

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
        self._wanted = {id(node) for node in wanted}  # to hash a node calls Python code
        self._nothing = _Nothing()
        # The method of the base costs a call more a token.
        self.add_token = self.tokens.append  # type: ignore[method-assign,assignment]

    def record_syntactic_position(
        self,
        node: cst.CSTNode,
        *,
        start_node: Optional[cst.CSTNode] = None,
        end_node: Optional[cst.CSTNode] = None,
    ) -> Any:  # the base says that it is a generator's context manager, and only enters it
        return _Noting(self, node) if id(node) in self._wanted else self._nothing


def rendered(module: cst.Module, source: int, wanted: Collection[cst.CSTNode]) -> Rendered:
    """The text of `module`, and the places of `wanted` in it."""
    state = _State(module, wanted)
    statements = _render(module, state, {})
    text = "".join(state.tokens)
    return Rendered(text, _places(state, source, text) if wanted else {}, statements)


def text_of(module: cst.Module, known: Mapping[cst.CSTNode, list[str]]) -> str:
    """The text of an edited `module`; the statements in `known` have these tokens still."""
    state = _State(module, ())
    _render(module, state, known)
    return "".join(state.tokens)


def _render(
    module: cst.Module, state: _State, known: Mapping[cst.CSTNode, list[str]]
) -> dict[cst.CSTNode, list[str]]:
    """As `Module.code` does, statement by statement; returns the tokens of each."""
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
        end_line = bisect.bisect_right(starts, max(begin, ends[last - 1] - 1 if last else 0))
        places[node] = Place(source, line, begin - starts[line - 1] + 1, end_line)
    return places
