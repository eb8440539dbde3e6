"""Transforms the code cells of a notebook as one program; changes only the edited cells."""

from __future__ import annotations

import difflib
import json
import re
from typing import NamedTuple, Optional

from ..model import ALONE, FileError, FileResult, Finding, Options, Safety, Surroundings
from .json_spans import NestingError, Span, spans
from .magics import MaskedCell, mask
from .prefilter import may_concern
from .render import LONGEST_LINE
from .transform import Transformation

__all__ = ["transform"]

_NO_NAME = "no legacy name in it"
_NOT_PYTHON = "LS910"
_LEGACY = re.compile(
    r"(?<!\w)\w*LossScale(?:Optimizer|Manager)?\b|CrossShardOptimizer|cross_replica_sum|"
    r"get_(?:scaled_loss|unscaled_gradients)|(?:contrib\.mixed_precision|mixed_precision\.experimental)|"
    r"(?<=\.)loss_scale(?=\(\))|(?<!\w)(?:set_policy|get_layer_policy)\b"
)
_JSON_LINE = re.compile(r"[^\\]*(?:\\[^n][^\\]*)*(?:\\n|\Z)", re.DOTALL)
"""Matches one line in the text of a JSON string, up to an escaped line end."""


class _Cell(NamedTuple):
    """A code cell.

    Attributes:
      number: the position among all cells, from 1.
      value: the `source` member: a string, or an array of strings.
      lines: the lines in JSON encoding, without the quotes.
      starts: the index in the JSON text at which each line starts.
    """

    number: int
    value: Span
    lines: list[str]
    starts: list[int]

    @property
    def source(self) -> str:
        text: str = json.loads('"' + "".join(self.lines) + '"', strict=False)
        return text


def transform(
    source: bytes,
    options: Options,
    path: str = "<notebook>",
    surroundings: Surroundings = ALONE,
    with_variants: bool = False,
) -> FileResult:
    """Transforms a notebook that the prefilter has let through.

    Never raises: errors are part of the result.

    Args:
      source: the bytes of the notebook.
      options: how to rewrite them.
      path: the path to show in reports.
      surroundings: what the search has seen in the other files of the run.
      with_variants: whether other files can decide that more groups of symbols go to the shim.
    """
    try:
        text = source.decode("utf-8")
        body = text[1:] if text.startswith("\ufeff") else text
        document = spans(body)
    except json.JSONDecodeError as error:
        return _failed(
            path,
            source,
            error.lineno,
            f"is not a notebook: invalid JSON: {error.msg}; save it again",
        )
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        return _failed(path, source, line, "is not a notebook: not UTF-8; save it again")
    except NestingError as error:
        line = body.count("\n", 0, error.at) + 1
        return _failed(path, source, line, f"is {error}; --exclude it")
    if not isinstance(document.value, dict):
        return _failed(path, source, 1, "is not a notebook: the JSON is not an object")
    language = _language(document)
    if language not in ("", "python", "ipython"):
        return FileResult(source, note=f"a notebook in {language}")
    book = _Notebook(path, source, body, _cells(body, document), options)
    if not any(may_concern(one) for one in book.sources):
        return book.result([FileResult(one, note=_NO_NAME) for one in book.sources])
    work = Transformation(book.sources, options, None, path, surroundings)
    return work.joined(book.result, with_variants)


class _Notebook:
    """A notebook, which the results of its cells are put back into."""

    def __init__(
        self, path: str, source: bytes, body: str, cells: list[_Cell], options: Options
    ) -> None:
        self._path = path
        self._source = source
        self._body = body
        self._cells = cells
        self._options = options
        self._masked = [mask(cell.source) for cell in cells]
        self.sources = [(one.source or "").encode("utf-8", "surrogatepass") for one in self._masked]

    def result(self, results: list[FileResult]) -> FileResult:
        """The result for the notebook, from those for its cells."""
        path, source, body = self._path, self._source, self._body
        findings: list[Finding] = []
        edits: list[tuple[int, int, str]] = []
        for cell, one, before, result in zip(self._cells, self._masked, self.sources, results):
            findings += _not_python(path, body, cell, one, self._options)
            if result.error is not None:
                line = _line(body, cell, result.error.line)
                where = f"cell {cell.number}, line {result.error.line}"
                return _failed(path, source, line, f"{where}: {result.error.message}")
            findings += [_placed(body, cell, finding) for finding in result.findings]
            if result.source != before:
                try:
                    new = one.restore(result.source.decode("utf-8", "surrogatepass"))
                except ValueError as error:
                    message = f"cell {cell.number}: not rewritten: {error}"
                    return _failed(path, source, _line(body, cell, 1), message)
                edits.append((cell.value.start, cell.value.end, _encoded(body, cell, new)))
        edited = body
        for start, end, new in reversed(edits):
            edited = edited[:start] + new + edited[end:]
        start_mark = source[: len(source) - len(body.encode("utf-8"))]
        note = "" if edits else next((r.note for r in results if r.note), "no code cell in it")
        return FileResult(start_mark + edited.encode("utf-8"), tuple(findings), None, note)


def _not_python(
    path: str, body: str, cell: _Cell, masked: MaskedCell, options: Options
) -> list[Finding]:
    """Returns a finding for each magic or shell line that contains a legacy name."""
    if not options.selects(_NOT_PYTHON):
        return []
    found = []
    for number, line in masked.lines.items():
        name = _LEGACY.search(line)
        if name is not None:
            message = "magic and shell lines are not rewritten: migrate this line by hand"
            at = name.start() + 1
            finding = Finding(
                path, number, at, _NOT_PYTHON, name[0], Safety.MANUAL, False, message, number
            )
            finding = finding._replace(end_column=at + len(name[0]), text=line[:LONGEST_LINE])
            found.append(_placed(body, cell, finding))
    return found


def _failed(path: str, source: bytes, line: int, message: str) -> FileResult:
    return FileResult(source, error=FileError(path, line, message))


def _language(document: Span) -> str:
    metadata = document.member("metadata")
    named = metadata.member("kernelspec").member("language").text
    return (named or metadata.member("language_info").member("name").text).lower()


def _cells(body: str, document: Span) -> list[_Cell]:
    sheets = document.member("worksheets").items  # nbformat 3
    cells = [cell for owner in (document, *sheets) for cell in owner.member("cells").items]
    found = []
    for number, cell in enumerate(cells, 1):
        if cell.member("cell_type").text == "code":
            members = cell.value
            value = members.get("source", members.get("input"))
            lines = None if value is None else _lines(body, value)
            if value is not None and lines is not None:
                found.append(
                    _Cell(number, value, [line for line, _ in lines], [at for _, at in lines])
                )
    return found


def _lines(body: str, value: Span) -> Optional[list[tuple[str, int]]]:
    """The lines of a cell's source in JSON encoding, and the index at which each starts."""
    strings = value.items if isinstance(value.value, list) else [value]
    lines: list[tuple[str, int]] = []
    open_line = False
    for string in strings:
        if not isinstance(string.value, str):
            return None
        raw = body[string.start + 1 : string.end - 1]
        at = 0
        for part in _JSON_LINE.findall(raw):
            if not part:
                continue
            if open_line:
                lines[-1] = (lines[-1][0] + part, lines[-1][1])
            else:
                lines.append((part, string.start + 1 + at))
            open_line = not part.endswith("\\n")
            at += len(part)
    return lines


def _encoded(body: str, cell: _Cell, new: str) -> str:
    """Encodes the new source as JSON in the style of the old; unchanged lines keep their bytes."""
    old_lines = [json.loads(f'"{line}"', strict=False) for line in cell.lines]
    new_lines = new.split("\n")
    new_lines = [line + "\n" for line in new_lines[:-1]] + (
        [new_lines[-1]] if new_lines[-1] else []
    )
    ascii_only = body.isascii()
    raw: list[str] = []
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            raw += cell.lines[old_start:old_end]
        else:
            raw += [
                json.dumps(one, ensure_ascii=ascii_only)[1:-1]
                for one in new_lines[new_start:new_end]
            ]
    if isinstance(cell.value.value, str):
        return '"' + "".join(raw) + '"'
    items = cell.value.items
    first = body[cell.value.start + 1 : items[0].start]
    between = body[items[0].end : items[1].start] if len(items) > 1 else "," + (first or " ")
    last = body[items[-1].end : cell.value.end - 1]
    return "[" + first + between.join(f'"{line}"' for line in raw) + last + "]"


def _line(body: str, cell: _Cell, line: int) -> int:
    """The line in the file of line `line` of the cell."""
    if not cell.starts:
        return body.count("\n", 0, cell.value.start) + 1
    at = cell.starts[min(max(line, 1), len(cell.starts)) - 1]
    return body.count("\n", 0, at) + 1


def _placed(body: str, cell: _Cell, finding: Finding) -> Finding:
    return finding._replace(
        line=_line(body, cell, finding.line),
        end_line=_line(body, cell, finding.end_line or finding.line),
        cell=cell.number,
        cell_line=finding.line,
    )
