"""Finds what names mean that a file reads through other files, and which names others read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..facts import ANY_FILE, FileFacts, Links
from ..resolve.legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from ..resolve.qualified_names import LOCAL
from .modules import Modules, stem_of

__all__ = ["ReExports", "names_read"]

_ANY = "*"
_CALLED = "()"
"""Ends the name of a function of which the returned value is meant."""
_LONGEST_CHAIN = 100
"""Files that a name may pass through."""


class ReExports:
    """Whether legacy names that come through other files are right after the rewrite there.

    Args:
      facts: the facts of all files with legacy names.
      modules: the modules of the run.
    """

    def __init__(self, facts: Mapping[str, FileFacts], modules: Modules) -> None:
        self._facts = facts
        self._modules = modules
        self._known: dict[tuple[str, str, tuple[str, ...]], bool] = {}

    def is_settled(self, path: str, file: str, depth: int = _LONGEST_CHAIN) -> bool:
        """Whether what `path` means in `file` is bound in other files, and right there.

        A name that keeps its legacy meaning, as a comment silences its place, is not right.
        """
        found = self._modules.split(path, file)
        if found is None or not depth:
            return False
        module, (name, *rest) = found
        key = (module, name, tuple(rest))
        if key not in self._known:
            self._known[key] = False  # a circle of imports binds nothing
            self._known[key] = self._is_right(*key, depth - 1)
        return self._known[key]

    def _is_right(self, module: str, name: str, rest: tuple[str, ...], depth: int) -> bool:
        export = self._facts.get(module, FileFacts()).exports.get(name.removesuffix(_CALLED))
        if export is None or export.is_kept:
            return False
        meanings = export.returns if name.endswith(_CALLED) else export.meanings
        return bool(meanings) and all(
            self._is_meaning_right(meaning, rest, module, depth) for meaning in sorted(meanings)
        )

    def _is_meaning_right(
        self, meaning: str, rest: tuple[str, ...], module: str, depth: int
    ) -> bool:
        if meaning.startswith("<"):
            return meaning == LOCAL
        if is_of_shim(meaning):
            return True
        if root_of(meaning) is None:
            return self.is_settled(".".join([meaning, *rest]), module, depth)
        if not rest:
            return legacy_of(meaning) is not None
        space = namespace_of(meaning)
        return space is not None and (space.is_final or "mixed_precision" in space.name)


def names_read(links: Mapping[str, Links], modules: Modules) -> dict[str, frozenset[str]]:
    """The top-level names of each file that other files read; `*` for names that cannot be told.

    Args:
      links: the links of the files that may read names of others.
      modules: the modules of the run.
    """
    found: dict[str, set[str]] = {}
    stars: dict[str, set[str]] = {}
    for importer, known in sorted(links.items()):
        for file, names in _reads_of(importer, links, modules):
            found.setdefault(file, set()).update(names)
        imported = {file for path in known.stars for file in modules.imported(path, importer)}
        if imported:
            stars[importer] = imported
    _pass_through_stars(found, stars)
    return {file: frozenset(names) for file, names in found.items()}


def _reads_of(
    importer: str, links: Mapping[str, Links], modules: Modules
) -> Iterator[tuple[str, Iterable[str]]]:
    """The files of which one file reads names, or may read some if it could not be parsed."""
    known = links[importer]
    for file in () if known.is_known else links:
        is_named = not known.imports.isdisjoint({ANY_FILE, stem_of(file)})
        if is_named and file != importer:
            yield file, [_ANY]
    for path, names in known.reads.items():
        for file in modules.imported(path, importer):
            yield file, names


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
