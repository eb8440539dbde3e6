"""Replaces IPython magic and shell lines in a cell by Python statements, and restores them."""

from __future__ import annotations

import re
from typing import Optional

__all__ = ["MaskedCell", "mask"]

_PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun"})
"""Cell magics whose body is Python code that runs in the namespace of the notebook."""

_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE = re.compile(r"[ \t]*(?:[%!?]|[\w.]+\?{1,2}[ \t]*(?:\r?\n|\Z))")
_ASSIGNMENT = re.compile(r"(?P<target>[ \t]*[\w.]+(?:[ \t]*,[ \t]*[\w.]+)*[ \t]*=[ \t]*)[!%]")
_OUTSIDE = re.compile(r"'''|\"\"\"|['\"#()\[\]{}]|\\\r?\n")
_INSIDE = {
    quote: re.compile(rf"{quote}|\\(?:\r\n|.)", re.DOTALL) for quote in ("'''", '"""', "'", '"')
}
"""What counts in a line outside strings, and inside those with each quote."""
_MARK = "lossscale-masked-line-"
_MARKED = re.compile(f"#{_MARK}([0-9]{{1,9}})#")


class MaskedCell:
    """A cell whose magic and shell lines are replaced by placeholders, line by line.

    Attributes:
      source: the Python source; None if the whole cell is in another language.
      lines: the replaced lines, by line number from 1.
    """

    def __init__(
        self, source: Optional[str], lines: dict[int, str], placeholders: list[str]
    ) -> None:
        self.source = source
        self.lines = lines
        self._placeholders = placeholders

    def restore(self, source: str) -> str:
        """Returns `source` with the original lines in place of the placeholders.

        Raises:
          ValueError: if a placeholder does not occur exactly once.
        """
        lines = list(self.lines.values())
        left = dict(enumerate(self._placeholders))
        out = []
        at = 0
        for mark in _MARKED.finditer(source):
            number = int(mark[1])
            if number >= len(lines):
                continue  # text of the cell
            placeholder = left.pop(number, None)
            start = mark.end() - len(placeholder or "")
            if placeholder is None or not source.startswith(placeholder, max(start, at)):
                raise ValueError(f"the line {lines[number].strip()!r} would get lost")
            out += [source[at:start], lines[number]]
            at = mark.end()
        for number in left:
            raise ValueError(f"the line {lines[number].strip()!r} would get lost")
        return "".join(out) + source[at:]


def mask(source: str) -> MaskedCell:
    """Replaces the lines of a cell that only IPython understands by placeholders."""
    magic = _CELL_MAGIC.match(source)
    if magic is not None and magic[1] not in _PYTHON_CELLS:
        return MaskedCell(None, dict(enumerate(source.split("\n"), 1)), [])
    out: list[str] = []
    masked: dict[int, str] = {}
    placeholders: list[str] = []
    scanner = _Scanner()
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    at = 0
    while at < len(lines):
        statement = _statement_for(lines[at]) if scanner.at_statement else None
        if statement is None:
            scanner.feed(lines[at])
            out.append(lines[at])
            at += 1
            continue
        for number in range(at, _end_of(lines, at)):
            body = lines[number].rstrip("\r\n")
            placeholder = f"{statement}#{_MARK}{len(masked)}#"
            statement = ""  # the further lines become comments
            masked[number + 1] = body
            placeholders.append(placeholder)
            out.append(placeholder + lines[number][len(body) :])
            at = number + 1
    return MaskedCell("".join(out), masked, placeholders)


def _statement_for(line: str) -> Optional[str]:
    """The Python statement that stands for a magic or shell line; None for other lines."""
    assignment = _ASSIGNMENT.match(line)
    if assignment is not None:
        return f"{assignment['target']}0"
    if _LINE.match(line) is None:
        return None
    body = line.rstrip("\r\n")
    indent = body[: len(body) - len(body.lstrip())]
    return f"{indent}pass"


def _end_of(lines: list[str], at: int) -> int:
    """The index after a magic line and the lines that continue it."""
    end = at + 1
    while end < len(lines) and lines[end - 1].rstrip("\r\n").endswith("\\"):
        end += 1
    return end


class _Scanner:
    """Tracks strings, brackets and backslashes to find where statements can start."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._continued = False

    @property
    def at_statement(self) -> bool:
        return not (self._depth or self._quote or self._continued)

    def feed(self, line: str) -> None:
        """Reads one more line: its quotes, its brackets, and whether the next line continues it."""
        self._continued = False
        at = 0
        while True:
            match = (_INSIDE[self._quote] if self._quote else _OUTSIDE).search(line, at)
            if match is None or match[0] == "#":
                break
            token, at = match[0], match.end()
            if token == self._quote:
                self._quote = ""
            elif token in _INSIDE:
                self._quote = token
            elif token.startswith("\\"):
                self._continued = token.endswith("\n")
            else:
                self._depth = max(self._depth + (1 if token in "([{" else -1), 0)
        if len(self._quote) == 1 and not self._continued:
            self._quote = ""  # an unclosed string; the parser reports it
