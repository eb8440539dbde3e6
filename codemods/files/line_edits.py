"""Finds the edits between two lists of lines, in a time that hardly grows faster than their number.

`difflib` needs quadratic time, or cubic time, for many equal lines; it took 68 seconds for 20,000.
"""

from __future__ import annotations

import bisect
import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["LineEdit", "line_edits"]

_DEEPEST = 8
"""How often the lines between anchors are searched for further ones."""
_MOST_PAIRS = 1_000
"""Pairs of lines up to which `difflib` compares lines without an anchor."""
_Lines = Sequence[Any]


class LineEdit(NamedTuple):
    """The lines from `start` up to `end` become the new ones from `new_start` up to `new_end`."""

    start: int
    end: int
    new_start: int
    new_end: int

    @property
    def is_empty(self) -> bool:
        """Whether it has no lines at all."""
        return self.start == self.end and self.new_start == self.new_end


def line_edits(before: _Lines, after: _Lines) -> list[LineEdit]:
    """The edits that make `after` of `before`, in order.

    Lines that are equal at both ends are left out. Of the others, those that occur once on each
    side are anchors, or else those that occur equally often, each with the one of the same number;
    the longest sequence of anchors in the same order stays. Between them it goes on in the same
    way, and at last `difflib` compares a few lines.

    Args:
      before: the lines, of any type that can be hashed.
      after: the new lines.
    """
    whole = LineEdit(0, len(before), 0, len(after))
    return list(_edits(before, after, whole, _DEEPEST))


def _edits(before: _Lines, after: _Lines, span: LineEdit, levels: int) -> Iterator[LineEdit]:
    """The edits in a part of the lines."""
    span = _trimmed(before, after, span)
    if span.start == span.end or span.new_start == span.new_end:
        yield from () if span.is_empty else (span,)
        return
    anchors = _anchors(before, after, span) if levels else []
    if not anchors:
        yield from _compared(before, after, span)
        return
    start, new_start = span.start, span.new_start
    for end, new_end in [*anchors, (span.end, span.new_end)]:
        between = LineEdit(start, end, new_start, new_end)
        if not between.is_empty:
            yield from _edits(before, after, between, levels - 1)
        start, new_start = end + 1, new_end + 1


def _trimmed(before: _Lines, after: _Lines, span: LineEdit) -> LineEdit:
    """A part without the lines that are equal at its ends."""
    start, end, new_start, new_end = span
    while start < end and new_start < new_end and before[start] == after[new_start]:
        start, new_start = start + 1, new_start + 1
    while start < end and new_start < new_end and before[end - 1] == after[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return LineEdit(start, end, new_start, new_end)


def _anchors(before: _Lines, after: _Lines, span: LineEdit) -> list[tuple[int, int]]:
    """The indices of lines that stay, in both lists."""
    places = _places(before, span.start, span.end)
    new_places = _places(after, span.new_start, span.new_end)
    same = [
        (places[line], new_places[line])
        for line in places
        if len(places[line]) == len(new_places.get(line, ()))
    ]
    unique = [(old, new) for old, new in same if len(old) == 1]
    pairs = itertools.chain.from_iterable(zip(old, new) for old, new in unique or same)
    return _longest_rising(sorted(pairs))


def _places(lines: _Lines, start: int, end: int) -> dict[Any, list[int]]:
    """The indices of each different line of a part."""
    found: dict[Any, list[int]] = collections.defaultdict(list)
    for index in range(start, end):
        found[lines[index]].append(index)
    return found


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest selection of pairs, which are sorted, in which the second numbers rise, too."""
    lowest: list[int] = []
    """The lowest last number of a selection of each length."""
    last: list[int] = []
    """The position of its last pair."""
    previous: list[int] = []
    for position, (_, number) in enumerate(pairs):
        length = bisect.bisect_left(lowest, number)
        previous.append(last[length - 1] if length else -1)
        lowest[length : length + 1] = [number]  # in place of another one, or at the end
        last[length : length + 1] = [position]
    position = last[-1] if last else -1
    chosen: list[tuple[int, int]] = []
    while position >= 0:
        chosen.append(pairs[position])
        position = previous[position]
    return chosen[::-1]


def _compared(before: _Lines, after: _Lines, span: LineEdit) -> Iterator[LineEdit]:
    """The edits in a part without anchors; if it is long, it is replaced as a whole."""
    old = before[span.start : span.end]
    new = after[span.new_start : span.new_end]
    if len(old) * len(new) > _MOST_PAIRS:
        yield span
        return
    import difflib  # late: most runs need no diff

    for tag, *at in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        start, end, new_start, new_end = at
        if tag != "equal":
            yield LineEdit(
                span.start + start, span.start + end,
                span.new_start + new_start, span.new_start + new_end,
            )  # fmt: skip
