"""One program (a file, or the cells of a notebook) with its names resolved."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Callable, Optional, TypeVar

import libcst as cst

from ..model import ALONE, Group, Options, Surroundings
from .places import Branch, Place, Places, Reference, code_of, imports_of
from .qualified_names import Origins, is_path
from .scopes import Binding, Scope, ScopeBuilder
from .tree import ancestors, is_stored, root_name

__all__ = ["Program"]

_T = TypeVar("_T")


class Program:
    """The syntax trees of one program, resolved once for all rules.

    Attributes:
      options: the options that affect the rewrite.
      surroundings: what the search has seen in the other files of the run.
      modules: one tree per source; None if the source could not be parsed.
      on_shim: the groups of symbols that go to the shim, although the target is the final API.
      notes: the places that decide that, each with the proposal that says why.
      scopes: the scopes, with the places where names are bound and read.
      origins: resolves expressions to dotted paths.
      references: every place that refers to a legacy symbol, and to nothing else.
      namespaces: every chain that ends at a module of legacy symbols, and each import of one.
      guards: the branches with legacy names that only some versions of TensorFlow take.
      guarded: places that mean the legacy or the final symbol, depending on the version. They are
        right on both, and are not edited.
      unclear: places that might refer to a legacy symbol.
      migrated: places that refer to a symbol of the shim, with its name.
    """

    def __init__(
        self,
        modules: Sequence[Optional[cst.Module]],
        options: Options,
        surroundings: Surroundings = ALONE,
    ) -> None:
        self.options = options
        self.surroundings = surroundings
        self.modules = modules
        self.on_shim: frozenset[Group] = frozenset()
        self.notes: Mapping[cst.CSTNode, object] = {}
        self.scopes = ScopeBuilder()
        for module in modules:
            if module is not None:
                self.scopes.add(module)
        self.parents = self.scopes.parents
        self.origins = Origins()
        self.guards: list[Branch] = []
        found = Places(self.scopes, self.origins, options)
        self.references = found.references
        self.namespaces = found.namespaces
        self.guarded = found.guarded
        self.unclear = found.unclear
        self.migrated = found.migrated
        self._memo: dict[object, object] = {}
        self.by_node = {reference.node: reference for reference in self.references}

    def cached(self, compute: Callable[..., _T], *arguments: object) -> _T:
        """Returns `compute(self, *arguments)`, which is computed only once."""
        key = (compute, *arguments)
        if key not in self._memo:
            self._memo[key] = compute(self, *arguments)
        return self._memo[key]  # type: ignore[return-value]  # holds results of all types

    def goes_to_shim(self, group: Group) -> bool:
        """Whether the symbols of a group go to the shim, and not to the final API."""
        return self.options.to_shim or group in self.on_shim

    def with_on_shim(
        self, groups: Iterable[Group], notes: Optional[Mapping[cst.CSTNode, object]] = None
    ) -> Program:
        """The same program, of which more groups go to the shim; `notes` has the reasons."""
        program = copy.copy(self)
        program.on_shim = self.on_shim.union(groups)
        program.notes = {**self.notes, **(notes or {})}
        program._memo = {}
        return program

    def imports(self) -> Iterator[Binding]:
        """Every binding that an import creates."""
        return imports_of(self.scopes)

    def attributes(self, name: str) -> list[cst.Attribute]:
        """Every `something.name`."""
        return self.scopes.attributes.get(name, [])

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The ancestors of `node`, the nearest first."""
        return ancestors(node, self.parents)

    def is_stored(self, node: cst.CSTNode) -> bool:
        """Whether any statement assigns to `node`, or deletes it."""
        return is_stored(node, self.parents)

    def is_read_elsewhere(self, scope: Scope, name: str) -> bool:
        """Whether other files of the run may read the variable `name` of `scope`."""
        return scope is self.scopes.module_scope and name in self.surroundings.reads

    @functools.cached_property
    def order(self) -> dict[cst.CSTNode, int]:
        """The number of each node, in the order of the source."""
        return {node: number for number, node in enumerate(self.parents)}

    def places(self) -> list[Place]:
        """Every reference, and every use of a module of legacy symbols."""
        return [*self.references, *self.namespaces]

    def references_to(self, *codes: str) -> list[Reference]:
        """Every reference that the rule with these codes migrates."""
        return [one for one in self.references if one.legacy.rule in codes]

    def call_of(self, node: cst.CSTNode) -> Optional[cst.Call]:
        """The call of `node`; None if it is not called."""
        parent = self.parents.get(node)
        return parent if isinstance(parent, cst.Call) and parent.func is node else None

    def outside(
        self, node: cst.CSTNode, kinds: tuple[type, ...]
    ) -> tuple[cst.CSTNode, Optional[cst.CSTNode]]:
        """`node`, or what is around it, up to the first parent that is not one of `kinds`."""
        parent = self.parents.get(node)
        while parent is not None and isinstance(parent, kinds):
            node, parent = parent, self.parents.get(parent)
        return node, parent

    def loads_of(self, scope: Scope, name: str) -> list[cst.Name]:
        """Every place that reads the variable `name` of `scope`."""
        return self.cached(_loads).get((scope, name), [])

    def paths_of(self, node: cst.CSTNode) -> frozenset[str]:
        """Every dotted path that a chain can mean; empty if one is unknown."""
        root = root_name(node)
        scope = self.scopes.loads.get(root) if root is not None else None
        if scope is None:
            return frozenset()
        meanings = self.origins.of_expression(node, scope)
        return frozenset() if not all(map(is_path, meanings)) else meanings

    @staticmethod
    def code(node: cst.CSTNode) -> str:
        """The source of `node`."""
        return code_of(node)


def _loads(program: Program) -> dict[tuple[Scope, str], list[cst.Name]]:
    found: dict[tuple[Scope, str], list[cst.Name]] = {}
    for name, scope in program.scopes.loads.items():
        owner = scope.owner(name.value)
        if owner is not None:
            found.setdefault((owner, name.value), []).append(name)
    return found
