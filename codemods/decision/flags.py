"""Follows names from file to file to the version of TensorFlow: what makes a flag is data flow.

A worker knows what the names of one file are made of. This module connects the files: it says which
names of which files must be looked at next, and in the end which names depend on the version.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Optional

from ..facts import Constant, Made
from ..resolve.given_names import CALLED, KEY, NAMED
from .modules import Modules

__all__ = ["FlagSearch"]

_Node = tuple[str, str]
"""A file, and a name: one of its top level, an attribute as `.old`, or both, as `flags.old`."""


class FlagSearch:
    """The search for what the conditions of some files are made of.

    Args:
      conditions: the names of other files that conditions read, by the file with the conditions.
      imports: the modules that each of these files imports.
      modules: the modules of the run.
    """

    def __init__(
        self,
        conditions: Mapping[str, frozenset[str]],
        imports: Mapping[str, frozenset[str]],
        modules: Modules,
    ) -> None:
        """Begins with what the conditions read themselves."""
        self._conditions = conditions
        self._imports = imports
        self._modules = modules
        self._made: dict[_Node, Made] = {}
        self._open: set[_Node] = set()
        self._found: Optional[set[_Node]] = None
        self._givers: dict[str, set[str]] = {}
        for file, names in conditions.items():
            for name in names:
                self._open.update(self._nodes(file, name))

    def questions(self) -> dict[str, frozenset[str]]:
        """The names to look at next, by their files; empty at the end."""
        found: dict[str, set[str]] = {}
        for file, name in self._open:
            found.setdefault(file, set()).add(name)
        return {file: frozenset(names) for file, names in sorted(found.items())}

    def add(self, file: str, answers: Mapping[str, Made]) -> None:
        """Adds what names of a file are made of; none if it could not be read."""
        self._found = None
        asked = [node for node in self._open if node[0] == file]
        self._open.difference_update(asked)
        for node in asked:
            made = answers.get(node[1], Made(False))
            self._made[node] = made
            for name in made.names:
                self._open.update(self._nodes(file, name) - self._made.keys())

    def add_given(self, given: Mapping[str, frozenset[str]]) -> None:
        """Adds the names under which files hand on what is made of the version.

        They count wherever the same name is read: which object has it, nobody knows.
        """
        self._found = None
        for file, names in given.items():
            for name in names:
                self._givers.setdefault(name, set()).add(file)

    def flags(self, file: str) -> dict[str, Optional[tuple[Constant]]]:
        """The names that conditions of a file read and that depend on the version.

        Each has its value on the newest TensorFlow, if that is known.
        """
        if self._found is None:
            self._found = self._depending()
        found: dict[str, Optional[tuple[Constant]]] = {}
        for name in self._conditions.get(file, frozenset()):
            nodes = self._nodes(file, name)
            if not nodes.isdisjoint(self._found):
                values = {self._made[node].value for node in nodes if node in self._made}
                found[name] = values.pop() if len(values) == 1 else None
            elif self._is_given(file, name):
                found[name] = None
        return found

    def texts(self, file: str) -> dict[str, str]:
        """The flags of a file that are made of versions that are compared as text.

        Each has the first release that is taken for an older one.
        """
        compared = {node: made.as_text for node, made in self._made.items() if made.as_text}
        reached = {node: self._reached_from({node}) for node in compared}
        found: dict[str, str] = {}
        for name in self.flags(file):
            nodes = self._nodes(file, name)
            releases = [compared[name] for name in compared if not nodes.isdisjoint(reached[name])]
            if releases:
                found[name] = min(releases)
        return found

    def _depending(self) -> set[_Node]:
        """The names that are made of the version, directly or through others."""
        return self._reached_from({node for node in self._made if self._depends(*node)})

    def _depends(self, file: str, name: str) -> bool:
        """Whether a name of a file is made of the version there."""
        made = self._made[file, name]
        return made.depends or any(self._is_given(file, part) for part in made.names)

    def _is_given(self, file: str, name: str) -> bool:
        """Whether a name may have got what another file hands on.

        What a file gives its own parameters is known better.
        """
        is_parameter = name[0] in (NAMED, CALLED)
        key = name if is_parameter or name[0] == KEY else f".{name.rpartition('.')[2]}"
        givers = self._givers.get(key, set())
        return bool(givers - {file} if is_parameter else givers)

    def _reached_from(self, sources: set[_Node]) -> set[_Node]:
        """The names that are made of some names, which are among them."""
        readers: dict[_Node, list[_Node]] = {}
        for node, made in self._made.items():
            for name in made.names:
                for below in self._nodes(node[0], name):
                    readers.setdefault(below, []).append(node)
        found = set(sources)
        pending = collections.deque(found)
        while pending:
            new = set(readers.get(pending.popleft(), ())) - found
            found |= new
            pending.extend(new)
        return found

    def _nodes(self, file: str, name: str) -> set[_Node]:
        """What a name of another file, as `file` reads it, can be."""
        nodes: set[_Node] = set()
        if name.startswith(".") and name[1:].isidentifier() and not self._is_module(name, file):
            for path in self._imports.get(file, frozenset()):
                nodes.update((module, name) for module in self._modules.imported(path, file))
        # `.old` may also be a name of the package around, as in `from . import old`.
        found = self._modules.split(name, file)
        if found is not None:
            module, (first, *attributes) = found
            nodes.add((module, first))
            if attributes:
                nodes.add((module, f".{attributes[-1]}"))
                nodes.add((module, ".".join([first, *attributes])))
        return nodes

    def _is_module(self, name: str, file: str) -> bool:
        """Whether `.flags` is the relative path of a module, and no attribute."""
        return self._modules.find(name, file) is not None
