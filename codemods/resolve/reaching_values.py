"""Finds the one assignment that defines a name at a place.

Rules act only on values that are certain. A name that is bound in a branch, in a loop, or more than
once has no certain value, unless one assignment comes last on every path to the place.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Optional

import libcst as cst

from .hidden_stores import classes_related_to, may_be_stored_unseen
from .program import Program
from .scopes import Binding, Scope
from .tree import children, walk

__all__ = [
    "body_of",
    "is_stored",
    "loads_of",
    "reaching_definition",
    "reaching_values_of_attribute",
    "statement_of",
]


def statement_of(program: Program, node: cst.CSTNode) -> Optional[cst.CSTNode]:
    """The nearest simple or compound statement that contains `node` and is in a body."""
    for above in [node, *program.ancestors(node)]:
        if body_of(program, above) is not None:
            return above
    return None


def body_of(program: Program, statement: cst.CSTNode) -> Optional[Sequence[cst.CSTNode]]:
    """The list of statements that contains `statement`."""
    parent = program.parents.get(statement)
    if isinstance(parent, (cst.IndentedBlock, cst.Module)) and isinstance(
        statement, (cst.BaseStatement,)
    ):
        return parent.body
    return None


def loads_of(program: Program, scope: Scope, name: str) -> list[cst.Name]:
    """Every place that reads the variable `name` of `scope`."""
    index = program.cached(_loads)
    return index.get((scope, name), [])


def _loads(program: Program) -> dict[tuple[Scope, str], list[cst.Name]]:
    found: dict[tuple[Scope, str], list[cst.Name]] = {}
    for name, scope in program.scopes.loads.items():
        owner = scope.owner(name.value)
        if owner is not None:
            found.setdefault((owner, name.value), []).append(name)
    return found


def reaching_definition(program: Program, name: cst.Name) -> Optional[Binding]:
    """The only binding whose value the load of `name` can read; None if that is not certain."""
    scope = program.scopes.loads.get(name)
    owner = scope.owner(name.value) if scope is not None else None
    if scope is None or owner is None:
        return None
    bindings = owner.bindings[name.value]
    if len(bindings) == 1 and bindings[0].kind == "value":
        return bindings[0]
    if scope is owner:
        return _reaching(program, name, owner, bindings)
    definition = _definition_in(scope, owner)  # read by a function that runs later
    if definition is None or not _all_before(program, bindings, definition):
        return None
    return _reaching(program, definition, owner, bindings)


def _definition_in(scope: Scope, owner: Scope) -> Optional[cst.CSTNode]:
    inner: Optional[Scope] = scope
    while inner is not None and inner.parent is not owner:
        inner = inner.parent
    return inner.node if inner is not None else None


def _all_before(program: Program, bindings: Sequence[Binding], place: cst.CSTNode) -> bool:
    """Whether no binding follows the statement of `place`, in its body or in an enclosing one."""
    nodes = {binding.node for binding in bindings}
    statement = statement_of(program, place)
    while statement is not None:
        body = body_of(program, statement)
        assert body is not None
        index = next(i for i, one in enumerate(body) if one is statement)
        for later in body[index + 1 :]:
            if any(node in nodes for node in walk(later)):
                return False
        block = program.parents[statement]
        above = program.parents.get(block)
        statement = statement_of(program, above) if above is not None else None
        if isinstance(above, (cst.FunctionDef, cst.Module)):
            break
    return True


def _reaching(
    program: Program, place: cst.CSTNode, owner: Scope, bindings: Sequence[Binding]
) -> Optional[Binding]:
    by_node = {binding.node: binding for binding in bindings}
    statement = statement_of(program, place)
    below = place
    while statement is not None:
        if _binds_before(program, statement, below, by_node):
            return None
        body = body_of(program, statement)
        assert body is not None
        index = next(i for i, one in enumerate(body) if one is statement)
        for earlier in reversed(body[:index]):
            inside = [node for node in _walk_own_scope(earlier) if node in by_node]
            if inside:
                last = by_node[inside[-1]]
                simple = isinstance(earlier, cst.SimpleStatementLine) and last.value is not None
                return last if simple and len(inside) == 1 else None
        block = program.parents[statement]
        above = program.parents.get(block)
        if above is None or above is owner.node:
            return None
        if isinstance(above, (cst.For, cst.While)) and any(
            node in by_node for node in _walk_own_scope(above)
        ):
            return None  # a later statement of the loop may bind it for the next iteration
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return None
        statement, below = statement_of(program, above), block
    return None


def _binds_before(
    program: Program,
    statement: cst.CSTNode,
    below: cst.CSTNode,
    bindings: Container[cst.CSTNode],
) -> bool:
    """Whether `statement` may bind the name before `below`, which is a part of it, runs.

    Examples are `with f() as a:`, `if (a := f()):`, a `case` with a capture, `except E as a:`, and
    the body of a `try` that runs before a handler.
    """
    is_simple = isinstance(statement, cst.SimpleStatementLine)
    is_after_body = isinstance(statement, (cst.Try, cst.TryStar)) and statement.body is not below
    stack = [statement]
    while stack:
        node = stack.pop()
        if node is below:
            continue
        is_block = isinstance(node, (cst.IndentedBlock, cst.SimpleStatementSuite))
        if is_block and not is_after_body:
            continue
        if node in bindings and not (
            is_simple and not isinstance(program.parents.get(node), cst.NamedExpr)
        ):
            return True
        stack.extend(children(node))
    return False


def _walk_own_scope(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield from walk(node)


def reaching_values_of_attribute(
    program: Program, node: cst.Attribute
) -> Optional[list[cst.BaseExpression]]:
    """Every value that `self.name` is assigned; None if there may be other values.

    The class, and the classes of the program that it inherits from or that inherit from it, can
    assign to the attribute, in a method or in the body of the class.
    """
    owner = _class_of(program, node)
    name = node.attr.value
    if owner is None or may_be_stored_unseen(program, name, owner):
        return None
    related = classes_related_to(program, owner)
    values = []
    for scope in program.all_scopes():
        for binding in scope.bindings.get(name, ()) if scope.node in related else ():
            if binding.value is None:
                return None
            values.append(binding.value)
    for attribute in program.attributes(name):
        parent = program.parents.get(attribute)
        if not is_stored(program, attribute):
            continue
        statement = program.parents.get(parent) if isinstance(parent, cst.AssignTarget) else parent
        value = getattr(statement, "value", None)
        plain = isinstance(statement, (cst.Assign, cst.AnnAssign))
        where = _class_of(program, attribute)
        if not plain or where is None or not isinstance(value, cst.BaseExpression):
            return None
        if where in related:
            values.append(value)
    return values


def _class_of(program: Program, node: cst.Attribute) -> Optional[cst.ClassDef]:
    """The class that contains `self.name`; None for other attributes."""
    if not isinstance(node.value, cst.Name) or node.value.value != "self":
        return None
    return next(
        (above for above in program.ancestors(node) if isinstance(above, cst.ClassDef)), None
    )


def is_stored(program: Program, node: cst.CSTNode) -> bool:
    """Whether any statement assigns to `node`, or deletes it."""
    parent = program.parents.get(node)
    if isinstance(parent, (cst.AssignTarget, cst.AsName)):
        return True
    if isinstance(parent, (cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor)):
        return parent.target is node
    if isinstance(parent, cst.Del):
        return True
    if isinstance(parent, (cst.Element, cst.StarredElement)):
        group = program.parents.get(parent)
        return group is not None and is_stored(program, group)
    return False
