"""Finds the expressions that a value can come from: the one value analysis of all rules.

It follows names that are bound in a scope, and attributes of `self` that one class assigns. It
takes all bindings of a name together, in whatever order they run. Everything else, such as a
parameter, an import or a call, is a source of its own, so a rule may act if it knows every source.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .program import Program
from .scopes import Binding, Scope, ScopeKind

__all__ = [
    "bindings_of",
    "class_around",
    "class_named",
    "reads_of_value",
    "sources_of",
]

_SETTERS = ("setattr", "vars")


def bindings_of(program: Program, name: cst.Name) -> list[Binding]:
    """All bindings whose value a read of `name` may get."""
    scope = program.scopes.loads.get(name)
    return scope.bindings_of(name.value) if scope is not None else []


def reads_of_value(program: Program, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The reads of what a definition or an expression is bound to; an attribute of any object."""
    return program.cached(_reads).get(node, [])


def _reads(program: Program) -> dict[Optional[cst.CSTNode], list[cst.CSTNode]]:
    """The reads of each value that is bound to a name or to an attribute; by the value."""
    found: dict[Optional[cst.CSTNode], list[cst.CSTNode]] = {}
    for scope in program.scopes.all:
        for binding in itertools.chain.from_iterable(scope.bindings.values()):
            bound = binding.node if binding.value is None else binding.value
            found.setdefault(bound, []).extend(_reads_of_name(program, scope, binding.name))
    for name, attributes in program.scopes.attributes.items():
        for value in filter(
            None, (_value_assigned(program, attribute) for attribute in attributes)
        ):
            found.setdefault(value, []).extend(program.attributes(name))
    return found


def _reads_of_name(program: Program, scope: Scope, name: str) -> Iterator[cst.CSTNode]:
    """The reads of a name of a scope; of a class, the attributes of this name, too."""
    yield from program.loads_of(scope, name)
    if scope.kind is ScopeKind.CLASS:
        yield from program.attributes(name)


def _value_assigned(program: Program, attribute: cst.Attribute) -> Optional[cst.CSTNode]:
    """The value of `x.attribute = value`."""
    target = program.parents.get(attribute)
    assign = program.parents.get(target) if isinstance(target, cst.AssignTarget) else None
    return assign.value if isinstance(assign, cst.Assign) else None


def sources_of(program: Program, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Every expression that the value of `node` can come from, except None.

    For an unknown value, the result is the node that binds it: a parameter, an import, or the
    target of a loop.
    """
    found: list[cst.CSTNode] = []
    seen: set[cst.CSTNode] = set()
    pending = [node]
    while pending:
        one = pending.pop()
        if one not in seen and not (isinstance(one, cst.Name) and one.value == "None"):
            seen.add(one)
            parts = _parts(program, one)
            pending += reversed(parts)
            found += [] if parts else [one]
    return found


def _parts(program: Program, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The expressions that the value of `node` comes from; none if it is a source."""
    if isinstance(node, cst.Name):
        bindings = bindings_of(program, node)
        return [binding.node if binding.value is None else binding.value for binding in bindings]
    if isinstance(node, cst.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, cst.BooleanOperation):
        return [node.left, node.right]
    if isinstance(node, cst.NamedExpr):
        return [node.value]
    if isinstance(node, cst.Attribute):
        return list(_stored_on_self(program, node))
    return []


def _stored_on_self(program: Program, node: cst.Attribute) -> Iterator[cst.CSTNode]:
    """What the class around `self.name` assigns to it; the place itself for what cannot be seen.

    That is an assignment that is not plain, one to an attribute of this name of another object, and
    any attribute if the file sets some by a computed name.
    """
    owner = class_around(program, node) if _is_of_self(node) else None
    if owner is None:
        return
    has_setters = any(name.value in _SETTERS for name in program.scopes.loads)
    if has_setters or program.attributes("__dict__"):
        yield node
    name = node.attr.value
    for scope in program.scopes.all:
        for binding in scope.bindings.get(name, ()) if scope.node is owner else ():
            yield binding.node if binding.value is None else binding.value
    for attribute in filter(program.is_stored, program.attributes(name)):
        yield _stored_by(program, attribute, owner)


def _stored_by(program: Program, attribute: cst.Attribute, owner: cst.ClassDef) -> cst.CSTNode:
    """What a plain assignment to `self.name` stores; the attribute itself for every other store."""
    parent = program.parents.get(attribute)
    if isinstance(parent, cst.AssignTarget):
        parent = program.parents.get(parent)
    value = parent.value if isinstance(parent, (cst.Assign, cst.AnnAssign)) else None
    is_own = _is_of_self(attribute) and class_around(program, attribute) is owner
    return value if is_own and value is not None else attribute


def _is_of_self(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "self"


def class_around(program: Program, node: cst.CSTNode) -> Optional[cst.ClassDef]:
    """The class whose body contains a node."""
    return next(
        (ancestor for ancestor in program.ancestors(node) if isinstance(ancestor, cst.ClassDef)),
        None,
    )


def class_named(program: Program, node: cst.CSTNode) -> Optional[cst.ClassDef]:
    """The class of the program that a name means; None if it means something else, or more."""
    bindings = bindings_of(program, node) if isinstance(node, cst.Name) else []
    found = bindings[0].node if len(bindings) == 1 else None
    return found if isinstance(found, cst.ClassDef) else None
