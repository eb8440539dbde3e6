"""The edits of a program as text: hunks like those of `diff -U0`, which a person reviews.

A hunk is `@@ -FIRST,REMOVED +FIRST,ADDED @@` with the lines that are removed and added.
"""

import difflib
import re
from typing import Iterator, List, NamedTuple, Sequence, Tuple

HUNK = re.compile(r"@@ -(\d+),(\d+) \+\d+,(\d+) @@")
REMOVED, ADDED = "-", "+"


class Hunk(NamedTuple):
    """Lines that replace others; `first` counts from 0."""

    first: int
    removed: List[str]
    added: List[str]


def edits_between(before: str, after: str) -> Iterator[str]:
    """Yields the lines of the hunks that make `after` of `before`."""
    old, new = before.split("\n"), after.split("\n")
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for operation, first, end, new_first, new_end in matcher.get_opcodes():
        if operation == "equal":
            continue
        removed, added = end - first, new_end - new_first
        yield f"@@ -{first + 1},{removed} +{new_first + 1},{added} @@"
        for line in old[first:end]:
            yield REMOVED + line
        for line in new[new_first:new_end]:
            yield ADDED + line


def read_hunk(lines: Sequence[str], place: int) -> Tuple[Hunk, int]:
    """Returns the hunk whose head is `lines[place]`, and the place after it."""
    head = HUNK.match(lines[place])
    if head is None:
        raise ValueError(f"not the head of a hunk: {lines[place]!r}")
    first, count_removed, count_added = map(int, head.groups())
    end = place + 1 + count_removed
    removed = [_without_mark(line, REMOVED) for line in lines[place + 1 : end]]
    added = [_without_mark(line, ADDED) for line in lines[end : end + count_added]]
    return Hunk(first - 1, removed, added), end + count_added


def edited(before: str, hunks: Sequence[Hunk]) -> str:
    """Returns a text after its edits.

    Raises:
      ValueError: the edits are those of another text.
    """
    old = before.split("\n")
    new = []  # type: List[str]
    place = 0
    for hunk in hunks:
        end = hunk.first + len(hunk.removed)
        if old[hunk.first : end] != hunk.removed:
            raise ValueError(f"line {hunk.first + 1} is not {hunk.removed!r}")
        new += old[place : hunk.first] + hunk.added
        place = end
    return "\n".join(new + old[place:])


def _without_mark(line: str, mark: str) -> str:
    if not line.startswith(mark):
        raise ValueError(f"a line of a hunk begins with {mark!r}, not {line!r}")
    return line[1:]
