"""Tells what a place does with its symbol: a call, a class test, the names that it binds."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from typing import Optional

import libcst as cst

from .places import Place, Reference
from .program import Program
from .scopes import ScopeKind
from .tree import last_name, string_of

__all__ = [
    "DISPLAYS",
    "Mention",
    "accesses",
    "compares_type",
    "mention_of",
    "named_in_text",
    "names_assigned",
    "names_bound",
    "reads_of",
    "tested_object",
]

_TESTS = frozenset(["isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance"])
_ACCESS = ("delattr", "getattr", "hasattr", "setattr")
DISPLAYS = (cst.Element, cst.Tuple, cst.List, cst.Set)
_UNIONS = (*DISPLAYS, cst.BinaryOperation)
_IN_ANNOTATION = (
    cst.Subscript, cst.SubscriptElement, cst.Index, cst.BinaryOperation, cst.Element, cst.Tuple,
    cst.List,
)  # fmt: skip


class Mention(enum.Enum):
    """What a place does with a symbol."""

    IMPORT = "import"
    CALL = "call"
    ALIAS = "alias"
    """Binds it to a name, whose reads are places of their own."""
    TEST = "test"
    """Tests an object or a class for it."""
    ANNOTATION = "annotation"
    BASE = "base"
    """Inherits from it."""
    MEMBER = "member"
    """Reads, replaces or deletes an attribute of it."""
    VALUE = "value"
    """Anything else: an argument, an element, a key, a default, a comparison."""


def mention_of(program: Program, reference: Reference) -> Mention:
    """What the place of a reference does with its symbol."""
    node = reference.node
    parent = program.parents.get(node)
    if reference.root is None:
        return Mention.IMPORT
    if isinstance(parent, cst.Attribute) or program.is_stored(node):
        return Mention.MEMBER
    if program.call_of(node) is not None:
        return Mention.CALL
    if isinstance(parent, cst.Arg) and isinstance(program.parents.get(parent), cst.ClassDef):
        return Mention.BASE
    if tested_object(program, node) is not None:
        return Mention.TEST
    if _is_alias(program, reference):
        return Mention.ALIAS
    _, above = program.outside(node, _IN_ANNOTATION)
    return Mention.ANNOTATION if isinstance(above, cst.Annotation) else Mention.VALUE


def tested_object(program: Program, node: cst.CSTNode) -> Optional[cst.BaseExpression]:
    """The `x` of `isinstance(x, node)`; None if the place is no such test."""
    _, parent = program.outside(node, _UNIONS)
    call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) < 2 or call.args[1] is not parent:
        return None
    return call.args[0].value if last_name(call.func) in _TESTS else None


def compares_type(program: Program, node: cst.CSTNode) -> bool:
    """Whether a class is compared with `type(x)` or `x.__class__`, alone or in a tuple."""
    _, parent = program.outside(node, (*DISPLAYS, cst.ComparisonTarget))
    if not isinstance(parent, cst.Comparison):
        return False
    sides = [parent.left, *(comparison.comparator for comparison in parent.comparisons)]
    texts = [program.code(side) for side in sides]
    return any(text.startswith("type(") or text.endswith(".__class__") for text in texts)


def named_in_text(program: Program, name: str) -> bool:
    """Whether a string that is an annotation may name a variable."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(
        string.raw_value == name
        or any(isinstance(above, cst.Annotation) for above in program.ancestors(string))
        for string in program.scopes.strings
        if word.search(string.value)
    )


def _is_alias(program: Program, reference: Reference) -> bool:
    """Whether the place binds plain names, outside of a class body, to the symbol."""
    parent = program.parents.get(reference.node)
    if isinstance(parent, cst.Assign):
        targets = [bound.target for bound in parent.targets]
        return reference.scope.kind is not ScopeKind.CLASS and all(
            isinstance(target, cst.Name) for target in targets
        )
    return isinstance(parent, cst.NamedExpr) and parent.value is reference.node


def names_bound(program: Program, place: Place) -> list[str]:
    """The names that the import or assignment at a place binds, also to a tuple with it."""
    if place.root is not None:
        return names_assigned(program, place.node)
    found = place.scope.bindings.items()
    return [name for name, bound in found if any(binding.node is place.node for binding in bound)]


def names_assigned(program: Program, node: cst.CSTNode) -> list[str]:
    """The names that an assignment binds to an expression, or to a tuple with it."""
    _, parent = program.outside(node, DISPLAYS)
    targets = [bound.target for bound in parent.targets] if isinstance(parent, cst.Assign) else []
    return [target.value for target in targets if isinstance(target, cst.Name)]


def accesses(program: Program, names: Sequence[str]) -> Iterator[tuple[cst.Call, str]]:
    """Each `getattr(x, "name")`, `hasattr(x, "name")` and the like, with the name."""
    for string in program.scopes.strings:
        name = string_of(string)
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if name not in names or not isinstance(call, cst.Call) or argument not in call.args[1:2]:
            continue
        if name is not None and program.code(call.func) in _ACCESS:
            yield call, name


def reads_of(program: Program, name: str) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Each use of an attribute, as `x.name` or `getattr(x, "name")`, with `x`."""
    for attribute in program.attributes(name):
        yield attribute, attribute.value
    for call, _ in accesses(program, [name]):
        yield call, call.args[0].value
