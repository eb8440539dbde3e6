"""Resolves the imports of each file of a run, from the facts about its modules.

Re-exports are followed to the definition. A name is unknown, and keeps the path with which it is
imported, if it can mean more than one thing, if its module cannot be found uniquely or parsed, or
if another file of the run assigns to it.
"""

from __future__ import annotations

from typing import Callable, NamedTuple, Optional

from ..resolve.legacy_symbols import root_of
from ..resolve.neighbors import NOBODY, Neighbors, is_in_run
from ..resolve.program import LOOK_ALIKES
from .module_facts import ModuleFacts
from .modules import Modules

__all__ = ["Names"]

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


class Names:
    """What the top-level names of the modules of a run mean.

    Attributes:
      wanted: modules whose facts are needed, but not known yet.
    """

    def __init__(self, modules: Modules, shown: Callable[[str], str]) -> None:
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

    def add(self, file: str, facts: Optional[ModuleFacts]) -> None:
        """Adds the facts about a file; None if it has none: its names are unknown."""
        self._facts[file] = facts
        self.wanted.pop(file, None)
        for path in facts.stores if facts is not None else ():
            module, name = self._split(path, file)
            if module is not None:
                self._stored.add((module, name.partition(".")[0]))

    def knows(self, file: str) -> bool:
        """Whether the facts about a file were read."""
        return file in self._facts

    def words_of(self, file: str) -> Optional[frozenset[str]]:
        """The words of a file (see `module_facts`); None if it has no facts."""
        facts = self._facts.get(file)
        return facts.words if facts is not None else None

    def is_complete(self, file: str) -> bool:
        """Whether all facts are known that `of(file)` needs; otherwise adds to `wanted`."""
        self._is_complete = True
        self.of(file)
        return self._is_complete

    def of(self, file: str) -> Neighbors:
        """What the imports of `file` mean; adds the files whose facts are missing to `wanted`."""
        facts = self._facts.get(file)
        if len(self._modules) < 2:
            return NOBODY
        if facts is None:
            return Neighbors(path=self.path_of(file))
        names: dict[str, str] = {}
        written: dict[str, str] = {}
        for path in sorted(facts.imports):
            meaning = self._read(path, file)
            if meaning is not None and meaning != path and _matters(meaning):
                names[path] = meaning
                if meaning in self._file_at:
                    written.setdefault(meaning, path)
        for path in sorted(facts.reads):
            module, name = self._split(path, file)
            if module is None or not name:
                continue
            last = path[: len(path) - len(name)] + name.partition(".")[0]
            meaning = self._read(last, file)
            if meaning is not None and _matters(meaning):
                names[f"{self.path_of(module)}.{name.partition('.')[0]}"] = meaning
        used = frozenset(self._used.get(file, ()))
        return Neighbors(names, written, used, self.path_of(file))

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
        return _Step(f"{path}{'' if path.endswith('.') else '.'}{name}", file)

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
