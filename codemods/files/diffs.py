"""Diffs of bytes: for `git apply` and `patch`, and as edits in whole lines."""

from __future__ import annotations

import difflib
import os
import re

from ..model import Replacement
from .printable import quoted

__all__ = ["colored", "replacements", "unified"]

_NO_NEWLINE = b"\\ No newline at end of file\n"
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
"""A line with its end as editors count them: CRLF, LF or CR."""


def unified(path: str, old: bytes, new: bytes) -> bytes:
    """The diff from `old` to `new` for `git apply` and `patch -p1`; keeps line ends."""
    name = path.replace("\\", "/") if os.sep == "\\" else path
    before, after = (quoted(side + name).encode("utf-8") for side in ("a/", "b/"))
    lines = difflib.diff_bytes(
        difflib.unified_diff, _lines(old), _lines(new), before, after, lineterm=b"\n"
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE for line in lines)


def _lines(source: bytes) -> list[bytes]:
    # Not splitlines(): form feeds and lone carriage returns do not end a line of a diff.
    lines = source.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def replacements(old: bytes, new: bytes) -> tuple[Replacement, ...]:
    """The edits from `old` to `new`, in whole lines; none if one of them is not UTF-8."""
    try:
        before, after = (_LINE.findall(one.decode("utf-8-sig")) for one in (old, new))
    except UnicodeDecodeError:
        return ()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    found = []
    for tag, start, end, new_start, new_end in matcher.get_opcodes():
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
