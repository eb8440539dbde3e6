"""Finds the file of the run that an import path names.

A relative import names its file. An absolute one names a file below a directory of the import path,
which is not known: the directory can be any one above the importing file, or `src` or `lib` there.
If more than one file of the run fits, the import is not resolved.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterable, Set
from typing import Optional

from ..facts import ANY_FILE
from ..resolve.import_lines import RELATIVE
from ..resolve.legacy_symbols import root_of
from ..resolve.vocabulary import LOOK_ALIKES

__all__ = ["Modules", "may_mean", "stem_of", "words_of"]

_SOURCES = ("src", "lib", "python")
"""Where the packages of a project can be, below its top directory."""
_INIT = "__init__.py"


class Modules:
    """The modules of a run, by the absolute paths of their files.

    Args:
      files: all files of the run.
    """

    def __init__(self, files: Iterable[str]) -> None:
        self._files = frozenset(file for file in files if file.endswith(".py"))
        self._named = Counter(map(stem_of, self._files))
        self._fitting = functools.lru_cache(maxsize=None)(self._find_fitting)

    def find(self, path: str, importer: str) -> Optional[str]:
        """The file that `path` names as a module; None if there is none, or more than one.

        Args:
          path: an import path as it is written, such as `..amp` or `pkg.amp`.
          importer: the absolute path of the file with the import.
        """
        found = self._fitting(path, os.path.dirname(importer))
        return found[0] if len(found) == 1 and found[0] != importer else None

    def split(self, path: str, importer: str) -> Optional[tuple[str, list[str]]]:
        """The file of the longest module in a path, and the names below it."""
        parts = path.split(".")
        for end in range(len(parts) - 1, 0, -1):
            head = ".".join(parts[:end]) if any(parts[:end]) else "." * end
            module = self.find(head, importer)
            if module is not None:
                return module, parts[end:]
        return None

    def imported(self, path: str, importer: str) -> list[str]:
        """Every file that importing `path` may run: the module, and the packages around it.

        A path that fits nothing above the importing file may mean the only module with this
        name: what is on the import path is not known.
        """
        found = list(self._fitting(path, os.path.dirname(importer)))
        stem = path.rpartition(".")[2]
        if not found and not path.startswith(".") and self._named[stem] == 1:
            found = self._with_stem().get(stem, [])
        return [file for file in found if file != importer]

    def package_of(self, file: str) -> Optional[str]:
        """The `__init__.py` of the package of a file."""
        directory, name = os.path.split(file)
        if name == _INIT:
            directory = os.path.dirname(directory)
        above = os.path.join(directory, _INIT)
        return above if above in self._files else None

    def top_of(self, file: str) -> str:
        """The directory that must be on the import path for a file: that around its packages."""
        directory = os.path.dirname(file)
        while os.path.join(directory, _INIT) in self._files:
            directory = os.path.dirname(directory)
        return directory

    @functools.lru_cache(maxsize=None)  # noqa: B019 - there is one object for each run
    def _with_stem(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in self._files:
            found.setdefault(stem_of(file), []).append(file)
        return found

    def _find_fitting(self, path: str, here: str) -> list[str]:
        """Returns the files of the run that an import of `path` in the folder `here` may load.

        A leading dot stays in `here`, each further one goes up a folder. Another path is looked for
        below all folders from which Python may have been started. TensorFlow and its clients are
        never files of the program.
        """
        name = path.lstrip(".")
        level = len(path) - len(name)
        for _ in range(level - 1):
            here = os.path.dirname(here)
        if level:
            tops = [here.rstrip(os.sep)]
        elif name and root_of(name) is None and name.partition(".")[0] not in LOOK_ALIKES:
            tops = _tops(here)
        else:
            tops = []
        below = os.sep + name.replace(".", os.sep) if name else ""
        ends = [f"{below}.py"] * bool(name) + [f"{below}{os.sep}{_INIT}"]
        return [top + end for top in tops for end in ends if top + end in self._files]


@functools.lru_cache(maxsize=None)
def _tops(directory: str) -> list[str]:
    """The directories that can be on the import path of a file in a directory."""
    found: dict[str, None] = {}
    while True:
        top = directory.rstrip(os.sep)
        found.update(dict.fromkeys([top, *(f"{top}{os.sep}{source}" for source in _SOURCES)]))
        if os.path.dirname(directory) == directory:
            return list(found)
        directory = os.path.dirname(directory)


def stem_of(file: str) -> str:
    """The last part of the path of the module in `file`: the name of its file or package."""
    directory, name = os.path.split(file)
    return os.path.basename(directory) if name == _INIT else os.path.splitext(name)[0]


def words_of(file: str) -> frozenset[str]:
    """What an import of the module in `file` has in it: its name, or the dots before it."""
    is_package = os.path.basename(file) == _INIT
    return frozenset([stem_of(file), RELATIVE] if is_package else [stem_of(file)])


def may_mean(words: Set[str], importer: str, file: str) -> bool:
    """Whether the words in the imports of a file that cannot be parsed may mean a module.

    Args:
      words: the words.
      importer: the file with the imports.
      file: the file of the module.
    """
    directory, name = os.path.split(file)
    is_around = name == _INIT and importer.startswith(directory + os.sep)
    is_named = not words.isdisjoint({ANY_FILE, stem_of(file)})
    return is_named or (is_around and RELATIVE in words)
