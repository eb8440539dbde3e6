"""Lines of a notebook cell that IPython understands and Python does not, hidden and put back."""

from __future__ import annotations

import re
from typing import Optional

__all__ = ["Hidden", "hide"]

_PYTHON_CELLS = frozenset({"time", "timeit", "capture", "prun"})
"""Cell magics whose body is Python that runs in the notebook's own namespace."""

_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE = re.compile(r"[ \t]*(?:[%!?]|[\w.]+\?{1,2}[ \t]*(?:\r?\n|\Z))")
_ASSIGNMENT = re.compile(r"(?P<target>[ \t]*[\w.]+(?:[ \t]*,[ \t]*[\w.]+)*[ \t]*=[ \t]*)[!%]")
_STRING = re.compile(r"(?i:[rbuf]{0,2})(?P<quote>'''|\"\"\"|'|\")")
_MARK = "lossscale-hidden-line-"


class Hidden:
    """A cell with its magic and shell lines replaced by statements of as many lines.

    Attributes:
      source: what Python may parse; None where the whole cell is in another language.
      lines: the lines that it does not get to see, by their numbers from 1.
    """

    def __init__(self, source: Optional[str], lines: dict[int, str], stands_in: list[str]) -> None:
        self.source = source
        self.lines = lines
        self._stands_in = stands_in

    def restore(self, source: str) -> str:
        """`source` with the hidden lines back in their places.

        Raises:
          ValueError: a stand-in is not there exactly once.
        """
        for stand_in, line in zip(self._stands_in, self.lines.values()):
            if source.count(stand_in) != 1:
                raise ValueError(f"the line {line.strip()!r} would get lost")
            source = source.replace(stand_in, line)
        return source


def hide(source: str) -> Hidden:
    """The cell without what only IPython understands."""
    magic = _CELL_MAGIC.match(source)
    if magic is not None and magic[1] not in _PYTHON_CELLS:
        return Hidden(None, dict(enumerate(source.split("\n"), 1)), [])
    out: list[str] = []
    hidden: dict[int, str] = {}
    stands_in: list[str] = []
    scanner = _Scanner()
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    at = 0
    while at < len(lines):
        line = lines[at]
        assignment = _ASSIGNMENT.match(line)
        if scanner.at_statement and (_LINE.match(line) or assignment):
            end = at + 1
            while end < len(lines) and lines[end - 1].rstrip("\r\n").endswith("\\"):
                end += 1
            for number in range(at, end):
                body = lines[number].rstrip("\r\n")
                stand_in = f"#{_MARK}{len(hidden)}#"
                if number == at:
                    indent = body[: len(body) - len(body.lstrip())]
                    statement = f"{assignment['target']}0" if assignment else f"{indent}pass"
                    stand_in = statement + stand_in
                hidden[number + 1] = body
                stands_in.append(stand_in)
                out.append(stand_in + lines[number][len(body) :])
            at = end
        else:
            scanner.feed(line)
            out.append(line)
            at += 1
    return Hidden("".join(out), hidden, stands_in)


class _Scanner:
    """Follows strings, brackets and backslashes, to know where a statement can start."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._continued = False

    @property
    def at_statement(self) -> bool:
        return not (self._depth or self._quote or self._continued)

    def feed(self, line: str) -> None:
        self._continued = False
        at = 0
        while at < len(line):
            if self._quote:
                at = self._string(line, at)
                continue
            string = _STRING.match(line, at)
            if string:
                self._quote = string["quote"]
                at = string.end()
                continue
            character = line[at]
            if character == "#":
                return
            if character == "\\" and not line[at + 1 :].strip():
                self._continued = True
                return
            self._depth += (character in "([{") - (character in ")]}")
            self._depth = max(self._depth, 0)
            at += 1
        if len(self._quote) == 1:
            self._quote = ""  # an unclosed string: a syntax error that is not ours to find

    def _string(self, line: str, at: int) -> int:
        if line.startswith(self._quote, at):
            at += len(self._quote)
            self._quote = ""
            return at
        if line[at] == "\\":
            if len(self._quote) == 1 and line[at + 1 :].strip("\r\n") == "":
                self._continued = True
                return len(line) + 1
            return at + 2
        return at + 1
