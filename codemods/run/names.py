"""Resolves the imports of each file of a run, from the facts about its modules.

Re-exports are followed to the definition. A name is unknown, and keeps the path with which it is
imported, if it can mean more than one thing, if its module cannot be found uniquely or parsed, or
if another file of the run assigns to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Callable, NamedTuple, Optional

from ..resolve.legacy_symbols import is_of_shim, leads_to_legacy, root_of
from ..resolve.neighbors import ALONE, Neighbors, is_in_run
from ..resolve.program import LOOK_ALIKES
from .import_words import stem_of
from .module_facts import UNKNOWN, ModuleFacts, joined
from .modules import Modules

__all__ = ["WHOLE", "Export", "Names"]

WHOLE = "*"
"""In place of a name: the file may read any name of the module."""

_STEPS = 40
"""How many modules a name may pass through."""
_FORKS = 2
"""How many times a name may have several meanings on the way, all of which must end at one path."""


class _Step(NamedTuple):
    """The next step of resolving a name.

    Attributes:
      path: what the name is bound to.
      file: the file in which `path` must be resolved next; empty if `path` is the result.
    """

    path: str
    file: str = ""


class Export(NamedTuple):
    """A top-level name of a module that other files can read; see `WHOLE`."""

    file: str
    name: str


class Names:
    """What the top-level names of the modules of a run mean.

    Attributes:
      wanted: modules whose facts are needed, but not known yet.
    """

    def __init__(
        self, modules: Modules, shown: Callable[[str], str], from_shim: bool = False
    ) -> None:
        self._from_shim = from_shim
        self._modules = modules
        self._shown = shown
        self._facts: dict[str, Optional[ModuleFacts]] = {}
        self._found: dict[tuple[str, str], Optional[str]] = {}
        self._stored: set[tuple[str, str]] = set()
        self._file_at: dict[str, str] = {}
        self._used: dict[str, set[str]] = {}
        self.wanted: dict[str, None] = {}
        self._is_complete = True
        self._is_marking = False
        self._trail: set[Export] = set()
        self._exports: dict[str, set[str]] = {}
        self._links: dict[str, list[tuple[str, Export]]] = {}
        self._modules_in: dict[str, set[str]] = {}
        self._exporting: tuple[int, dict[str, set[str]]] = (-1, {})
        self._version = 0
        self._known: dict[str, tuple[int, Neighbors]] = {}

    def add(self, file: str, facts: Optional[ModuleFacts]) -> None:
        """Adds the facts about a file; None if it has none: its names are unknown."""
        self._facts[file] = facts
        self.wanted.pop(file, None)
        self._version += 1
        for path in facts.stores if facts is not None else ():
            module, name = self._split(path, file)
            if module is not None:
                self._stored.add((module, name.partition(".")[0]))

    def knows(self, file: str) -> bool:
        """Whether the facts about a file were read."""
        return file in self._facts

    def has_facts(self, file: str) -> bool:
        """Whether a file could be parsed."""
        return self._facts.get(file) is not None

    def words_of(self, file: str) -> Optional[frozenset[str]]:
        """The words of a file (see `module_facts`); None if it has no facts."""
        facts = self._facts.get(file)
        return facts.words if facts is not None else None

    def reads_class(self, file: str, ends: tuple[str, ...]) -> bool:
        """Whether a file may test a class with such a name, or read it in a similar way."""
        facts = self._facts.get(file)
        if facts is None:
            return True
        meanings = self.of(file).names
        names = {path.rpartition(".")[2] for path in meanings if meanings[path].endswith(ends)}
        reads = facts.class_reads
        return not reads.isdisjoint(names) or any(name.endswith(ends) for name in reads)

    def is_complete(self, file: str) -> bool:
        """Whether all facts are known that `of(file)` needs; otherwise adds to `wanted`."""
        self._is_complete = True
        self.of(file)
        return self._is_complete

    def of(self, file: str) -> Neighbors:
        """What the imports of `file` mean; adds the files whose facts are missing to `wanted`."""
        facts = self._facts.get(file)
        if len(self._modules) < 2:
            return ALONE
        if facts is None:
            return Neighbors(path=self.path_of(file))
        known = self._known.get(file)
        if known is None or known[0] != self._version:
            known = self._version, self._resolved(file, facts)
            if self._is_complete:
                self._known[file] = known
        return known[1]._replace(used=frozenset(self._used.get(file, ())))

    def _resolved(self, file: str, facts: ModuleFacts) -> Neighbors:
        names: dict[str, str] = {}
        written: dict[str, str] = {}
        values: dict[str, str] = {}
        for path in sorted(facts.imports):
            meaning = self._read(path, file)
            if meaning is None:
                values.update(self._computed(path, file))
            elif meaning != path and _matters(meaning):
                names[path] = meaning
                if meaning in self._file_at:
                    written.setdefault(meaning, path)
        starred: dict[str, str] = {}
        for path in sorted(facts.reads):
            for export, last, meaning in self._along(path, file):
                if meaning is None:
                    values.update(self._computed(last, file))
                elif _matters(meaning):
                    names[f"{self.path_of(export.file)}.{export.name}"] = meaning
                    name = export.name
                    if name in facts.free and last == joined(facts.stars[0], name):
                        starred[name] = meaning
        path = self.path_of(file)
        return Neighbors(names, written, values=values, starred=starred, path=path)

    def _along(self, path: str, file: str) -> Iterator[tuple[Export, str, Optional[str]]]:
        """The names of modules of the run along a path that is read, such as `mid.amp.wrap`.

        Each comes with its path, as it is written, and with its meaning. If the path ends at a
        module, that comes as a whole.
        """
        module, name = self._split(path, file)
        last = path[: len(path) - len(name)]
        while module is not None and name:
            first, _, name = name.partition(".")
            meaning = self._read(last + first, file)
            yield Export(module, first), last + first, meaning
            module = self._file_at.get(meaning) if meaning is not None else None
            last += first + "."
        if module is not None:
            yield Export(module, WHOLE), path, None

    def _computed(self, path: str, file: str) -> Iterator[tuple[str, str]]:
        """The path with its path in the run, if it is a name of a module with a computed value."""
        module, name = self._split(path, file)
        facts = self._facts.get(module) if module is not None else None
        if module is None or facts is None or facts.is_dynamic or (module, name) in self._stored:
            return
        if facts.names.get(name) == frozenset([UNKNOWN]):
            yield path, f"{self.path_of(module)}.{name}"

    def exports(self) -> dict[str, set[str]]:
        """By file, the names that lead to legacy symbols, or whose imports a rewrite may change."""
        if self._exporting[0] == self._version:
            return self._exporting[1]
        for file, facts in self._facts.items():
            if facts is not None and file not in self._exports:
                self._exports[file] = set(facts.movable)
                self._links[file] = list(self._links_of(file, facts))
        is_new = True
        while is_new:
            is_new = bool([file for file in self._links if self._pass_on(file)])
        exporting = {file: names for file, names in self._exports.items() if names}
        self._exporting = self._version, exporting
        return exporting

    def only_modules(self, file: str) -> frozenset[str]:
        """The exports of a file if all of them are other modules of the run; otherwise none."""
        modules = self._modules_in.get(file, set())
        return frozenset(modules if self._exports[file] <= modules else ())

    def _links_of(self, file: str, facts: ModuleFacts) -> Iterator[tuple[str, Export]]:
        """The names of a module that come from other modules, each with what it comes from."""
        for name, paths in facts.names.items():
            for path in paths:
                if self._is_of_library(path):
                    if leads_to_legacy(path, self._from_shim):
                        self._exports[file].add(name)
                else:
                    module, below = self._split(path, file)
                    if module is not None and module != file:
                        yield name, Export(module, below.partition(".")[0])
        for star in facts.stars:
            module = self._module(star, file)
            if module is not None:
                yield WHOLE, Export(module, WHOLE)

    def _pass_on(self, file: str) -> bool:
        """Adds the names that lead to the exports of other modules; whether there are any."""
        exports = self._exports[file]
        before = len(exports)
        for name, link in self._links[file]:
            found = self._exports.get(link.file, ())
            if name == WHOLE:
                exports.update(one for one in found if not one.startswith("_"))
            elif link.name in found:
                exports.add(name)
            elif found and not link.name and name not in exports:
                exports.add(name)
                self._modules_in.setdefault(file, set()).add(name)
        return len(exports) > before

    def reads_legacy(self, file: str, of: Collection[str]) -> bool:
        """Whether a file reads a legacy symbol or module through the modules in the files `of`."""
        facts = self._facts.get(file)
        for path in sorted(facts.reads) if facts is not None else ():
            if self._split(path, file)[0] not in of:
                continue
            for _, last, meaning in self._along(path, file):
                if meaning is not None and self._is_of_library(meaning):
                    rest = path[len(last) + 1 :]
                    parts = rest.split(".") if rest else []
                    ends = (".".join([meaning, *parts[:end]]) for end in range(len(parts) + 1))
                    if any(leads_to_legacy(end, self._from_shim) for end in ends):
                        return True
        return False

    def mark_imports(self, file: str, of: Collection[str]) -> None:
        """Marks the names as used that a file imports from the modules in the files `of`."""
        facts = self._facts.get(file)
        for path in sorted(facts.imports) if facts is not None else ():
            if self._split(path, file)[0] in of:
                self._read(path, file)

    def is_of_tensorflow(self, export: Export) -> bool:
        """Whether a name can mean something to migrate that its own file imports."""
        facts = self._facts.get(export.file)
        paths = facts.names.get(export.name, ()) if facts is not None else ()
        return any(map(self._is_of_library, paths))

    def _is_of_library(self, path: str) -> bool:
        """Whether a path is of TensorFlow, or of the shim if its names are migrated."""
        return root_of(path) is not None or (self._from_shim and is_of_shim(path))

    def reads(self, file: str, of: Mapping[str, Collection[str]]) -> frozenset[Export]:
        """The exports `of` modules that a file reads."""
        facts = self._facts.get(file)
        return self.reads_of(file, facts, of) if facts is not None else frozenset()

    def reads_of(
        self, file: str, facts: ModuleFacts, of: Mapping[str, Collection[str]]
    ) -> frozenset[Export]:
        """The same, if `facts` were the facts of the file."""
        self._trail = set()
        for path in sorted(facts.reads):
            if self._split(path, file)[0] in of:
                self._trail.update([export for export, _, _ in self._along(path, file)])
        return frozenset(
            one for one in self._trail if one.name == WHOLE or one.name in of.get(one.file, ())
        )

    def passed_on(self, export: Export) -> Iterator[Export]:
        """The names of other modules that a name of a module is bound to."""
        facts = self._facts.get(export.file)
        if facts is None:
            return
        whole = export.name == WHOLE
        for name in facts.names if whole else [export.name]:
            for path in facts.names.get(name, ()):
                module, below = self._split(path, export.file)
                if module is None or module == export.file:
                    continue
                # Who reads any name of one module seldom reads names of the modules in it.
                if below or not whole:
                    yield Export(module, below.partition(".")[0] or WHOLE)
        if whole or export.name not in (*facts.names, *facts.defined):
            for star in facts.stars:
                module = self._module(star, export.file)
                if module is not None and module != export.file:
                    yield Export(module, export.name)

    def uncertain(self, file: str, of: Collection[str]) -> Iterator[Export]:
        """The names of the modules in the files `of` that a file may read in unknown ways."""
        facts = self._facts.get(file)
        if facts is None:
            return
        stems: dict[str, list[str]] = {}
        for one in of:
            stems.setdefault(stem_of(one), []).append(one)
        for path in facts.stores:
            module, name = self._split(path, file)
            if module in of and module is not None:
                yield Export(module, name.partition(".")[0])
        for path in facts.strings:
            yield from self._may_be(path, file, stems, of)
        for path in (*facts.reads, *facts.imports):
            if root_of(path) is None and self._split(path, file)[0] is None:
                may_be = self._may_be(path, file, stems, of)
                yield from (one for one in may_be if path in facts.reads or one.name != WHOLE)
        for path in facts.stars:
            module = self._module(path, file)
            if module is None or len(facts.stars) > 1:
                for found in self._may_be(path, file, stems, of):
                    yield from (Export(found.file, name) for name in facts.free)

    def _may_be(
        self, path: str, file: str, stems: dict[str, list[str]], of: Collection[str]
    ) -> Iterator[Export]:
        """The exports that a path may name, by the part of it that names a module."""
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            name = parts[end] if end < len(parts) else WHOLE
            fitting = self._modules.fitting(".".join(parts[:end]), file)
            yield from (Export(one, name) for one in fitting if one in of)
            yield from (Export(one, name) for one in stems.get(parts[end - 1], ()))

    def _read(self, path: str, file: str) -> Optional[str]:
        """What `path` means in `file`; marks the names that it leads through as used."""
        self._is_marking = True
        try:
            return self._end(_Step(path, file), _FORKS)
        finally:
            self._is_marking = False

    def _end(self, step: Optional[_Step], forks: int) -> Optional[str]:
        """The path of what a step leads to; None if it is unknown.

        A path that leads out of the run means itself.
        """
        for _ in range(_STEPS):
            if step is None or step.path.startswith("<"):
                return None
            if not step.file:
                return step.path
            module, name = self._split(step.path, step.file)
            if module is None:
                return None if step.path.startswith(".") else step.path
            if not name:
                return self.path_of(module)
            step = self._step(module, name, forks)
        return None

    def _step(self, file: str, name: str, forks: int) -> Optional[_Step]:
        """Where `name`, such as `wrap` or `amp.wrap`, of the module `file` leads."""
        first, _, rest = name.partition(".")
        if self._is_marking:
            self._used.setdefault(file, set()).add(first)
            self._trail.add(Export(file, first))
        facts = self._requested(file)
        if facts is None or facts.is_dynamic or (file, first) in self._stored:
            return None
        if first in facts.defined:
            return _Step(f"{self.path_of(file)}.{name}")
        meanings = [f"{one}.{rest}" if rest else one for one in facts.names.get(first, ())]
        if len(meanings) == 1:
            return _Step(meanings[0], file)
        if meanings:
            ends = {self._end(_Step(one, file), forks - 1) if forks else None for one in meanings}
            end = ends.pop()
            return _Step(end) if end is not None and not ends else None
        if facts.stars:
            return self._through_star(file, facts, first, name)
        is_package = file.endswith("__init__.py") and self._module(f".{first}", file) is not None
        return _Step(f".{name}", file) if is_package else None

    def _through_star(
        self, file: str, facts: ModuleFacts, first: str, name: str
    ) -> Optional[_Step]:
        """Where a name that a star import binds leads; None if that is not certain."""
        path = facts.stars[0]
        module = self._module(path, file) if len(facts.stars) == 1 else None
        below = self._requested(module) if module is not None else None
        if below is None or first.startswith("_"):
            return None
        if below.exported is not None and first not in below.exported:
            return None
        return _Step(joined(path, name), file)

    def _requested(self, file: str) -> Optional[ModuleFacts]:
        if file not in self._facts:
            self.wanted[file] = None
            self._is_complete = False
        return self._facts.get(file)

    def file_at(self, path: str) -> Optional[str]:
        """The file of a path of the run: of a module, or of a name in it."""
        while path not in self._file_at and path:
            path = path.rpartition(".")[0]
        return self._file_at.get(path)

    def path_of(self, file: str) -> str:
        """The path of a module of the run, whose facts may be needed for its names."""
        self._requested(file)
        path = "./" + self._shown(file)
        self._file_at[path] = file
        return path

    def _module(self, path: str, file: str) -> Optional[str]:
        key = (path, file)
        if key not in self._found:
            self._found[key] = self._modules.find(path, file)
        return self._found[key]

    def _split(self, path: str, file: str) -> tuple[Optional[str], str]:
        """The longest part of `path` that is a module of the run, and the rest."""
        name = ""
        if not self._modules.may_find(path, file):
            return None, path
        while path.strip("."):
            module = self._module(path, file)
            if module is not None:
                return module, name
            above, _, last = path.rpartition(".")
            if path.startswith(".") and not above.strip("."):
                above += "."  # `.amp` is `amp` in the package `.`
            name = f"{last}.{name}" if name else last
            path = above
        return (self._module(path, file) if path else None), name


def _matters(path: str) -> bool:
    """Whether a rule may need `path`: it is in TensorFlow, a look-alike of it, or the run."""
    is_library = root_of(path) is not None or path.partition(".")[0] in LOOK_ALIKES
    return is_library or is_in_run(path)
