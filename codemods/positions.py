"""The text of a tree and where some of its nodes stand in it, in one pass.

LibCST's `PositionProvider` costs more than the parse, as it places every node and all whitespace.
This renders the tree as `Module.code` does and notes where the wanted nodes begin and end.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Optional

import libcst as cst

# The state that `Module.code` renders with. `code_for_node` is its only public use and gives no
# hook for positions; LibCST's own position provider subclasses it in the same way.
from libcst._nodes.internal import CodegenState

__all__ = ["Place", "Rendered", "rendered"]

_NEWLINE = re.compile(r"\r\n?|\n")


class Place(NamedTuple):
    """Lines and columns, counted from 1; `source` is the index of the source."""

    source: int
    line: int
    column: int
    end_line: int


class Rendered(NamedTuple):
    """The text of a tree, and the places of the wanted nodes."""

    text: str
    places: dict[cst.CSTNode, Place]


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
        self._wanted = wanted
        self._nothing = _Nothing()

    def record_syntactic_position(
        self,
        node: cst.CSTNode,
        *,
        start_node: Optional[cst.CSTNode] = None,
        end_node: Optional[cst.CSTNode] = None,
    ) -> Any:  # the base says that it is a generator's context manager, and only enters it
        return _Noting(self, node) if node in self._wanted else self._nothing


def rendered(module: cst.Module, source: int, wanted: Collection[cst.CSTNode]) -> Rendered:
    """The text of `module`, and the places of `wanted` in it."""
    state = _State(module, wanted)
    module._codegen(state)
    ends = []
    length = 0
    for token in state.tokens:
        length += len(token)
        ends.append(length)
    text = "".join(state.tokens)
    if not wanted:
        return Rendered(text, {})
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    places = {}
    for node, (first, last) in state.spans.items():
        begin = ends[first - 1] if first else 0
        line = bisect.bisect_right(starts, begin)
        end_line = bisect.bisect_right(starts, max(begin, ends[last - 1] - 1 if last else 0))
        places[node] = Place(source, line, begin - starts[line - 1] + 1, end_line)
    return Rendered(text, places)
