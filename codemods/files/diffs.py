"""Diffs of bytes: for `git apply` and `patch`, and as edits in whole lines."""

from __future__ import annotations

import difflib
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..model import Replacement
from .printable import quoted

__all__ = ["colored", "replacements", "unified"]

_CONTEXT = 3
"""Equal lines around a hunk."""
_LONG = 1_000
"""From this number of lines on, frequent lines are left out of the search for equal ones."""
_NO_NEWLINE = b"\\ No newline at end of file\n"
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line with its end as editors count them: CRLF, LF or CR."""


def unified(path: str, old: bytes, new: bytes) -> bytes:
    """The diff from `old` to `new` for `git apply` and `patch -p1`; keeps line ends."""
    name = path.replace("\\", "/") if os.sep == "\\" else path
    before, after = (quoted(side + name).encode("utf-8") for side in ("a/", "b/"))
    matcher = _Matcher(_lines(old), _lines(new))
    hunks = list(map(matcher.hunk, matcher.get_grouped_opcodes(_CONTEXT)))
    if not hunks:
        return b""
    head = [b"--- " + before + b"\n", b"+++ " + after + b"\n"]
    lines = itertools.chain(head, *hunks)
    return b"".join(line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE for line in lines)


class _Matcher(difflib.SequenceMatcher[Any]):
    """Compares lines, first from both ends, which takes no time.

    `difflib` needs quadratic time for many equal lines. It leaves out frequent lines of long texts,
    but then a diff has all of them. A file is usually edited in a few places that lie together.
    """

    def __init__(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        self.before, self.after = before, after
        self._first = _equal(before, after, min(len(before), len(after)))
        shorter = min(len(before), len(after)) - self._first
        self._last = _equal(before[::-1], after[::-1], shorter)
        old = before[self._first : len(before) - self._last]
        new = after[self._first : len(after) - self._last]
        super().__init__(None, old, new, autojunk=max(len(old), len(new)) > _LONG)

    def get_opcodes(self) -> list[Any]:
        """The edits, of whole lines."""
        start, end = self._first, self._last
        found = [(tag, *(start + index for index in at)) for tag, *at in super().get_opcodes()]
        if start:
            found.insert(0, ("equal", 0, start, 0, start))
        if end:
            old, new = len(self.before), len(self.after)
            found.append(("equal", old - end, old, new - end, new))
        return found

    def hunk(self, group: Sequence[Any]) -> Iterator[bytes]:
        """The lines of a hunk of a unified diff."""
        (_, first, _, new_first, _), (_, _, last, _, new_last) = group[0], group[-1]
        yield f"@@ -{_span(first, last)} +{_span(new_first, new_last)} @@\n".encode()
        for tag, start, end, new_start, new_end in group:
            sign = b" " if tag == "equal" else b"-"
            yield from (sign + line for line in self.before[start:end])
            if tag != "equal":
                yield from (b"+" + line for line in self.after[new_start:new_end])


def _equal(some: Sequence[Any], others: Sequence[Any], most: int) -> int:
    """How many lines are equal at the beginning."""
    pairs = itertools.islice(zip(some, others), most)
    return next((number for number, (old, new) in enumerate(pairs) if old != new), most)


def _span(first: int, last: int) -> str:
    """A range of lines as in the header of a hunk."""
    count = last - first
    start = first + 1 if count else first
    return str(start) if count == 1 else f"{start},{count}"


def _lines(source: bytes) -> list[bytes]:
    # Not splitlines(): form feeds and lone carriage returns do not end a line of a diff.
    lines = source.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def replacements(old: bytes, new: bytes) -> tuple[Replacement, ...]:
    """The edits from `old` to `new`, in whole lines; none if one of them is not UTF-8."""
    try:
        before, after = (_LINE.findall(source.decode("utf-8-sig")) for source in (old, new))
    except UnicodeDecodeError:
        return ()
    found = []
    for tag, start, end, new_start, new_end in _Matcher(before, after).get_opcodes():
        if tag != "equal":
            text = "".join(after[new_start:new_end])
            last = before[end - 1] if end > start else "\n"
            if last.endswith(("\n", "\r")):
                found.append(Replacement(start + 1, 1, end + 1, 1, text))
            else:  # the last line of the file, without a line end
                found.append(Replacement(start + 1, 1, end, len(last) + 1, text))
    return tuple(found)


def colored(diff: bytes) -> bytes:
    """The diff in colors: headers bold, old lines red, new lines green."""
    colors = {b"---": b"1", b"+++": b"1", b"@@": b"36", b"-": b"31", b"+": b"32"}
    out = []
    for line in diff.split(b"\n"):
        for start, color in colors.items():
            if line.startswith(start):
                line = b"\x1b[" + color + b"m" + line + b"\x1b[0m"
                break
        out.append(line)
    return b"\n".join(out)
