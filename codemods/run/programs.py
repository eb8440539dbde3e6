"""Finds out which files of a run one program can contain together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Callable

from .import_words import ImportWords, imports_of, stem_of
from .modules import Modules

__all__ = ["Programs"]


class Programs:
    """The programs of a run, as far as import statements show.

    A program contains the file that it starts with, and all that this one imports, directly or
    through others. Any file can start one.

    Args:
      files: the absolute paths of all files.
      imports: the words of their import statements.
      modules: finds the module that an import names.
      read: the bytes of a file; none if it cannot be read.
      computed: the files that import modules by computed names; they may import all files in their
        directory and below it.
    """

    def __init__(
        self,
        files: Iterable[str],
        imports: ImportWords,
        modules: Modules,
        read: Callable[[str], bytes],
        computed: Iterable[str] = (),
    ) -> None:
        self._computed = [(os.path.dirname(file) + os.sep, file) for file in computed]
        self._imports = imports
        self._modules = modules
        self._read = read
        self._named = Counter(map(stem_of, files))
        self._starts: dict[str, frozenset[str]] = {}

    def split(self, files: Iterable[str]) -> list[list[str]]:
        """The files, in one list for each program that contains them."""
        program_of: dict[str, list[str]] = {}
        programs: list[list[str]] = []
        for file in files:
            starts = self._with(file)
            merged = [file]
            for found in {id(one): one for one in map(program_of.get, starts) if one}.values():
                merged += found
                found.clear()
            programs.append(merged)
            for one in merged:
                program_of.update(dict.fromkeys(self._with(one), merged))
        return [sorted(program) for program in programs if program]

    def _with(self, file: str) -> frozenset[str]:
        """The files with which the programs that contain `file` start."""
        if file not in self._starts:
            seen, pending = {file}, [file]
            while pending:
                module = pending.pop()
                found = [one for one in self._importers(module) if one not in seen]
                seen.update(found)
                pending += found
            self._starts[file] = frozenset(seen)
        return self._starts[file]

    def _importers(self, module: str) -> Iterator[str]:
        for one in self._imports.importers(module):
            if self._may_import(one, module):
                yield one
        for folder, one in self._computed:
            if module.startswith(folder) and module != one:
                yield one

    def _may_import(self, file: str, module: str) -> bool:
        imported = imports_of(module, self._read(file))
        # A string such as "pkg.amp" may name the module, and so may a cell of a notebook.
        paths = [stem_of(module)] if imported is None else [path for path, _ in imported]
        return any(self._may_be(path, file, module) for path in paths)

    def _may_be(self, path: str, file: str, module: str) -> bool:
        """Whether an import path can be that of a module, also if it is not below the same top."""
        fitting = self._modules.fitting(path, file)
        return module in fitting or (not fitting and self._named[stem_of(module)] == 1)
