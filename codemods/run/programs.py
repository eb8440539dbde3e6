"""Finds the file of the run that an import reads, and the files that one program can contain.

A relative import names its file. An absolute one names a file below a directory of the import path,
which is not known: the directory can be any one above the importing file, or `src` or `lib` there.
If more than one file of the run fits, the import is not resolved.
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable, Optional

from ..model import ALONE, FileFacts, Finding, Surroundings
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.places import LOOK_ALIKES
from ..resolve.qualified_names import LOCAL
from .words import Words, attributes_in, imports_of, stem_of, words_in

__all__ = ["Modules", "Programs", "ReExports"]

_SOURCES = ("src", "lib", "python")
"""Where the packages of a project can be, below its top directory."""
_INIT = "__init__.py"
_STEPS = 20
"""How many modules a name may pass through."""


class Modules:
    """The modules of a run, by the absolute paths of their files."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = {file for file in files if file.endswith(".py")}
        self._fitting = functools.lru_cache(maxsize=None)(self._find_fitting)

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
        return self._fitting(path, os.path.dirname(importer))

    def _find_fitting(self, path: str, here: str) -> list[str]:
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


class Programs:
    """The programs of a run, as far as import statements show.

    A program contains the file that it starts with, and all that this one imports, directly or
    through others. Any file can start one.

    Attributes:
      modules: finds the module that an import names.

    Args:
      files: the absolute paths of all files.
      words: what the search has seen in them.
      read: the bytes of a file; none if it cannot be read.
    """

    def __init__(self, files: Sequence[str], words: Words, read: Callable[[str], bytes]) -> None:
        self.modules = Modules(files)
        self._words = words
        self._read = read
        self._computed = [(os.path.dirname(file) + os.sep, file) for file in words.computed]
        self._is_alone = len(files) == 1
        self._named = Counter(map(stem_of, files))
        # Many files can start a program with the same ones, and all of them are needed.
        self._importers = functools.lru_cache(maxsize=None)(self._find_importers)
        self._with = functools.lru_cache(maxsize=None)(self._find_starts)

    def around(self, file: str, shares: bool) -> Surroundings:
        """What the other files show about one: rather too many names than too few."""
        if self._is_alone:
            return ALONE
        reads = {
            name
            for importer, imports in self._words.importers(file)
            for name in self._names_read(file, importer, imports)
        }
        return Surroundings(
            makes_optimizers=bool(self._words.makers - {file}),
            compiles=self._words.compiles,
            flags=frozenset(name.decode("utf-8", "replace") for name in self._words.flags),
            reads=frozenset(name.decode("utf-8", "replace") for name in reads),
            shares=shares,
        )

    def _names_read(self, module: str, importer: str, imports: bytes) -> Iterable[bytes]:
        imported = imports_of(module, imports)
        if imported is None:
            return words_in(self._read(importer))
        found: set[bytes] = set()
        for path, name in imported:
            if self.modules.find(path, importer) in (None, module):
                if name == "*":
                    return words_in(self._read(importer))
                found.update([name.encode()] if name else attributes_in(self._read(importer)))
        return found

    def split(self, files: Iterable[str]) -> list[list[str]]:
        """The files, in one list for each program that contains them."""
        programs: list[tuple[set[str], list[str]]] = []
        for file in files:
            starts, merged, apart = set(self._with(file)), [file], []
            for known, program in programs:
                if known.isdisjoint(starts):
                    apart.append((known, program))
                else:
                    starts |= known
                    merged += program
            programs = [*apart, (starts, merged)]
        return [sorted(program) for _, program in programs]

    def _find_starts(self, file: str) -> set[str]:
        """The files with which the programs that contain `file` start."""
        seen, pending = {file}, [file]
        while pending:
            found = [one for one in self._importers(pending.pop()) if one not in seen]
            seen.update(found)
            pending += found
        return seen

    def _find_importers(self, module: str) -> list[str]:
        found = []
        for importer, imports in self._words.importers(module):
            imported = imports_of(module, imports)
            # A string such as "pkg.amp" may name the module, and so may a cell of a notebook.
            paths = [stem_of(module)] if imported is None else [path for path, _ in imported]
            if any(self._may_be(path, importer, module) for path in paths):
                found.append(importer)
        found += [importer for folder, importer in self._computed if module.startswith(folder)]
        return [importer for importer in found if importer != module]

    def _may_be(self, path: str, importer: str, module: str) -> bool:
        """Whether an import path can be that of a module, also if it is not below the same top."""
        fitting = self.modules.fitting(path, importer)
        return module in fitting or (not fitting and self._named[stem_of(module)] == 1)


class ReExports:
    """Whether names that come through other modules of the run are right after the rewrite."""

    def __init__(self, facts: Mapping[str, FileFacts], modules: Modules) -> None:
        self._facts = facts
        self._modules = modules

    def settle(self, finding: Finding, file: str) -> bool:
        """Whether modules bind all names of a finding, and are rewritten or right as they are."""
        return bool(finding.through) and all(
            self._is_known(path, file, _STEPS) for path in finding.through
        )

    def _is_known(self, path: str, file: str, steps: int) -> bool:
        """Whether what a path means is bound in a module, and right after its rewrite."""
        parts = path.split(".")
        for end in range(len(parts) - 1, 0, -1):
            head = ".".join(parts[:end]) if any(parts[:end]) else "." * end
            module = self._modules.find(head, file)
            if module is not None:
                bound = self._facts.get(module, FileFacts()).bound.get(parts[end], ())
                rest = parts[end + 1 :]
                return bool(bound and steps) and all(
                    self._is_right(meaning, rest, module, steps - 1) for meaning in bound
                )
        return False

    def _is_right(self, meaning: str, rest: list[str], module: str, steps: int) -> bool:
        if meaning.startswith("<"):
            return meaning == LOCAL
        if is_of_shim(meaning):
            return True
        if root_of(meaning) is None:
            return self._is_known(".".join([meaning, *rest]), module, steps)
        if not rest:
            return legacy_of(meaning) is not None
        space = namespace_of(meaning)
        return space is not None and (space.is_final or "mixed_precision" in space.name)
