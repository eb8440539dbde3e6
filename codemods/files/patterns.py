"""Matches paths against the patterns of an ignore file, all at once and without backtracking.

The patterns form one automaton whose states are the bits of an integer. The work for each byte of a
path is proportional to the size of the patterns, so no pattern takes exponential time. Patterns and
paths are bytes, as in git, where `?` matches one byte.
"""

from __future__ import annotations

import array
import re
import string
from collections.abc import Iterable
from typing import Optional

__all__ = ["LONGEST", "Patterns"]

LONGEST = 4096
"""Limit for a pattern in bytes; paths are not longer, and a longer pattern matches nothing."""

_SLASH = ord("/")
_SPECIAL = re.compile(rb"[*?\[\\]")


class Patterns:
    """The patterns of one ignore file.

    Each position in a pattern is a bit, which is set if the part of the pattern before it matches
    the part of the path read so far. A literal, `?` or bracket moves the bit to the next position.
    `*` keeps the bit in place up to the next slash; `**` also keeps it at slashes.

    >>> patterns = Patterns([b"*.log", b"/build/", b"!docs/**/keep.log"])
    >>> patterns.match(b"a/b.log", is_directory=False)
    True
    >>> patterns.match(b"docs/a/b/keep.log", is_directory=False)
    False
    >>> patterns.match(b"build", is_directory=False) is None
    True
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        build = _Builder()
        for line in lines:
            build.line(line)
        size = build.at
        self._build = build
        self._start = _mask(build.starts, size)
        self._enter = _mask(build.enters, size)
        self._every = _mask(build.every, size)
        self._loops = _mask(build.stars, size) | self._every
        self._accept = _mask(build.accepts, size)
        self._accept_files = self._accept & ~_mask(build.directories_only, size)
        self._negated = _mask(build.negated, size)
        self._not_slash = _mask(build.not_slash, size)
        self._steps: list[Optional[int]] = [None] * 256
        self._folder = b""
        self._in_folder = self._entered(self._start)

    def __bool__(self) -> bool:
        return self._accept != 0

    def match(self, path: bytes, is_directory: bool) -> Optional[bool]:
        """Whether the last pattern that matches `path` ignores it; None if no pattern matches."""
        cut = path.rfind(b"/") + 1
        folder = path[:cut]
        if folder != self._folder:  # a walk matches the entries of a directory together
            self._in_folder = self._read(self._entered(self._start), folder)
            self._folder = folder
        state = self._read(self._in_folder, path[cut:])
        matched = state & (self._accept if is_directory else self._accept_files)
        if not matched:
            return None
        return not (self._negated >> (matched.bit_length() - 1)) & 1

    def _read(self, state: int, path: bytes) -> int:
        for byte in path:
            step = self._steps[byte]
            if step is None:
                step = self._steps[byte] = self._step(byte)
            loops = self._every if byte == _SLASH else self._loops
            state = self._entered(((state & step) << 1) | (state & loops))
        return state

    def _entered(self, state: int) -> int:
        """`state` and what is reached without a byte: `**/` also matches zero directories."""
        entered = state & self._enter
        return state | entered << 1 | entered << 2 if entered else state

    def _step(self, byte: int) -> int:
        """The positions that match `byte`."""
        build = self._build
        positions = array.array("L", build.literals.get(byte, ()))
        if byte == _SLASH:
            return _mask(positions, build.at)
        for members, where in build.brackets.items():
            if byte in members:
                positions.extend(where)
        return self._not_slash | _mask(positions, build.at)


class _Builder:
    """Builds the positions of the patterns, grouped by what they match."""

    def __init__(self) -> None:
        self.at = 0
        self.literals: dict[int, array.array[int]] = {}
        self.brackets: dict[frozenset[int], array.array[int]] = {}
        (
            self.starts,
            self.enters,
            self.stars,
            self.every,
            self.not_slash,
            self.accepts,
            self.directories_only,
            self.negated,
        ) = (array.array("L") for _ in range(8))

    def line(self, line: bytes) -> None:
        """Adds the pattern of a line, unless it is empty or a comment."""
        line = _without_trailing_spaces(line)
        if not line or line.startswith(b"#") or len(line) > LONGEST:
            return
        negated = line.startswith(b"!")
        body = line[1:] if negated else line
        directories_only = body.endswith(b"/")
        self._pattern(body[:-1] if directories_only else body)
        self.accepts.append(self.at)
        if negated:
            self.negated.append(self.at)
        if directories_only:
            self.directories_only.append(self.at)
        self.at += 1

    def _pattern(self, pattern: bytes) -> None:
        self.starts.append(self.at)
        anchored = b"/" in pattern
        if not anchored:
            self._directories()  # it matches at any depth
        here = 1 if pattern.startswith(b"/") else 0
        plain = _SPECIAL.search(pattern, here)
        # Git compares the literal prefix of a pattern separately. So `**` matches directories at
        # the beginning, after a slash, and after such a prefix.
        first = plain.start() if plain else len(pattern)
        while here < len(pattern):
            byte = pattern[here : here + 1]
            if byte == b"*":
                separate = anchored and (here == first or pattern[here - 1] == _SLASH)
                here = self._stars(pattern, here, separate)
            elif byte == b"?":
                self._move(self.not_slash)
                here += 1
            elif byte == b"[":
                here = self._bracket(pattern, here + 1)
            else:
                here += byte == b"\\"
                if here < len(pattern):
                    self._move(self.literals.setdefault(pattern[here], array.array("L")))
                else:
                    self.at += 1  # a trailing backslash matches nothing
                here += 1

    def _stars(self, pattern: bytes, here: int, separate: bool) -> int:
        """Adds the stars that begin at `here`; returns the index after them."""
        end = here
        while pattern.startswith(b"*", end):
            end += 1
        if end == here + 1 or not separate:
            self.stars.append(self.at)
        elif pattern.startswith(b"/", end):
            if not (self.enters and self.enters[-1] == self.at - 2):
                self._directories()
            end += 1
        elif end == len(pattern) or pattern.startswith(b"\\/", end):
            self.every.append(self.at)
        else:
            self.stars.append(self.at)
        return end

    def _move(self, kind: array.array[int]) -> None:
        kind.append(self.at)
        self.at += 1

    def _directories(self) -> None:
        """Adds `**/`: any number of directories, or none. The second position is inside them."""
        self.enters.append(self.at)
        self.every.append(self.at + 1)
        self.literals.setdefault(_SLASH, array.array("L")).append(self.at + 1)
        self.at += 2

    def _bracket(self, pattern: bytes, here: int) -> int:
        """Adds the bracket whose content begins at `here`; returns the index after it."""
        members, end = _members(pattern, here)
        if members is not None:
            self.brackets.setdefault(members, array.array("L")).append(self.at)
        self.at += 1
        return end


def _members(pattern: bytes, here: int) -> tuple[Optional[frozenset[int]], int]:
    """The bytes that a bracket matches, and its end; None if it is malformed."""
    broken = None, len(pattern)
    negated = pattern[here : here + 1] in (b"!", b"^")
    here += negated
    members: set[int] = set()
    previous: Optional[int] = None  # the start of a possible range
    first = True
    while here < len(pattern):
        byte = pattern[here]
        if byte == ord("]") and not first:
            everything = range(256) if negated else ()
            return frozenset(members.symmetric_difference(everything)), here + 1
        first = False
        ranged = byte == ord("-") and previous is not None and here + 1 < len(pattern)
        if ranged and pattern[here + 1] != ord("]"):
            here += 1
            here += pattern[here] == ord("\\")
            if here >= len(pattern):
                return broken
            assert previous is not None
            members.update(range(previous, pattern[here] + 1))
            previous = None
        elif _opens_class(pattern, here):
            end = pattern.find(b"]", here + 2)
            named = _CLASSES.get(pattern[here + 2 : end - 1])
            if named is None:
                return broken
            members |= named
            here = end
            previous = None
        else:
            here += byte == ord("\\")
            if here >= len(pattern):
                return broken
            members.add(pattern[here])
            previous = pattern[here]
        here += 1
    return broken


def _opens_class(pattern: bytes, here: int) -> bool:
    """Whether a named class begins at `here`: `[:`, and a colon before the next `]`."""
    if not pattern.startswith(b"[:", here):
        return False
    end = pattern.find(b"]", here + 2)
    return end < 0 or (end > here + 2 and pattern[end - 1] == ord(":"))


def _without_trailing_spaces(line: bytes) -> bytes:
    """`line` without trailing spaces, except those escaped by a backslash."""
    if not line.endswith(b" "):
        return line
    kept = len(line.rstrip(b" "))
    backslashes = kept - len(line[:kept].rstrip(b"\\"))
    return line[: kept + backslashes % 2]


def _mask(positions: array.array[int], size: int) -> int:
    bits = bytearray(size // 8 + 1)
    for position in positions:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


_CLASSES = {
    name: frozenset(characters.encode())
    for name, characters in {
        b"alnum": string.ascii_letters + string.digits,
        b"alpha": string.ascii_letters,
        b"blank": " \t",
        b"cntrl": "".join(map(chr, range(32))) + "\x7f",
        b"digit": string.digits,
        b"graph": string.ascii_letters + string.digits + string.punctuation,
        b"lower": string.ascii_lowercase,
        b"print": string.ascii_letters + string.digits + string.punctuation + " ",
        b"punct": string.punctuation,
        b"space": " \t\n\v\f\r",
        b"upper": string.ascii_uppercase,
        b"xdigit": string.hexdigits,
    }.items()
}
