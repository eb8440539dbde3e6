"""Searches the bytes of a file for imports: to rule it out, or where Python cannot parse it."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from .links import LOADERS, NAMES_IN_TEXT

__all__ = [
    "RELATIVE",
    "ReaderSearch",
    "compares_version",
    "importing_lines",
    "imports_package",
    "may_give",
]

RELATIVE = "."
"""Stands for the import of a package in which a file is, as in `from .. import name`."""

_IMPORT = re.compile(rb"import\b(?<!\wimport)")
"""The word, as Python finds it fastest: an expression that begins with letters is ten times faster
than one that begins with a boundary."""
_OPEN = re.compile(rb"\bimport[\s\\]*\((?![^()#\n]*\))")
"""An import with a parenthesis that is not closed in the same line."""
_VERSIONS = (b"__version__", b"VERSION")
_SHOWING = (b"dir(", b"hasattr(", b"enabled", b"executing_eagerly", b"version")
"""What shows the version of TensorFlow, too, or whether it has something."""
_RELATIVE = re.compile(rb"from[\s\\]*\.[.\s\\]*import\b")


class ReaderSearch:
    """Finds the files that may read names of some modules.

    Such a file has a word for the module in an import, after a dot, as in `package.amp.Wrap`, or in
    a text that names it. Most files that have a word such as `model` or `utils` have it elsewhere.

    Args:
      words: the last parts of the paths of the modules, and `RELATIVE` if one is a package.
    """

    def __init__(self, words: Collection[str]) -> None:
        self._words = [os.fsencode(word) for word in words if word != RELATIVE]
        self._has_package = RELATIVE in words
        word = rb"(?:%s)(?!\w)" % b"|".join(map(re.escape, self._words))
        self._word = re.compile(rb"(?<!\w)" + word)
        # After a dot, there may be a comment before the name, which is not read. One in the next
        # line is that of a license, whose sentences end with dots.
        self._attribute = re.compile(rb"\.(?:[ \t]*#|[\s\\]*%s)" % word)

    def may_read(self, source: bytes, is_notebook: bool = False) -> bool:
        """Whether a source may read a name of one of the modules.

        Of a notebook, all lines count: they are texts of JSON.
        """
        if LOADERS.search(source) or (self._has_package and imports_package(source)):
            return True
        if not any(word in source for word in self._words):
            return False
        if is_notebook or NAMES_IN_TEXT.search(source) or self._attribute.search(source):
            return True
        return any(map(self._word.search, importing_lines(source)))


def may_give(source: bytes) -> bool:
    """Whether a source may hand on what is made of the version of TensorFlow."""
    words = (*_VERSIONS, *_SHOWING)
    return b"tensorflow" in source and any(word in source for word in words)


def compares_version(source: bytes) -> bool:
    """Whether a source may compare the version of TensorFlow.

    Of the files that hand on what is made of it, only these are looked for: many use `hasattr`.
    """
    return any(word in source for word in _VERSIONS) and b"tensorflow" in source


def imports_package(source: bytes) -> bool:
    """Whether a source may have an import such as `from .. import name`."""
    return _RELATIVE.search(source) is not None


def importing_lines(source: bytes) -> Iterator[bytes]:
    """The imports of a source, each with all lines in which it stands."""
    end = 0
    found = _IMPORT.search(source)
    while found is not None:
        line = source.rfind(b"\n", end, found.start()) + 1 or end
        start = _start_of_statement(source, end, line)
        end = _end_of_import(source, line, _end_of_line(source, found.end()))
        yield source[start:end]
        found = _IMPORT.search(source, end)


def _start_of_statement(source: bytes, least: int, start: int) -> int:
    """Where the line begins that goes on, after a backslash, in the line at `start`."""
    while start > least and source[max(least, start - 3) : start].rstrip(b"\r\n").endswith(b"\\"):
        start = source.rfind(b"\n", least, start - 1) + 1 or least
    return start


def _end_of_import(source: bytes, start: int, end: int) -> int:
    """Where the statement in a line ends: after its parenthesis, and not at a backslash."""
    last = start
    while end < len(source) and source[last:end].rstrip(b"\r").endswith(b"\\"):
        last, end = end + 1, _end_of_line(source, end + 1)
    if not _OPEN.search(source, start, end):
        return end
    # In its parenthesis, there are only names, commas and comments.
    closing = source.find(b")", end)
    while closing >= 0:
        line = source.rfind(b"\n", end - 1, closing) + 1
        end = _end_of_line(source, closing)
        if source.find(b"#", line, closing) < 0:
            return end
        closing = source.find(b")", end)
    return len(source)


def _end_of_line(source: bytes, start: int) -> int:
    end = source.find(b"\n", start)
    return len(source) if end < 0 else end
