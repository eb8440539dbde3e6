"""Decides whether a class is passed on as a value, so that other code may call it."""

from __future__ import annotations

import libcst as cst

from .program import Program

__all__ = ["escapes"]

_DO_NOT_CALL = {
    "assertIsInstance",
    "assertNotIsInstance",
    "cast",
    "hasattr",
    "isinstance",
    "issubclass",
    "print",
    "repr",
}
"""Callables that take a class and do not call it."""

_ELEMENTS = (cst.Element, cst.DictElement, cst.StarredElement)
_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.IfExp, cst.BooleanOperation)


def escapes(program: Program, node: cst.CSTNode) -> bool:
    """Whether the reference is an argument, element or return value that other code may call.

    `isinstance(x, (A, B))` and `custom_objects={"name": A}` do not call the class.
    """
    value, parent = node, program.parents.get(node)
    while isinstance(parent, (*_ELEMENTS, *_DISPLAYS)):
        value, parent = parent, program.parents.get(parent)
    if isinstance(parent, cst.Arg):
        call = program.parents.get(parent)
        if not isinstance(call, cst.Call):
            return False  # a base of a class statement
        if parent.keyword is not None and parent.keyword.value == "custom_objects":
            return False
        return program.code(call.func).rpartition(".")[2] not in _DO_NOT_CALL
    if isinstance(parent, cst.Call):
        return value is not node  # `(A if a else B)(...)` passes the same arguments to both
    if isinstance(parent, (cst.Return, cst.Yield, cst.Lambda)):
        return True
    if isinstance(parent, (cst.For, cst.CompFor)):
        return parent.iter is value
    return isinstance(parent, (cst.Assign, cst.NamedExpr)) and isinstance(value, _DISPLAYS)
