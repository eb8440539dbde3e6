"""Finds the file of the run that an import reads.

A relative import names its file. An absolute one names a file below a directory of the import path,
which is not known: the directory can be any one above the importing file, or `src` or `lib` there.
If more than one file of the run fits, the import is not resolved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Optional

from ..resolve.legacy_symbols import root_of
from ..resolve.places import LOOK_ALIKES

__all__ = ["Modules"]

_SOURCES = ("src", "lib", "python")
"""Where the packages of a project can be, below its top directory."""
_INIT = "__init__.py"


class Modules:
    """The modules of a run, by the absolute paths of their files."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = {file for file in files if file.endswith(".py")}
        self._directories: set[str] = set()
        for file in self._files:
            directory = os.path.dirname(file)
            while directory not in self._directories:
                self._directories.add(directory)
                directory = os.path.dirname(directory)
        self._tops: dict[tuple[str, str], list[str]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def find(self, path: str, importer: str) -> Optional[str]:
        """The file that `path` names as a module; None if there is none, or more than one.

        Args:
          path: an import path as it is written, such as `..amp` or `pkg.amp`.
          importer: the absolute path of the file with the import.
        """
        found = self.fitting(path, importer)
        return found[0] if len(found) == 1 and found[0] != importer else None

    def fitting(self, path: str, importer: str) -> list[str]:
        """Every file that `path` can name as a module; the arguments are those of `find`."""
        name = path.lstrip(".")
        level = len(path) - len(name)
        here = os.path.dirname(importer)
        if level:
            for _ in range(level - 1):
                here = os.path.dirname(here)
            tops = [here]
        elif not name or root_of(name) is not None:
            return []
        else:
            tops = self._tops_with(name.partition(".")[0], here)
        return [file for top in tops for file in self._at(top, name)]

    def _at(self, directory: str, name: str) -> Iterator[str]:
        below = os.path.join(directory, *name.split(".")) if name else directory
        if name and f"{below}.py" in self._files:
            yield f"{below}.py"
        if os.path.join(below, _INIT) in self._files:
            yield os.path.join(below, _INIT)

    def _tops_with(self, first: str, directory: str) -> list[str]:
        """The directories that can be on the import path and have a module `first`."""
        if first in LOOK_ALIKES:
            return []
        key = (first, directory)
        if key not in self._tops:
            tops = self._possible_tops(directory)
            self._tops[key] = [top for top in tops if self._has(top, first)]
        return self._tops[key]

    def _possible_tops(self, directory: str) -> Iterator[str]:
        while directory in self._directories:
            yield directory
            for source in _SOURCES:
                below = os.path.join(directory, source)
                if below in self._directories:
                    yield below
            above = os.path.dirname(directory)
            if above == directory:
                return
            directory = above

    def _has(self, top: str, first: str) -> bool:
        below = os.path.join(top, first)
        return below in self._directories or f"{below}.py" in self._files
