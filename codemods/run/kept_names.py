"""Finds the names of modules that keep their meaning, because other files may still read them.

A name of one file can be read by another in a way that cannot be resolved or rewritten: `getattr`,
a notebook, a star import beside another. Rewriting the import of that name would then change what
the other file gets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable, Optional

from ..resolve.neighbors import Kept
from .import_words import ImportWords
from .module_facts import ModuleFacts
from .names import WHOLE, Export, Names

__all__ = ["KeptNames"]


class KeptNames:
    """The names that keep their meaning, by the file that binds them.

    Args:
      names: what the top-level names of the run mean.
      imports: the words of the import statements of all files.
      may_rewrite: whether a file may be rewritten.
      shown: converts an absolute path to the one in reports.
      read: the bytes of a file; none if it cannot be read.
    """

    def __init__(
        self,
        names: Names,
        imports: ImportWords,
        may_rewrite: Callable[[str], bool],
        shown: Callable[[str], str],
        read: Callable[[str], bytes],
    ) -> None:
        self._names = names
        self._imports = imports
        self._may_rewrite = may_rewrite
        self._shown = shown
        self._read = read
        self._kept: dict[str, dict[str, Kept]] = {}

    def of(self, file: str) -> dict[str, Kept]:
        """The names of a file that keep their meaning, each with the file that reads it."""
        return dict(self._kept.get(file, {}))

    def keep_what_may_be_read(self, importers: Sequence[str]) -> None:
        """Finds the names that a file reads in ways that cannot be resolved or rewritten."""
        exports = self._names.exports()
        for file in importers:
            self._names.mark_imports(file, exports)
            if self._names.has_facts(file):
                found = list(self._names.reads(file, exports))
                if self._may_rewrite(file):
                    found = [one for one in found if one.name == WHOLE]
                    found += self._names.uncertain(file, exports)
            else:
                found = list(self._mentioned(file, exports))
            self.keep(file, found, is_certain=False)

    def keep(self, reader: str, found: Iterable[Export], is_certain: bool) -> None:
        """Keeps the meaning of names that `reader` reads, also through other modules."""
        exports = self._names.exports()
        pending = sorted(found)
        seen = set(pending)
        while pending:
            one = pending.pop()
            names = exports.get(one.file, ()) if one.name == WHOLE else [one.name]
            for name in names:
                if one.file != reader and self._names.is_of_tensorflow(Export(one.file, name)):
                    kept = self._kept.setdefault(one.file, {})
                    if name not in kept or (is_certain and not kept[name].is_certain):
                        kept[name] = Kept(self._shown(reader), is_certain)
            found = self._names.passed_on(one)
            more = sorted({each for each in found if not is_certain or each.name != WHOLE} - seen)
            seen.update(more)
            pending += more

    def readers(self, importers: Sequence[str]) -> dict[str, frozenset[Export]]:
        """The files that read such names from others in ways that are resolved, with the names."""
        exports = self._names.exports()
        found = {}
        for file in importers:
            if self._names.has_facts(file) and self._may_rewrite(file):
                reads = self._names.reads(file, exports)
                if reads:
                    found[file] = reads
        return found

    def still_read(self, file: str, facts: Optional[ModuleFacts]) -> frozenset[Export]:
        """What a file reads of other modules after its rewrite, which has these facts."""
        exports = self._names.exports()
        if facts is None:
            return self._names.reads(file, exports)
        return self._names.reads_of(file, facts, exports)

    def _mentioned(self, file: str, exports: Mapping[str, set[str]]) -> Iterable[Export]:
        """The exports that a notebook, or a file that cannot be parsed, mentions by name."""
        source = self._read(file)
        for module in sorted(exports):
            if file in self._imports.importers(module):
                for name in sorted(exports[module]):
                    if re.search(rb"\b%s\b" % re.escape(name.encode()), source):
                        yield Export(module, name)
