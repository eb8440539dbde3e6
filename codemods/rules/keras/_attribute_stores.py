"""Finds the assignments to an attribute of any object, by the name of the attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ...resolve.program import Program

__all__ = ["Store", "stores_of"]


class Store(NamedTuple):
    place: cst.Attribute
    value: Optional[cst.BaseExpression]


def stores_of(program: Program, name: str) -> Iterator[Store]:
    """The assignments to `anything.name`; the value is None where it cannot be seen."""
    for attribute in program.attributes(name):
        parent = program.parents.get(attribute)
        if isinstance(parent, cst.AssignTarget):
            statement = program.parents.get(parent)
            yield Store(attribute, statement.value if isinstance(statement, cst.Assign) else None)
        elif isinstance(parent, cst.AnnAssign) and parent.target is attribute:
            if parent.value is not None:
                yield Store(attribute, parent.value)
        elif isinstance(parent, (cst.AugAssign, cst.For, cst.CompFor)):
            if parent.target is attribute:
                yield Store(attribute, None)
        elif _is_target(program, parent):
            yield Store(attribute, None)


def _is_target(program: Program, node: Optional[cst.CSTNode]) -> bool:
    """Whether `a.b` in `a.b, c = ...` or `with f() as a.b` is assigned to; `node` is around it."""
    if isinstance(node, cst.AsName):
        return True
    if not isinstance(node, (cst.Element, cst.StarredElement)):
        return False
    above = program.parents.get(node)
    while isinstance(above, (cst.Tuple, cst.List, cst.Element, cst.StarredElement)):
        node, above = above, program.parents.get(above)
    if isinstance(above, (cst.For, cst.CompFor)):
        return above.target is node
    return isinstance(above, (cst.AssignTarget, cst.AsName))
