"""One file (a source, or the cells of a notebook) with its names resolved."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Callable, Optional, TypeVar

import libcst as cst

from .places import Place, Places, Reference, code_of, imports_of
from .qualified_names import Origins, is_path
from .scopes import Binding, Scope, ScopeBuilder
from .tree import ancestors, is_stored, root_name

__all__ = ["Program"]

_T = TypeVar("_T")


class Program:
    """The syntax trees of one file, resolved once for all rules. Nothing in it changes later.

    Attributes:
      modules: one tree per source; None if the source could not be parsed.
      scopes: the scopes, with the places where names are bound and read.
      origins: resolves expressions to dotted paths.
      references: every place that refers to a legacy symbol, and to nothing else.
      namespaces: every chain that ends at a module of legacy symbols, and each import of one.
      written: places that put something else in the place of a symbol or module.
      mixed: places that mean a legacy symbol in one branch, and the final one or the shim's in
        another. What binds their names is rewritten, so they are right on both.
      unclear: places that might refer to a legacy symbol.
      common: places of which the name is common, such as `Policy`, that come through another
        module; they count only if that one is known to have a legacy symbol of this name.
      migrated: places that refer to a symbol of the shim, with its name.
    """

    def __init__(self, modules: Sequence[Optional[cst.Module]]) -> None:
        self.modules = modules
        self.scopes = ScopeBuilder()
        for module in modules:
            if module is not None:
                self.scopes.add(module)
        self.parents = self.scopes.parents
        self.origins = Origins()
        found = Places(self.scopes, self.origins)
        self.references = found.references
        self.namespaces = found.namespaces
        self.written = found.written
        self.mixed = found.mixed
        self.unclear = found.unclear
        self.common = found.common
        self.migrated = found.migrated
        self.by_node = {reference.node: reference for reference in self.references}
        self._memo: dict[Hashable, Any] = {}
        """Results of pure functions of this program, by the function and its arguments."""

    def cached(self, compute: Callable[..., _T], *arguments: Hashable) -> _T:
        """Returns `compute(self, *arguments)`, which is computed only once."""
        key = (compute, *arguments)
        if key not in self._memo:
            self._memo[key] = compute(self, *arguments)
        result: _T = self._memo[key]
        return result

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

    @functools.cached_property
    def order(self) -> dict[cst.CSTNode, int]:
        """The number of each node, in the order of the source."""
        return {node: number for number, node in enumerate(self.parents)}

    def places(self) -> list[Place]:
        """Every reference, and every use of a module of legacy symbols."""
        return [*self.references, *self.namespaces]

    def references_to(self, *codes: str) -> list[Reference]:
        """Every reference that the rule with these codes migrates."""
        return [reference for reference in self.references if reference.legacy.rule in codes]

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
