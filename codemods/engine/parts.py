"""Parses a source in parts, top-level statement by statement, since LibCST's parser keeps so much.

It remembers the rules that it has tried at each token: for a file of 200 kB, 60 MB, which is many
times what its tree takes. The parts are merged into the tree that the whole source has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple, Optional

import libcst as cst

from .tree_size import LIBCST, check_sizes, tokens_of

__all__ = ["parse_in_parts"]

_PART = 4_000
"""Tokens of a part, unless a statement has more."""
_COOKIE = re.compile(rb"coding[=:]")


class _Part(NamedTuple):
    """Some statements.

    Attributes:
      source: their bytes.
      has_blocks: whether one of them can have lines that are indented.
    """

    source: bytes
    has_blocks: bool


def parse_in_parts(source: bytes, tree: Optional[ast.Module]) -> cst.Module:
    """Parses a source, in parts if it is long.

    It is parsed as a whole if the parts differ in what LibCST finds out from the first lines: the
    encoding, and how lines end and blocks are indented.

    Args:
      source: the source.
      tree: its tree, which has the lines of the statements; None if there is none.

    Raises:
      SourceError: if that would take too much memory.
    """
    parts = _parts_of(source, tree) if tree is not None and tokens_of(source) > 2 * _PART else []
    merged = _merged(parts) if len(parts) > 1 else None
    if merged is None:
        check_sizes([source], LIBCST)
        merged = cst.parse_module(source)
    return merged


def _merged(parts: Sequence[_Part]) -> Optional[cst.Module]:
    """The tree of all parts; None if they cannot be merged."""
    first = last = cst.parse_module(parts[0].source)
    indent = first.default_indent if parts[0].has_blocks else None
    body = list(first.body)
    for part in parts[1:]:
        check_sizes([part.source], LIBCST)
        above, last = last.footer, cst.parse_module(part.source)
        if part.has_blocks and indent is None:
            indent = last.default_indent
        is_indented_alike = not part.has_blocks or last.default_indent == indent
        if last.default_newline != first.default_newline or not is_indented_alike:
            return None
        statement, *others = last.body
        lines = [*above, *last.header, *statement.leading_lines]
        body += [statement.with_changes(leading_lines=lines), *others]
    return first.with_changes(
        body=body,
        footer=last.footer,
        default_indent=first.default_indent if indent is None else indent,
        has_trailing_newline=last.has_trailing_newline,
    )


def _parts_of(source: bytes, tree: ast.Module) -> list[_Part]:
    """The parts of a source; none if its lines cannot be counted like those of the tree."""
    has_cookie = _COOKIE.search(b"".join(source.split(b"\n", 2)[:2]))
    if has_cookie or source.count(b"\r") != source.count(b"\r\n"):
        return []
    lines = source.splitlines(keepends=True)
    found: list[_Part] = []
    start = size = 0
    has_blocks = False
    end = 0
    for statement in tree.body:
        begin = _first_line(statement)
        if size > _PART and _is_boundary(lines, end, begin):
            found.append(_Part(b"".join(lines[start:begin]), has_blocks))
            start, size, has_blocks = begin, 0, False
        has_blocks |= hasattr(statement, "body")
        end = statement.end_lineno or begin + 1
        size += tokens_of(b"".join(lines[begin:end]))
    found.append(_Part(b"".join(lines[start:]), has_blocks))
    return found


def _first_line(statement: ast.stmt) -> int:
    """The index of the line with which a statement begins: that of its first decorator."""
    decorators = getattr(statement, "decorator_list", [])
    return min(node.lineno for node in [statement, *decorators]) - 1


def _is_boundary(lines: Sequence[bytes], end: int, begin: int) -> bool:
    """Whether a part can end after the line before `end`, and the next one begin with `begin`.

    LibCST reads comments and blank lines that are indented in another way at the end of a file.
    """
    between = lines[end:begin]
    is_plain = all(line.startswith(b"#") or not line.rstrip(b"\r\n") for line in between)
    is_continued = lines[begin - 1].rstrip(b"\r\n").endswith(b"\\")
    return end <= begin and is_plain and not is_continued
