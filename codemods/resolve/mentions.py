"""Tells what a place does with its symbol: a call, a class test, the names that it binds."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Sequence
from typing import Optional

import libcst as cst

from .legacy_symbols import is_absent_from_shim, is_special
from .places import NamespaceUse, Place, Reference
from .scopes import ScopeKind
from .syntax import Syntax
from .tree import last_name, string_of

__all__ = ["DISPLAYS", "Mention", "Mentions"]

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

    @property
    def binds_name(self) -> bool:
        """Whether it only gives the symbol a name, whose reads are places of their own."""
        return self in (Mention.IMPORT, Mention.ALIAS)


class Mentions:
    """What the places of a file do with their symbols."""

    def __init__(self, syntax: Syntax) -> None:
        self._syntax = syntax

    def of(self, reference: Reference) -> Mention:
        """What the place of a reference does with its symbol."""
        syntax, node = self._syntax, reference.node
        parent = syntax.parents.get(node)
        if reference.root is None:
            return Mention.IMPORT
        if isinstance(parent, cst.Attribute) or syntax.is_stored(node):
            return Mention.MEMBER
        if syntax.call_of(node) is not None:
            return Mention.CALL
        if isinstance(parent, cst.Arg) and isinstance(syntax.parents.get(parent), cst.ClassDef):
            return Mention.BASE
        if self.tested_object(node) is not None:
            return Mention.TEST
        if self._is_alias(reference):
            return Mention.ALIAS
        _, above = syntax.outside(node, _IN_ANNOTATION)
        return Mention.ANNOTATION if isinstance(above, cst.Annotation) else Mention.VALUE

    def absent_name(self, use: NamespaceUse) -> str:
        """The name that a place reads from a module, if nothing that can replace that one has it.

        The place then stays as it is, and so does what binds the module there.
        """
        parent = self._syntax.parents.get(use.node)
        name = parent.attr.value if isinstance(parent, cst.Attribute) else ""
        if parent is None or not name or is_special(name):
            return ""
        if use.is_on_shim:
            is_absent = is_absent_from_shim(f"{use.path}.{name}")
            return name if is_absent and not self._syntax.is_stored(parent) else ""
        is_private = use.path.rpartition(".")[2] != use.module.name.rpartition(".")[2]
        return name if use.is_whole or (is_private and use.is_final) else ""

    def tested_object(self, node: cst.CSTNode) -> Optional[cst.BaseExpression]:
        """The `x` of `isinstance(x, node)`; None if the place is no such test."""
        _, parent = self._syntax.outside(node, _UNIONS)
        call = self._syntax.parents.get(parent) if isinstance(parent, cst.Arg) else None
        if not isinstance(call, cst.Call) or len(call.args) < 2 or call.args[1] is not parent:
            return None
        return call.args[0].value if last_name(call.func) in _TESTS else None

    def compares_type(self, node: cst.CSTNode) -> bool:
        """Whether a class is compared with `type(x)` or `x.__class__`, alone or in a tuple."""
        _, parent = self._syntax.outside(node, (*DISPLAYS, cst.ComparisonTarget))
        if not isinstance(parent, cst.Comparison):
            return False
        sides = [parent.left, *(comparison.comparator for comparison in parent.comparisons)]
        texts = [self._syntax.code(side) for side in sides]
        return any(text.startswith("type(") or text.endswith(".__class__") for text in texts)

    def has_string(self, texts: Collection[str]) -> bool:
        """Whether a string of the file is one of these, such as a name in `__all__`."""
        return any(string_of(string) in texts for string in self._syntax.scopes.strings)

    def names_bound(self, place: Place) -> list[str]:
        """The names that the import or assignment at a place binds, also to a tuple with it."""
        if place.root is not None:
            return self.names_assigned(place.node)
        found = place.scope.bindings.items()
        return [
            name for name, bound in found if any(binding.node is place.node for binding in bound)
        ]

    def names_assigned(self, node: cst.CSTNode) -> list[str]:
        """The names that an assignment binds to an expression, or to a tuple with it."""
        _, parent = self._syntax.outside(node, DISPLAYS)
        if not isinstance(parent, cst.Assign):
            return []
        targets = [bound.target for bound in parent.targets]
        return [target.value for target in targets if isinstance(target, cst.Name)]

    def accesses(self, names: Sequence[str]) -> Iterator[tuple[cst.Call, str]]:
        """Each `getattr(x, "name")`, `hasattr(x, "name")` and the like, with the name."""
        for string in self._syntax.scopes.strings:
            name = string_of(string)
            if name is None or name not in names:
                continue
            argument = self._syntax.parents.get(string)
            call = self._syntax.parents.get(argument) if isinstance(argument, cst.Arg) else None
            if not isinstance(call, cst.Call) or self._syntax.code(call.func) not in _ACCESS:
                continue
            if argument in call.args[1:2]:
                yield call, name

    def reads_of(self, name: str) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
        """Each use of an attribute, as `x.name` or `getattr(x, "name")`, with `x`."""
        for attribute in self._syntax.attributes(name):
            yield attribute, attribute.value
        for call, _ in self.accesses([name]):
            yield call, call.args[0].value

    def _is_alias(self, reference: Reference) -> bool:
        """Whether the place binds plain names, outside of a class body, to the symbol.

        A name that the place itself begins with has another meaning before it.
        """
        parent = self._syntax.parents.get(reference.node)
        root = reference.root.value if reference.root is not None else ""
        if isinstance(parent, cst.Assign):
            targets = [bound.target for bound in parent.targets]
            return reference.scope.kind is not ScopeKind.CLASS and all(
                isinstance(target, cst.Name) and target.value != root for target in targets
            )
        return isinstance(parent, cst.NamedExpr) and parent.value is reference.node
