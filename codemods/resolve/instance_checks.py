"""Finds tests of a class, such as `isinstance`, on values that are made elsewhere.

If a class is replaced by another one, such a test keeps its result only for instances that this
program makes: their constructor is replaced, too.
"""

from __future__ import annotations

from typing import Optional

import libcst as cst

from .legacy_symbols import root_of
from .optimizer_kinds import class_of
from .possible_values import paths_of, possible_values
from .program import Program, Reference
from .reaching_values import is_stored, loads_of

__all__ = ["CLASS_TESTS", "PATCHES", "is_class_read", "tests_unknown_instance"]

CLASS_TESTS = frozenset(["isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance"])
PATCHES = frozenset(["setattr", "delattr", "object"])
"""Functions that replace a member of a class; the last is that of `patch.object`."""
_ELEMENTS = (cst.Element, cst.Tuple, cst.List, cst.Set, cst.BinaryOperation)


def tests_unknown_instance(program: Program, reference: Reference) -> bool:
    """Whether the class is compared with the class of a value that this program may not make."""
    for place in [reference.node, *_names_of(program, reference)]:
        if _tests_unknown(program, place):
            return True
    return False


def is_class_read(program: Program, node: cst.CSTNode) -> bool:
    """Whether the class `node` is tested, is a key of a table, or has members replaced.

    What such a place does depends on which class an instance has. A call, a base and an annotation
    are no such places.
    """
    parent = program.parents.get(node)
    if isinstance(parent, cst.DictElement):
        return parent.key is node
    if isinstance(parent, cst.Attribute):
        return is_stored(program, parent)
    top = _display(program, node)
    parent = program.parents.get(top)
    if isinstance(parent, (cst.MatchClass, cst.Comparison, cst.ComparisonTarget)):
        return True
    if isinstance(parent, (cst.Assign, cst.AnnAssign)):
        return top is not node  # a tuple of classes; the reads of an alias are places of their own
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    return isinstance(call, cst.Call) and _name(call.func) in CLASS_TESTS | PATCHES


def _name(function: cst.BaseExpression) -> str:
    """The name of a function, or of a method without its object; empty if it has none."""
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


def _names_of(program: Program, reference: Reference) -> list[cst.Name]:
    """The reads of a variable that holds the class among others: `KINDS = (A, B)`."""
    top = _display(program, reference.node)
    parent = program.parents.get(top)
    if top is reference.node or not isinstance(parent, cst.Assign):
        return []  # the reads of an alias are places of their own
    found = []
    for one in parent.targets:
        if isinstance(one.target, cst.Name):
            owner = reference.scope.owner(one.target.value)
            found += loads_of(program, owner, one.target.value) if owner is not None else []
    return found


def _display(program: Program, node: cst.CSTNode) -> cst.CSTNode:
    """The largest tuple around `node`: the second argument of `isinstance(x, (A, (B, C)))`."""
    parent = program.parents.get(node)
    while isinstance(parent, _ELEMENTS):
        node, parent = parent, program.parents.get(parent)
    return node


def _tests_unknown(program: Program, place: cst.CSTNode) -> bool:
    top = _display(program, place)
    parent = program.parents.get(top)
    if isinstance(parent, cst.MatchClass):
        return True
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        return not _compares_known(program, parent)
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    name = _name(call.func) if isinstance(call, cst.Call) else ""
    if not isinstance(call, cst.Call) or name not in CLASS_TESTS:
        return False
    if name == "issubclass":
        return True
    if len(call.args) < 2 or call.args[1] is not parent:
        return True
    return not _is_made_here(program, call.args[0].value)


def _compares_known(program: Program, node: cst.CSTNode) -> bool:
    """Whether `type(value) is A` compares the class of a value that the program makes.

    `A is not None` tests no value.
    """
    if isinstance(node, cst.ComparisonTarget):
        above = program.parents.get(node)
        assert isinstance(above, cst.Comparison)
        node = above
    assert isinstance(node, cst.Comparison)
    sides = [node.left, *(one.comparator for one in node.comparisons)]
    if any(isinstance(side, cst.Name) and side.value == "None" for side in sides):
        return True
    values = [value for value in map(_argument_of_type, sides) if value is not None]
    return bool(values) and all(_is_made_here(program, value) for value in values)


def _argument_of_type(node: cst.BaseExpression) -> Optional[cst.BaseExpression]:
    """What `type(value)` and `value.__class__` read."""
    if isinstance(node, cst.Attribute) and node.attr.value == "__class__":
        return node.value
    is_type = (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "type"
        and len(node.args) == 1
    )
    return node.args[0].value if is_type and isinstance(node, cst.Call) else None


def _is_made_here(program: Program, node: cst.CSTNode) -> bool:
    """Whether each value of `node` is made here by a class that is known."""
    values = possible_values(program, node)
    return bool(values) and all(_is_constructor(program, value) for value in values)


def _is_constructor(program: Program, value: cst.CSTNode) -> bool:
    if not isinstance(value, cst.Call):
        return False
    made_by = program.by_node.get(value.func)
    if made_by is not None:
        # `global_policy` returns what something else has made.
        return not made_by.legacy.returns_policy or made_by.legacy.name == "Policy"
    if class_of(program, value) is not None:
        return True
    paths = paths_of(program, value.func)
    return bool(paths) and all(_is_class(path) for path in paths)


def _is_class(path: str) -> bool:
    """Whether `path` is a class of TensorFlow, of Keras or of the shim."""
    is_known = root_of(path) is not None or path.startswith("tf_lossscale.")
    return is_known and path.rpartition(".")[2][:1].isupper()
