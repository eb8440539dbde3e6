"""Finds the expressions that a value can come from: the one value analysis of all rules.

It follows names that are bound in a scope, and attributes of `self` that one class assigns. It
takes all bindings of a name together, in whatever order they run. Everything else, such as a
parameter, an import or a call, is a source of its own, so a rule may act if it knows every source.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .scopes import Binding, Scope, ScopeKind
from .syntax import Syntax
from .tree import walk

__all__ = ["Values"]

_SETTERS = ("setattr", "vars")


class Values:
    """What the values of a file come from, and what reads them."""

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax

    def bindings_of(self, name: cst.Name) -> list[Binding]:
        """All bindings whose value a read of `name` may get."""
        scope = self._syntax.scopes.loads.get(name)
        return scope.bindings_of(name.value) if scope is not None else []

    def reads_of(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The reads of what a definition or an expression is bound to; attributes of any object."""
        return [read for held in self._held.get(node, ()) for read in self._reads_by(*held)]

    def sources_of(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Every expression that the value of `node` can come from, except None.

        For an unknown value, the result is the node that binds it: a parameter, an import, or the
        target of a loop.
        """
        found: list[cst.CSTNode] = []
        seen: set[cst.CSTNode] = set()
        pending = [node]
        while pending:
            source = pending.pop()
            is_none = isinstance(source, cst.Name) and source.value == "None"
            if source not in seen and not is_none:
                seen.add(source)
                parts = self._parts(source)
                pending += reversed(parts)
                found += [] if parts else [source]
        return found

    def returned_by(self, function: Optional[cst.CSTNode]) -> Iterator[cst.BaseExpression]:
        """The expressions that a definition of a function returns; none for anything else."""
        if not isinstance(function, cst.FunctionDef):
            return
        for node in walk(function.body):
            if isinstance(node, cst.Return) and node.value is not None:
                yield node.value

    def class_around(self, node: cst.CSTNode) -> Optional[cst.ClassDef]:
        """The class whose body contains a node."""
        ancestors = self._syntax.ancestors(node)
        return next((above for above in ancestors if isinstance(above, cst.ClassDef)), None)

    def class_named(self, node: cst.CSTNode) -> Optional[cst.ClassDef]:
        """The class of the file that a name means; None if it means something else, or more."""
        found = self.definition_of(node)
        return found if isinstance(found, cst.ClassDef) else None

    def definition_of(self, node: cst.CSTNode) -> Optional[cst.CSTNode]:
        """The only node that binds a name; None if several do, or if `node` is no name."""
        bindings = self.bindings_of(node) if isinstance(node, cst.Name) else []
        return bindings[0].node if len(bindings) == 1 else None

    @functools.cached_property
    def _held(self) -> dict[cst.CSTNode, list[tuple[Optional[Scope], str]]]:
        """What each value is bound to: the names in their scopes, and attributes, without one.

        Not the reads of each: a name that is bound many times would have all of its reads as often.
        """
        found: dict[cst.CSTNode, list[tuple[Optional[Scope], str]]] = {}
        scopes = self._syntax.scopes
        for scope in scopes.all:
            for binding in itertools.chain.from_iterable(scope.bindings.values()):
                bound = binding.node if binding.value is None else binding.value
                found.setdefault(bound, []).append((scope, binding.name))
        for name, attributes in scopes.attributes.items():
            for value in filter(None, map(self._value_assigned, attributes)):
                found.setdefault(value, []).append((None, name))
        return found

    def _reads_by(self, scope: Optional[Scope], name: str) -> Iterator[cst.CSTNode]:
        """The reads of a name of a scope; of a class, the attributes of this name, too."""
        if scope is not None:
            yield from self._syntax.loads_of(scope, name)
        if scope is None or scope.kind is ScopeKind.CLASS:
            yield from self._syntax.attributes(name)

    def _value_assigned(self, attribute: cst.Attribute) -> Optional[cst.CSTNode]:
        """The value of `x.attribute = value`."""
        parents = self._syntax.parents
        target = parents.get(attribute)
        assign = parents.get(target) if isinstance(target, cst.AssignTarget) else None
        return assign.value if isinstance(assign, cst.Assign) else None

    def _parts(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The expressions that the value of `node` comes from; none if it is a source."""
        if isinstance(node, cst.Name):
            return [
                binding.node if binding.value is None else binding.value
                for binding in self.bindings_of(node)
            ]
        if isinstance(node, cst.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, cst.BooleanOperation):
            return [node.left, node.right]
        if isinstance(node, cst.NamedExpr):
            return [node.value]
        if isinstance(node, cst.Attribute):
            return list(self._stored_on_self(node))
        return []

    def _stored_on_self(self, node: cst.Attribute) -> Iterator[cst.CSTNode]:
        """What the class around `self.name` assigns to it; the place for what cannot be seen.

        That is an assignment that is not plain, one to an attribute of this name of another object,
        and any attribute if the file sets some by a computed name.
        """
        syntax = self._syntax
        owner = self.class_around(node) if _is_of_self(node) else None
        if owner is None:
            return
        has_setters = any(name.value in _SETTERS for name in syntax.scopes.loads)
        if has_setters or syntax.attributes("__dict__"):
            yield node
        name = node.attr.value
        for scope in syntax.scopes.all:
            for binding in scope.bindings.get(name, ()) if scope.node is owner else ():
                yield binding.node if binding.value is None else binding.value
        for attribute in filter(syntax.is_stored, syntax.attributes(name)):
            yield self._stored_by(attribute, owner)

    def _stored_by(self, attribute: cst.Attribute, owner: cst.ClassDef) -> cst.CSTNode:
        """What a plain assignment to `self.name` stores; the attribute for every other store."""
        parents = self._syntax.parents
        parent = parents.get(attribute)
        if isinstance(parent, cst.AssignTarget):
            parent = parents.get(parent)
        value = parent.value if isinstance(parent, (cst.Assign, cst.AnnAssign)) else None
        is_own = _is_of_self(attribute) and self.class_around(attribute) is owner
        return value if is_own and value is not None else attribute


def _is_of_self(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "self"
