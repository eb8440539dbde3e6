"""Finds the names of the classes that a module tests, or reads in a similar way.

Most files with an `isinstance` test other classes than those to migrate, which Python's own parser
tells much sooner than a rewrite on trial. Names are compared without their scopes, which finds too
many rather than too few.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Optional

from ..resolve.instance_checks import CLASS_TESTS, PATCHES

__all__ = ["NODES", "class_reads"]

_BINDINGS = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)
NODES: tuple[type[ast.AST], ...] = (*_BINDINGS, ast.Call, ast.Compare, ast.Dict)
"""The nodes, other than attributes that are assigned to, that show which classes are read."""
if hasattr(ast, "MatchClass"):
    NODES = (*NODES, ast.MatchClass)
_STRUCTURE = (ast.Tuple, ast.List, ast.Set, ast.BinOp, ast.IfExp, ast.BoolOp, ast.Starred)


def class_reads(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names of what a module may test as a class, look up in a table, or replace a member of.

    Names that an alias may stand for are included, also that of a class in a tuple of classes.

    Args:
      nodes: all nodes of the module of the types `NODES`, and attributes that are assigned to.
    """
    bindings = []
    read: set[str] = set()
    for node in nodes:
        if isinstance(node, _BINDINGS):
            bindings.append(node)
        else:
            read.update(name for place in _places(node) for name in _names(place))
    aliases: dict[str, set[str]] = {}
    for node in bindings if read else ():
        for name, value in _aliases(node):
            aliases.setdefault(name, set()).add(value)
    pending = list(read)
    while pending:
        new = aliases.get(pending.pop(), set()) - read
        read |= new
        pending += new
    return frozenset(read)


def _places(node: ast.AST) -> Iterable[Optional[ast.AST]]:
    """The expressions that `node` may read a class from, other than to call or to subclass it."""
    if isinstance(node, ast.Call):
        function = _name(node.func)
        if function in CLASS_TESTS:
            return node.args[1:]
        return node.args[:1] if function in PATCHES else ()
    if isinstance(node, ast.Compare):
        return (node.left, *node.comparators)
    if isinstance(node, ast.Dict):
        return node.keys
    if isinstance(node, ast.Attribute):
        return (node.value,)
    return (getattr(node, "cls", None),)


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that `node` binds, each with a name that its value contains."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, alias.name.rpartition(".")[2]
        return
    values = list(_names(getattr(node, "value", None)))
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    for target in targets if values else ():
        for name in _names(target):
            yield from ((name, value) for value in values)


def _names(node: Optional[ast.AST]) -> Iterator[str]:
    """The names in an expression, without those that it only calls or looks up something in."""
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, (ast.Name, ast.Attribute)):
            yield _name(one)
        elif isinstance(one, _STRUCTURE):
            pending += ast.iter_child_nodes(one)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
