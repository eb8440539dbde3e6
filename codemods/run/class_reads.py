"""Finds out whether a file tests one of the migrated classes, or reads it in a similar way.

Most files with an `isinstance` test other classes. Python's own parser tells so much sooner than a
rewrite on trial. Names are compared without their scopes, which finds too much rather than too
little.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import Optional

from ..resolve.instance_checks import CLASS_TESTS, PATCHES

__all__ = ["may_read_class"]

_STRUCTURE = (ast.Tuple, ast.List, ast.Set, ast.BinOp, ast.IfExp, ast.BoolOp, ast.Starred)


def may_read_class(source: bytes, classes: Collection[str], imported: Iterable[str]) -> bool:
    """Whether a file may test one of some classes, look it up in a table, or replace a member.

    Args:
      source: the source of the file.
      classes: the ends of the names of these classes.
      imported: further names for them, which other files of the run bind.
    """
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    ends = tuple(classes)
    read = {name for node in nodes for place in _places(node) for name in _names(place)}
    aliases = [pair for node in nodes for pair in _aliases(node)]
    known = {*imported, *(name for pair in aliases for name in pair if name.endswith(ends))}
    known.update(name for name in read if name.endswith(ends))
    is_new = True
    while is_new:
        new = {name for name, value in aliases if value in known} - known
        known |= new
        is_new = bool(new)
    return not read.isdisjoint(known)


def _places(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions that `node` may read a class from, other than to call or to subclass it."""
    if isinstance(node, ast.Call):
        function = _name(node.func)
        if function in CLASS_TESTS:
            yield from node.args[1:]
        elif function in PATCHES:
            yield from node.args[:1]
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Dict):
        yield from (key for key in node.keys if key is not None)
    elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        yield node.value
    elif type(node).__name__ == "MatchClass":
        yield node.cls  # type: ignore[attr-defined]


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that `node` binds, each with a name that its value contains."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, alias.name.rpartition(".")[2]
        return
    value = getattr(node, "value", None)
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr, ast.AugAssign)):
        targets = [node.target]
    else:
        return
    for target in targets:
        for name in _names(target):
            yield from ((name, one) for one in _names(value))


def _names(node: Optional[ast.AST]) -> Iterator[str]:
    """The names in an expression, without those that it only calls or looks up something in."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield _name(node)
    elif isinstance(node, _STRUCTURE):
        for below in ast.iter_child_nodes(node):
            yield from _names(below)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
