"""The code cells of a notebook, which are one program; only the edited cells change."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Union

from ..files.line_edits import line_edits
from ..model import Finding, Options
from ..project.evidence import CodeCell
from ..resolve.vocabulary import MODULE, NAMES, SCALING
from .json_positions import Array, NestingError, String, parsed_json
from .magics import MaskedCell, mask
from .python_tree import SourceError
from .render import LONGEST_LINE, Place
from .tree_size import check_json

__all__ = ["Notebook", "code_cells", "code_of"]

_NOT_PYTHON = "LS910"
_IN_MAGIC = "magic and shell lines are not rewritten: migrate this line by hand"
_WORDS = "|".join(sorted({*NAMES, *SCALING} - {"Policy", "global_policy"}))
_LEGACY = re.compile(
    rf"(?<!\w)(?:{_WORDS})\b|contrib\.{MODULE}|{MODULE}\.experimental|(?<=\.)loss_scale(?=\(\))"
)
_OF_SHIM = re.compile(r"(?<!\w)(?:tfls|tf_lossscale)(?:\.\w+)*(?: import [\w, ]+)?")
"""A name of the shim, or an import from it: a line that was migrated by hand."""
_JSON_LINE = re.compile(r"[^\\]*(?:\\[^n][^\\]*)*(?:\\n|\Z)", re.DOTALL)
"""Matches one line in the text of a JSON string, up to an escaped line end."""
_PYTHON = ("", "python", "ipython")
"""The languages of a notebook whose cells are read; most old ones name none."""
_BLOCK = 64 * 1024
"""Characters of the text between places of which the line is kept."""


class _Cell:
    """A code cell: its JSON text, its position from 1, and its `source`, a string or an array."""

    def __init__(self, body: str, number: int, value: Union[String, Array]) -> None:
        self.number = number
        self.value = value
        self.starts: list[int] = []
        """The index in the JSON text at which each line starts."""
        lines: list[list[str]] = []
        open_line = False
        for string in value if isinstance(value, Array) else [value]:
            at = string.start + 1
            for part in filter(None, _JSON_LINE.findall(body[at : string.end - 1])):
                if open_line:
                    lines[-1].append(part)
                else:
                    lines.append([part])
                    self.starts.append(at)
                open_line = not part.endswith("\\n")
                at += len(part)
        self.lines = list(map("".join, lines))
        """The lines in JSON encoding, without the quotes."""
        self.masked = mask("".join(map(_decoded, self.lines)))


class Notebook:
    """The cells of a notebook, and how results for them become those for the file.

    Attributes:
      sources: the Python source of each code cell; empty for a cell in another language.
      note: why there are no cells; empty if there are.
      texts: the lines that only IPython understands.

    Args:
      data: the bytes of the notebook.

    Raises:
      SourceError: if it cannot be read.
    """

    def __init__(self, data: bytes) -> None:
        """Decodes the notebook, and masks the magic lines of its cells."""
        self.note = ""
        self._body = ""
        self._lines_before = [0]
        """How many lines end before each block of the text."""
        check_json(data)
        try:
            text = data.decode("utf-8")
            self._body = text[1:] if text.startswith("\ufeff") else text
            document = parsed_json(self._body)
        except json.JSONDecodeError as error:
            message = f"is not a notebook: invalid JSON: {error.msg}; save it again"
            raise SourceError(error.lineno, message) from None
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise SourceError(line, "is not a notebook: not UTF-8; save it again") from None
        except NestingError as error:
            raise SourceError(self._line_at(error.at), f"is {error}; --exclude it") from None
        if not isinstance(document, dict):
            raise SourceError(1, "is not a notebook: the JSON is not an object")
        self._mark = text[: len(text) - len(self._body)]
        language = _language(document)
        if language in _PYTHON:
            self._cells = [
                _Cell(self._body, number, value) for number, value in _code_cells(document)
            ]
            self.note = "" if self._cells else "no code cell in it"
        else:
            self._cells = []
            self.note = f"a notebook in {language}"
        self.sources = [_bytes_of(cell.masked) for cell in self._cells]
        self.texts = [line for cell in self._cells for line in cell.masked.lines.values()]

    def with_sources(self, sources: Sequence[bytes]) -> bytes:
        """The bytes of the notebook with other sources of its cells.

        Raises:
          SourceError: if a source has lost a magic line.
        """
        edited = self._mark
        at = 0
        for cell, old, new in zip(self._cells, self.sources, sources):
            if new != old:
                try:
                    source = cell.masked.restore(new.decode("utf-8", "surrogatepass"))
                except ValueError as error:
                    message = f"cell {cell.number}: not rewritten: {error}"
                    raise SourceError(self._line(cell, 1), message) from None
                edited += self._body[at : cell.value.start] + _encoded(self._body, cell, source)
                at = cell.value.end
        return (edited + self._body[at:]).encode("utf-8")

    def findings(self, path: str, options: Options) -> Iterator[tuple[int, Finding]]:
        """A finding for each magic or shell line with a legacy name, with the index of the cell."""
        if options.selects(_NOT_PYTHON):
            for index, cell in enumerate(self._cells):
                for number, line in cell.masked.lines.items():
                    name = _LEGACY.search(_OF_SHIM.sub(_blank, line))
                    if name is not None:
                        start, end, shown = name.start() + 1, name.end() + 1, line[:LONGEST_LINE]
                        place = Place(index, number, start, number, end, shown)
                        yield index, place.finding(path, _NOT_PYTHON, name[0], _IN_MAGIC)

    def code_cells(self) -> Iterator[CodeCell]:
        """Yields the code cells with the lines of the file."""
        for cell in self._cells:
            line_of = functools.partial(self._line, cell)
            yield CodeCell(cell.masked.source, cell.masked.lines, line_of)

    def placed(self, index: int, finding: Finding) -> Finding:
        """A finding of a cell, with its place in the file."""
        cell = self._cells[index]
        return finding._replace(
            line=self._line(cell, finding.line),
            end_line=self._line(cell, finding.end_line),
            cell=cell.number,
            cell_line=finding.line,
        )

    def error(self, index: int, error: SourceError) -> SourceError:
        """The error of a cell, with its place in the file."""
        cell = self._cells[index]
        message = f"cell {cell.number}, line {error.line}: {error.message}"
        return SourceError(self._line(cell, error.line), message)

    def _line(self, cell: _Cell, line: int) -> int:
        """The line in the file of line `line` of the cell."""
        starts = cell.starts or [cell.value.start]
        return self._line_at(starts[min(max(line, 1), len(starts)) - 1])

    def _line_at(self, index: int) -> int:
        """The line of an index, from 1; counted from the last block, as there can be many."""
        block = index // _BLOCK
        while len(self._lines_before) <= block:
            last = len(self._lines_before) - 1
            lines = self._body.count("\n", last * _BLOCK, (last + 1) * _BLOCK)
            self._lines_before.append(self._lines_before[last] + lines)
        return self._lines_before[block] + self._body.count("\n", block * _BLOCK, index) + 1


def _language(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    for owner, name in (("kernelspec", "language"), ("language_info", "name")):
        language = _member(_member(metadata, owner), name)
        if isinstance(language, str) and language:
            return language.lower()
    return ""


def code_of(data: bytes) -> list[bytes]:
    """The `sources` of a notebook alone, without their positions, in half the time.

    Raises:
      SourceError: if it cannot be read.
    """
    check_json(data)
    try:
        document = json.loads(data.decode("utf-8-sig"), strict=False, parse_int=float)
    except (ValueError, RecursionError) as error:
        raise SourceError(0, f"is not a notebook: {error}") from None
    if not isinstance(document, dict):
        raise SourceError(1, "is not a notebook: the JSON is not an object")
    if _language(document) not in _PYTHON:
        return []
    return [_bytes_of(mask("".join(source))) for _, source in _code_cells(document)]


def code_cells(notebook: bytes) -> Iterator[CodeCell]:
    """Yields the code cells of a notebook; none if it cannot be read."""
    with contextlib.suppress(SourceError):
        yield from Notebook(notebook).code_cells()


def _bytes_of(masked: MaskedCell) -> bytes:
    return (masked.source or "").encode("utf-8", "surrogatepass")


def _code_cells(document: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """The sources, strings or arrays of strings, of the code cells, numbered among all cells."""
    for number, cell in enumerate(_all_cells(document), 1):
        if _member(cell, "cell_type") != "code":
            continue
        value = cell.get("source", cell.get("input"))
        strings = value if isinstance(value, list) else [value]
        if all(isinstance(string, str) for string in strings):
            yield number, value


def _all_cells(document: dict[str, Any]) -> Iterator[Any]:
    """The cells of every kind; nbformat 3 has them in worksheets."""
    sheets = document.get("worksheets")
    for owner in [document, *(sheets if isinstance(sheets, list) else ())]:
        cells = _member(owner, "cells")
        if isinstance(cells, list):
            yield from cells


def _member(owner: object, name: str) -> Any:
    """The member of an object; None if there is none, or if `owner` is something else."""
    return owner.get(name) if isinstance(owner, dict) else None


def _decoded(line: str) -> str:
    text: str = json.loads(f'"{line}"', strict=False)
    return text


def _encoded(body: str, cell: _Cell, new: str) -> str:
    """Encodes the new source as JSON in the style of the old; unchanged lines keep their bytes."""
    old_lines = [_decoded(line) for line in cell.lines]
    new_lines = re.findall(r"[^\n]*\n|[^\n]+", new)
    ascii_only = body.isascii()
    raw: list[str] = []
    at = 0
    for start, end, new_start, new_end in line_edits(old_lines, new_lines):
        raw += cell.lines[at:start]
        raw += [
            json.dumps(line, ensure_ascii=ascii_only)[1:-1] for line in new_lines[new_start:new_end]
        ]
        at = end
    raw += cell.lines[at:]
    if isinstance(cell.value, String):
        return '"' + "".join(raw) + '"'
    items = cell.value
    first = body[items.start + 1 : items[0].start]
    between = body[items[0].end : items[1].start] if len(items) > 1 else "," + (first or " ")
    last = body[items[-1].end : items.end - 1]
    return "[" + first + between.join(f'"{line}"' for line in raw) + last + "]"


def _blank(match: re.Match[str]) -> str:
    """Spaces in the place of a text, so that what follows keeps its columns."""
    return " " * len(match[0])
