"""Resolves expressions to the dotted paths that they can mean.

The meanings of a name are those of all its bindings. A rule acts only if they agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

import libcst as cst

from .legacy_symbols import is_namespace
from .neighbors import NOBODY, Neighbors
from .scopes import Binding, Scope
from .tree import string_of

__all__ = ["CALL", "LOCAL", "PARAMETER", "STAR", "Origins", "is_path"]

LOCAL = "<local>"
"""A value made in this program, or a builtin: a class, a function, something computed."""
PARAMETER = "<parameter>"
"""A value that comes from a caller."""
CALL = "<call>"
"""Something that a call returned."""
STAR = "<star>"
"""A name that only a star import can bind."""


def is_path(meaning: str) -> bool:
    """Whether `meaning` is a dotted path from an import."""
    return not meaning.startswith("<")


class Origins:
    """Resolves names and attribute chains, and caches the results.

    Args:
      neighbors: what the other files of the run tell about this one.
      parts: expressions of which an edit leaves only a part, each with this part.
    """

    def __init__(
        self,
        neighbors: Neighbors = NOBODY,
        parts: Optional[Mapping[cst.CSTNode, cst.CSTNode]] = None,
    ) -> None:
        self._neighbors = neighbors
        self._parts = parts or {}
        self._names: dict[tuple[Scope, str], frozenset[str]] = {}
        self._open: set[Binding] = set()

    def of_name(self, name: str, scope: Scope) -> frozenset[str]:
        """The possible meanings of `name` in `scope`."""
        owner = scope.owner(name)
        if owner is None:
            stars = any(around.stars for around in scope.chain())
            return frozenset([STAR if stars else LOCAL])
        key = (owner, name)
        known = self._names.get(key)
        if known is None:
            before = len(self._open)
            found: set[str] = set()
            for binding in owner.bindings[name]:
                found |= self.of_binding(binding)
            known = frozenset(found)
            if not before:  # a result found inside a cycle is incomplete
                self._names[key] = known
        return known

    def below(self, meanings: frozenset[str], name: str) -> frozenset[str]:
        """The possible meanings of the attribute `name` of a value."""
        return frozenset(
            self._neighbors.meaning(f"{part}.{name}") if is_path(part) else part
            for part in meanings
        )

    def of_binding(self, binding: Binding) -> frozenset[str]:
        """The possible meanings that `binding` gives its name."""
        if binding.kind == "import":
            return frozenset([binding.path])
        if binding.kind == "parameter":
            return frozenset([PARAMETER])
        if binding.value is None or binding in self._open:
            return frozenset() if binding in self._open else frozenset([LOCAL])
        self._open.add(binding)
        try:
            return self.of_expression(binding.value, binding.scope)
        finally:
            self._open.discard(binding)

    def of_expression(self, node: Optional[cst.CSTNode], scope: Scope) -> frozenset[str]:
        """The possible meanings of the value of `node`."""
        if self._parts and node is not None:
            node = self._parts.get(node, node)
        if isinstance(node, cst.Name):
            if node.value == "None":
                return frozenset()
            return self.of_name(node.value, scope)
        if isinstance(node, cst.Attribute):
            return self.below(self.of_expression(node.value, scope), node.attr.value)
        if isinstance(node, cst.IfExp):
            return self.of_expression(node.body, scope) | self.of_expression(node.orelse, scope)
        if isinstance(node, cst.NamedExpr):
            return self.of_expression(node.value, scope)
        if isinstance(node, cst.Call):
            return self._of_getattr(node, scope) or frozenset([CALL])
        return frozenset([LOCAL])

    def _of_getattr(self, call: cst.Call, scope: Scope) -> frozenset[str]:
        """What `getattr(module, "name", other)` can be, for a module of legacy symbols."""
        if not isinstance(call.func, cst.Name) or call.func.value != "getattr":
            return frozenset()
        name = string_of(call.args[1].value) if len(call.args) == 3 else None
        if name is None:
            return frozenset()
        modules = self.of_expression(call.args[0].value, scope)
        found = frozenset(f"{module}.{name}" for module in modules if is_path(module))
        others = self.of_expression(call.args[2].value, scope)
        is_sure = bool(others) and all(map(is_path, [*modules, *others]))
        return found | others if is_sure and all(map(is_namespace, found)) else frozenset()
