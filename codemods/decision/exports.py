"""Finds what names mean that a file reads through other files, and which names others read."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator, Mapping

from ..facts import NO_FACTS, FileFacts, Links
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.qualified_names import LOCAL
from ..resolve.vocabulary import MODULE
from .modules import Modules, may_mean, words_of

__all__ = ["ReExports", "Way", "names_read", "words_for"]

_ANY = "*"
_CALLED = "()"
"""Ends the name of a function of which the returned value is meant.

tensorflow/tensor2tensor has functions that return the modules of `tf.contrib`, for lazy imports.
"""
_LONGEST_CHAIN = 100
"""Files that a name may pass through."""


class Way(enum.Enum):
    """What becomes of a name that comes through other files; of several, the first one counts."""

    UNKNOWN = "it is not bound in the run, or its meaning cannot be determined"
    KEPT = "it keeps its legacy meaning, as its place is silenced"
    MOVED = "it is a symbol or a module that is rewritten where it is bound"
    OWN = "the project defines it"


class ReExports:
    """What becomes of the legacy names that come through other files.

    Attributes:
      unread: the files whose exports are needed, and have not been read.

    Args:
      facts: the facts of all files with legacy names.
      modules: the modules of the run.
    """

    def __init__(self, facts: Mapping[str, FileFacts], modules: Modules) -> None:
        self._facts = facts
        self._modules = modules
        self._known: dict[tuple[str, str, tuple[str, ...]], Way] = {}
        self.unread: set[str] = set()
        for file, known in facts.items():
            for path in known.through:
                self.way_of(path, file)

    def way_of(self, path: str, file: str, depth: int = _LONGEST_CHAIN) -> Way:
        """What becomes of what `path` means in `file`, where other files bind it."""
        found = self._modules.split(path, file)
        if found is None or not depth:
            return Way.UNKNOWN
        module, (name, *rest) = found
        key = (module, name, tuple(rest))
        if key not in self._known:
            self._known[key] = Way.UNKNOWN  # a circle of imports binds nothing
            self._known[key] = self._way_of_export(*key, depth - 1)
        return self._known[key]

    def _way_of_export(self, module: str, name: str, rest: tuple[str, ...], depth: int) -> Way:
        exports = self._facts.get(module, NO_FACTS).exports
        if exports is None:
            self.unread.add(module)
        export = (exports or {}).get(name.removesuffix(_CALLED))
        if export is None:
            return Way.UNKNOWN
        if export.is_kept:
            return Way.KEPT
        meanings = export.returns if name.endswith(_CALLED) else export.meanings
        ways = {self._way_of_meaning(meaning, rest, module, depth) for meaning in sorted(meanings)}
        return next((way for way in Way if way in ways), Way.UNKNOWN)

    def _way_of_meaning(self, meaning: str, rest: tuple[str, ...], module: str, depth: int) -> Way:
        """Returns how a name that a module has by this meaning changes if its file is migrated.

        `meaning` is a dotted path, or a word in `<>` for a name of the program itself; `rest` is
        what is read from it. A path outside TensorFlow is followed into the module of the program
        that has it, at most `depth` times more.
        """
        if meaning.startswith("<"):
            return Way.OWN if meaning == LOCAL else Way.UNKNOWN
        if is_of_shim(meaning):
            return Way.MOVED
        if root_of(meaning) is None:
            return self.way_of(".".join([meaning, *rest]), module, depth)
        if not rest:
            return Way.UNKNOWN if legacy_of(meaning) is None else Way.MOVED
        space = namespace_of(meaning)
        is_moved = space is not None and (space.is_final or MODULE in space.name)
        return Way.MOVED if is_moved else Way.UNKNOWN


def names_read(links: Mapping[str, Links], modules: Modules) -> dict[str, frozenset[str]]:
    """The top-level names of each file that other files read; `*` for names that are not known.

    Args:
      links: the links of the files that may read names of others.
      modules: the modules of the run.
    """
    found: dict[str, set[str]] = {}
    stars: dict[str, set[str]] = {}
    for file, of_loaded in _reads_by_name(links, modules):
        found.setdefault(file, set()).update(of_loaded)
    for importer, known in sorted(links.items()):
        for file, names in _reads_of(importer, links, modules):
            found.setdefault(file, set()).update(names)
        imported = {file for path in known.stars for file in modules.imported(path, importer)}
        if imported:
            stars[importer] = imported
    _pass_through_stars(found, stars)
    return {file: frozenset(names) for file, names in found.items()}


def _reads_by_name(
    links: Mapping[str, Links], modules: Modules
) -> Iterator[tuple[str, frozenset[str]]]:
    """The files that others may load by computed names, with what these may read of them.

    Such a file is below the directory that is on the import path of the one that loads it.
    """
    tops: dict[str, frozenset[str]] = {}
    for loader, known in links.items():
        if known.reads_of_loaded:
            top = modules.top_of(loader)
            tops[top] = tops.get(top, frozenset()) | known.reads_of_loaded
    for file in links if tops else ():
        directory = os.path.dirname(file)
        while directory:
            yield file, tops.get(directory, frozenset())
            above = os.path.dirname(directory)
            directory = above if above != directory else ""


def _reads_of(
    importer: str, links: Mapping[str, Links], modules: Modules
) -> Iterator[tuple[str, Iterable[str]]]:
    """The files of which one file reads names, or may read some if it could not be parsed."""
    known = links[importer]
    for file in () if known.is_known else links:
        if file != importer and may_mean(known.imports, importer, file):
            yield file, [_ANY]
    for path, names in known.reads.items():
        for file in _files_of(path, importer, links, modules):
            yield file, names


def _files_of(path: str, importer: str, links: Mapping[str, Links], modules: Modules) -> list[str]:
    """The files that a path may mean, also through files that import them by their last name."""
    found = []
    pending = [(path, importer)]
    seen = set(pending)
    while pending and len(seen) < _LONGEST_CHAIN:
        here = pending.pop()
        files = modules.imported(*here)
        found += files
        further = () if files else _imported_by_name(*here, links, modules)
        ways = [way for way in further if way not in seen]
        pending += ways
        seen.update(ways)
    return found


def _imported_by_name(
    path: str, importer: str, links: Mapping[str, Links], modules: Modules
) -> Iterator[tuple[str, str]]:
    """The paths that a name of a file is imported from, with the file, for the path of the name."""
    split = modules.split(path, importer)
    if split is not None and len(split[1]) == 1 and split[0] in links:
        between, (name,) = split
        known = links[between]
        own = {imported for imported in known.imports if imported.rpartition(".")[2] == name}
        for imported in sorted(own | known.renamed.get(name, frozenset())):
            yield imported, between


def words_for(
    targets: Iterable[str], links: Mapping[str, Links], modules: Modules
) -> frozenset[str]:
    """The names by which files may read names of the targets.

    They are those of the modules, the other names under which files import these, and the names of
    files that import all that is in them.

    Args:
      targets: files.
      links: the links of the files that are known.
      modules: the modules of the run.
    """
    by_star: dict[str, set[str]] = {}
    for importer, known in links.items():
        for file in {file for path in known.stars for file in modules.imported(path, importer)}:
            by_star.setdefault(file, set()).add(importer)
    reached = set(targets)
    pending = list(reached)
    while pending:
        through = by_star.get(pending.pop(), set()) - reached
        reached |= through
        pending += through
    words = {word for file in reached for word in words_of(file)}
    words.update(
        name
        for importer, known in links.items()
        for name, paths in known.renamed.items()
        for path in paths
        if not reached.isdisjoint(_files_of(path, importer, links, modules))
    )
    return frozenset(words)


def _pass_through_stars(found: dict[str, set[str]], stars: Mapping[str, set[str]]) -> None:
    """Adds the names that are read through a file that imports all names of another one."""
    pending = sorted(stars)
    while pending:
        importer = pending.pop()
        names = found.get(importer, set())
        for file in sorted(stars.get(importer, ())):
            known = found.setdefault(file, set())
            if not names <= known:
                known |= names
                pending.append(file)
