"""Groups the files of a run into programs: what one process can run together.

A program contains the file that it starts with, and all that this one imports, directly or through
others. Any file can start one, and a file can belong to several; then these are decided together.

A file that no import statement reaches belongs to the program of its package or folder, if
something in the run loads files by name: `import_module(name)`, a registry that lists a folder,
`runpy`, `exec`, entry points. A `conftest.py` belongs to the tests below its folder.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Collection, Iterable, Mapping

from ..facts import OF_IMPORTED, Links
from .modules import Modules, may_mean

__all__ = ["programs_of"]

_CONFTEST = "conftest.py"


def programs_of(
    files: Collection[str],
    links: Mapping[str, Links],
    modules: Modules,
    are_all_read: bool = True,
) -> tuple[list[frozenset[str]], dict[str, frozenset[str]]]:
    """The files to decide about, in one set for each program, with the others of the program.

    The others are the files that lead to one to decide about. What these import besides is none of
    their program, but for `OF_IMPORTED`: a policy decides what class of optimizer their training
    steps get, and which of their layers compute by it.

    Args:
      files: the files to decide about.
      links: the links of all files of the run that may connect them.
      modules: the modules of the run.
      are_all_read: whether `links` has all these; otherwise files may have more in common, never
        less, and which of them no import reaches is not known.

    Returns:
      The programs; and for each file of the run, files with a trait of `OF_IMPORTED` that it leads
      to by imports.
    """
    graph = _Graph(links, modules)
    graph.add_files_loaded_by_name(files, are_all_read)
    leading = graph.reaching(files)
    union = _Union()
    for importer, imported in graph.edges():
        # A file that imports two modules runs both, if they lead to files to decide about.
        if imported in leading:
            union.join(importer, imported)
    programs: dict[str, set[str]] = {}
    for file in [*files, *leading]:
        programs.setdefault(union.find(file), set()).add(file)
    return list(map(frozenset, programs.values())), _with_traits(graph, links)


def _with_traits(graph: _Graph, links: Mapping[str, Links]) -> dict[str, frozenset[str]]:
    """For each file, one file for each trait of `OF_IMPORTED` that it leads to by imports."""
    found: dict[str, frozenset[str]] = {}
    for trait in OF_IMPORTED:
        files = (file for file, known in sorted(links.items()) if trait in known.traits)
        for importer, file in graph.first_reached(files).items():
            found[importer] = found.get(importer, frozenset()) | {file}
    return found


class _Graph:
    """Which file imports which."""

    def __init__(self, links: Mapping[str, Links], modules: Modules) -> None:
        self._links = links
        self._modules = modules
        self._importers: dict[str, set[str]] = {}
        for file in sorted(links):
            for imported in self._imported(file):
                self._add(file, imported)

    def _imported(self, file: str) -> Iterable[str]:
        links = self._links[file]
        if not links.is_known:  # it may import every module of which it has the name
            return [other for other in self._links if may_mean(links.imports, file, other)]
        found = {
            imported for path in links.imports for imported in self._modules.imported(path, file)
        }
        package = self._modules.package_of(file)
        return found | ({package} if package is not None else set())

    def _add(self, importer: str, imported: str) -> None:
        if importer != imported:
            self._importers.setdefault(imported, set()).add(importer)

    def edges(self) -> Iterable[tuple[str, str]]:
        """Each file with each module that it imports."""
        for imported, importers in self._importers.items():
            for importer in importers:
                yield importer, imported

    def reaching(self, files: Iterable[str]) -> set[str]:
        """The files from which an import leads to one of `files`, and these."""
        seen = set(files)
        pending = collections.deque(seen)
        while pending:
            found = self._importers.get(pending.popleft(), set()) - seen
            seen |= found
            pending.extend(found)
        return seen

    def first_reached(self, files: Iterable[str]) -> dict[str, str]:
        """For each file that leads to one of `files` by imports, one that it leads to."""
        found = {file: file for file in files}
        pending = collections.deque(found)
        while pending:
            imported = pending.popleft()
            for importer in sorted(self._importers.get(imported, set()) - found.keys()):
                found[importer] = found[imported]
                pending.append(importer)
        return found

    def add_files_loaded_by_name(self, files: Iterable[str], are_all_read: bool) -> None:
        """Connects files with those that may load them, if no import reaches them or a registry."""
        conftests = [file for file in self._links if os.path.basename(file) == _CONFTEST]
        for conftest in conftests:
            self._add_tests(conftest)
        loaders = [file for file, links in sorted(self._links.items()) if links.loads]
        if not loaders:
            return
        unreached = [file for file in files if are_all_read and not self._importers.get(file)]
        tops_of = {loader: self._tops_of(loader) for loader in loaders} if unreached else {}
        self._add_registries(loaders, files)
        self._add_neighbors(unreached)
        for loader, tops in tops_of.items():
            self._add_below(loader, tops, unreached)

    def _add_below(self, loader: str, tops: Iterable[str], files: Iterable[str]) -> None:
        """Connects a loader with the files that are below its import path."""
        for file in files:
            if any(_is_below(os.path.dirname(file), top) for top in tops):
                self._add(loader, file)

    def _add_registries(self, loaders: Iterable[str], files: Iterable[str]) -> None:
        """Connects a registry with the files below its folder, which tests may also import."""
        for loader in loaders:
            folder = os.path.dirname(loader)
            for file in files:
                if _is_below(os.path.dirname(file), folder):
                    self._add(loader, file)

    def _add_neighbors(self, unreached: Iterable[str]) -> None:
        """Connects a file that no import reaches with the other files of its folder."""
        folders: dict[str, list[str]] = {}
        for file in self._links:
            folders.setdefault(os.path.dirname(file), []).append(file)
        for file in unreached:
            for other in folders.get(os.path.dirname(file), ()):
                self._add(other, file)

    def _add_tests(self, conftest: str) -> None:
        """Connects a `conftest.py` with the files in and below its folder, which pytest runs."""
        folder = os.path.dirname(conftest)
        for file in self._links:
            if _is_below(os.path.dirname(file), folder):
                self._add(file, conftest)

    def _tops_of(self, loader: str) -> set[str]:
        """The directories that are on the import path of the programs with a loader."""
        return {self._modules.top_of(file) for file in self.reaching([loader])}


def _is_below(directory: str, top: str) -> bool:
    return directory == top or directory.startswith(top.rstrip(os.sep) + os.sep)


class _Union:
    """Disjoint sets of files."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def find(self, file: str) -> str:
        """The representative of the set of a file."""
        top = file
        while top in self._above:
            top = self._above[top]
        while file != top:
            self._above[file], file = top, self._above[file]
        return top

    def join(self, first: str, second: str) -> None:
        """Joins the sets of two files."""
        one, other = sorted((self.find(first), self.find(second)))
        if one != other:
            self._above[other] = one
