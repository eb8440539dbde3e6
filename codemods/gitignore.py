"""Which paths git ignores, by the rules of its ignore files.

Patterns are matched against one entry at a time, on the way down the tree: what is below an ignored
directory is never asked for, as git never looks there either.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

__all__ = ["IgnoreFiles", "pattern_to_regex"]


class _Pattern(NamedTuple):
    regex: re.Pattern[str]
    negated: bool
    directories_only: bool


class IgnoreFiles(NamedTuple):
    """The ignore files that concern one directory: its own and those above it.

    Attributes:
      base: the directory of the innermost file.
      patterns: its patterns, the last first.
      above: what the directories above say.
    """

    base: str
    patterns: tuple[_Pattern, ...] = ()
    above: Optional[IgnoreFiles] = None

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Whether the entry `path` itself is ignored; the last pattern that matches decides."""
        level: Optional[IgnoreFiles] = self
        while level is not None:
            relative = path[len(level.base.rstrip(os.sep)) + 1 :].replace(os.sep, "/")
            for pattern in level.patterns:
                if pattern.directories_only and not is_directory:
                    continue
                if pattern.regex.fullmatch(relative):
                    return not pattern.negated
            level = level.above
        return False

    def below(self, directory: str) -> IgnoreFiles:
        """What concerns the entries of `directory`, which lies below this one."""
        patterns = _read(os.path.join(directory, ".gitignore"))
        return IgnoreFiles(directory, patterns, self) if patterns else self

    @classmethod
    def around(cls, directory: str) -> IgnoreFiles:
        """What concerns the entries of `directory`, from the top of its git work tree down.

        Where that says that `directory` is itself ignored, the files above it do not count: someone
        who names it wants to see into it.
        """
        top = _work_tree(directory)
        files = cls(top, _read(os.path.join(top, ".git", "info", "exclude")))
        for between in _steps(top, directory):
            if between != top and files.ignores(between, is_directory=True):
                files = cls(directory)
                break
            files = files.below(between)
        else:
            return files
        return files.below(directory)


def _work_tree(directory: str) -> str:
    above = directory
    while True:
        if os.path.exists(os.path.join(above, ".git")):
            return above
        parent = os.path.dirname(above)
        if parent == above:
            return directory
        above = parent


def _steps(top: str, directory: str) -> Iterator[str]:
    yield top
    relative = os.path.relpath(directory, top)
    if relative != ".":
        for part in relative.split(os.sep):
            top = os.path.join(top, part)
            yield top


def _read(path: str) -> tuple[_Pattern, ...]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return ()
    patterns = [pattern for pattern in map(_pattern, lines) if pattern is not None]
    return tuple(reversed(patterns))


def _pattern(line: str) -> Optional[_Pattern]:
    line = line.rstrip("\r")
    stripped = line.rstrip(" ")
    if stripped.endswith("\\") and len(stripped) < len(line):
        stripped += " "  # a space that a backslash keeps
    if not stripped or stripped.startswith("#"):
        return None
    negated = stripped.startswith("!")
    body = stripped[1:] if negated else stripped
    directories_only = body.endswith("/")
    body = body[:-1] if directories_only else body
    try:
        return _Pattern(re.compile(pattern_to_regex(body), re.DOTALL), negated, directories_only)
    except re.error:
        return None  # git lets a broken pattern match nothing too


def pattern_to_regex(pattern: str) -> str:
    r"""The regular expression for whole relative paths, of a pattern without its `!` and last `/`.

    >>> pattern_to_regex("*.log")
    '(?:.*/)?[^/]*\\.log'
    >>> pattern_to_regex("/build")
    'build'
    >>> pattern_to_regex("docs/**/out")
    'docs/(?:.*/)?out'
    """
    anchored = "/" in pattern
    pattern = pattern[1:] if pattern.startswith("/") else pattern
    regex = "" if anchored else "(?:.*/)?"
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            regex += "(?:.*/)?"
            at += 3
        elif pattern[at:] == "**" and at > 0 and pattern[at - 1] == "/":
            regex += ".+"
            at += 2
        elif pattern[at] == "*":
            while pattern.startswith("*", at):
                at += 1
            regex += "[^/]*"
        elif pattern[at] == "?":
            regex += "[^/]"
            at += 1
        elif pattern[at] == "[":
            bracket, at = _bracket(pattern, at)
            regex += bracket
        elif pattern[at] == "\\":
            regex += re.escape(pattern[at + 1 : at + 2]) if at + 1 < len(pattern) else "(?!)"
            at += 2
        else:
            regex += re.escape(pattern[at])
            at += 1
    return regex


_CLASSES = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:xdigit:]": "0-9a-fA-F",
}


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """The regular expression of the bracket that opens at `at`, and where it ends."""
    start = at + 1
    negated = pattern[start : start + 1] in ("!", "^")
    here = start = start + 1 if negated else start
    inside = ""
    while here < len(pattern):
        if pattern[here] == "]" and here > start:
            return (f"(?!/)[^{inside}]" if negated else f"(?!/)[{inside}]"), here + 1
        named = next((name for name in _CLASSES if pattern.startswith(name, here)), "")
        if named:
            inside += _CLASSES[named]
            here += len(named)
        elif pattern[here] == "\\" and here + 1 < len(pattern):
            inside += re.escape(pattern[here + 1])
            here += 2
        else:
            inside += "-" if pattern[here] == "-" else re.escape(pattern[here])
            here += 1
    return "(?!)", len(pattern)  # never closed: matches nothing
