"""Diffs of bytes: for `git apply` and `patch`, and as edits in whole lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import AnyStr

from ..model import Replacement
from .line_edits import LineEdit, line_edits
from .printable import quoted

__all__ = ["colored", "replacements", "unified"]

_CONTEXT = 3
"""Equal lines around a hunk."""
_NO_NEWLINE = b"\\ No newline at end of file\n"
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line with its end as editors count them: CRLF, LF or CR."""


def unified(path: str, old: bytes, new: bytes) -> bytes:
    """The diff from `old` to `new` for `git apply` and `patch -p1`; keeps line ends."""
    name = path.replace("\\", "/") if os.sep == "\\" else path
    before, after = (quoted(side + name).encode("utf-8") for side in ("a/", "b/"))
    start, old_part, new_part = _changed(old, new, b"\n")
    number = old.count(b"\n", 0, start)
    hunks = list(_hunks(_lines(old_part), _lines(new_part), number))
    lines = [b"--- " + before + b"\n", b"+++ " + after + b"\n", *hunks] if hunks else []
    return b"".join(line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE for line in lines)


def _changed(old: AnyStr, new: AnyStr, newline: AnyStr) -> tuple[int, AnyStr, AnyStr]:
    """The part of two texts that is different, in whole lines, with equal lines around it.

    Most of a file stays. Without that, its lines can take a hundred times as much memory as its
    bytes.

    Returns:
      Where the part begins in both texts, and the part of each.
    """
    start = _start_of_line(old, _equal(old, new), newline)
    shorter = min(len(old), len(new)) - start
    last = _equal_at_end(old[start:], new[start:], shorter)
    end = _end_of_line(old, len(old) - last, newline)
    return start, old[start:end], new[start : len(new) - (len(old) - end)]


def _equal(old: AnyStr, new: AnyStr) -> int:
    """The length of the beginning that two texts share."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _equal_at_end(old: AnyStr, new: AnyStr, most: int) -> int:
    """The length of the end that two texts share."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        is_equal = (
            old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]
        )
        if is_equal:
            low = middle
        else:
            high = middle - 1
    return low


def _start_of_line(text: AnyStr, at: int, newline: AnyStr) -> int:
    """The start of the line at an index, and of the equal lines that a diff shows before it."""
    for _ in range(_CONTEXT + 1):
        found = text.rfind(newline, 0, at)
        if found < 0:
            return 0
        at = found
    return at + 1


def _end_of_line(text: AnyStr, at: int, newline: AnyStr) -> int:
    """The end of the line at an index, and of the equal lines that a diff shows after it."""
    for _ in range(_CONTEXT + 1):
        found = text.find(newline, at)
        if found < 0:
            return len(text)
        at = found + 1
    return at


def _hunks(before: Sequence[bytes], after: Sequence[bytes], number: int) -> Iterator[bytes]:
    """The lines of all hunks; `number` counts the lines of the file before these."""
    for group in _groups(line_edits(before, after)):
        first, last = group[0], group[-1]
        start = max(first.start - _CONTEXT, 0)
        end = min(last.end + _CONTEXT, len(before))
        new_start = first.new_start - (first.start - start)
        new_end = last.new_end + (end - last.end)
        old_span = _span(number + start, number + end)
        new_span = _span(number + new_start, number + new_end)
        yield f"@@ -{old_span} +{new_span} @@\n".encode()
        at = start
        for edit in group:
            yield from (b" " + line for line in before[at : edit.start])
            yield from (b"-" + line for line in before[edit.start : edit.end])
            yield from (b"+" + line for line in after[edit.new_start : edit.new_end])
            at = edit.end
        yield from (b" " + line for line in before[at:end])


def _groups(edits: Iterable[LineEdit]) -> Iterator[list[LineEdit]]:
    """The edits of each hunk: those of which the equal lines around them meet."""
    group: list[LineEdit] = []
    for edit in edits:
        if group and edit.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


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
        old_text, new_text = (source.decode("utf-8-sig") for source in (old, new))
    except UnicodeDecodeError:
        return ()
    begin, *parts = _changed(old_text, new_text, "\n")
    number = _count_lines(old_text, begin)
    before, after = (_LINE.findall(part) for part in parts)
    found = []
    for start, end, new_start, new_end in line_edits(before, after):
        text = "".join(after[new_start:new_end])
        last = before[end - 1] if end > start else "\n"
        first_line, last_line = number + start + 1, number + end
        if last.endswith(("\n", "\r")):
            found.append(Replacement(first_line, 1, last_line + 1, 1, text))
        else:  # the last line of the file, without a line end
            found.append(Replacement(first_line, 1, last_line, len(last) + 1, text))
    return tuple(found)


def _count_lines(text: str, end: int) -> int:
    """How many lines end before an index."""
    both = text.count("\r\n", 0, end)
    return text.count("\n", 0, end) + text.count("\r", 0, end) - both


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
