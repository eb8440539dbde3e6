"""Tells what a place does with its symbol: a call, a class test, the names that it binds."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Optional

import libcst as cst

from .legacy_symbols import is_absent_from_shim, is_special
from .places import NamespaceUse, Place, Reference
from .scopes import ScopeKind
from .syntax import Syntax
from .tree import last_name, string_of, walk

__all__ = ["DISPLAYS", "Mention", "Mentions"]

_TESTS = frozenset(["isinstance", "issubclass", "assertIsInstance", "assertNotIsInstance"])
_ACCESS = ("delattr", "getattr", "hasattr", "setattr")
DISPLAYS = (cst.Element, cst.Tuple, cst.List, cst.Set)
_UNIONS = (*DISPLAYS, cst.BinaryOperation)
_IN_ANNOTATION = (
    cst.Subscript, cst.SubscriptElement, cst.Index, cst.BinaryOperation, cst.Element, cst.Tuple,
    cst.List,
)  # fmt: skip

_RUNNING = ("eval", "exec", "execfile")
_OPENING = ("open", "read", "read_text", "run_path")
_EVALUATING = frozenset([
    *_RUNNING, "ForwardRef", "Timer", "compile", "get_ipython", "timeit",
])  # fmt: skip
"""Functions and modules that evaluate texts, so that any string of the file may be one."""
_EVALUATING_ATTRIBUTES = (
    "ForwardRef", "InteractiveConsole", "InteractiveInterpreter", "Timer", "get_ipython",
    "run_cell", "run_cell_magic", "run_code", "run_line_magic", "runctx", "timeit",
)  # fmt: skip
_EVALUATING_METHODS = frozenset(["eval", "exec", "getoutput", "magic", "query", "system"])
"""Methods that evaluate their arguments, or do in some classes: `frame.eval("x + @tf.pi")`."""
_RUN_INSIDE = re.compile(r"(?:^|%)\s*run\s+(?:-\w+\s+)*-\w*i\b|^\s*-\w*i\s+\S+\.(?:py|ipynb)\b")
"""Matches `%run -i use.py`, also as an argument, which runs a file with the names of this one."""


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

    def is_in_text_that_is_read(self, name: str) -> bool:
        """Whether something other than a name may read a variable.

        That is an annotation in a string, a text that is or may be evaluated, such as `"{tf}"` and
        `"tf." + kind`, a computed text that is evaluated, or `sys.modules[__name__].tf`.
        """
        if self._evaluates_computed_text or any(map(_is_of_modules, self._syntax.attributes(name))):
            return True
        word = _word(name)
        if any(map(word.search, self._syntax.texts)):
            return True
        if self._texts_of_f_strings_read(name):
            return True
        strings = self._syntax.scopes.strings
        return any(self._reads(string, name) for string in strings if word.search(string.value))

    def _reads(self, string: cst.SimpleString, name: str) -> bool:
        """Whether a string with the name of a variable may be a text that reads it."""
        if string.raw_value == name:
            return True
        above, parent = self._syntax.outside(string, (cst.ConcatenatedString,))
        if isinstance(parent, cst.Expr):
            return False  # a docstring
        if self._evaluates_text or _evaluated(name).search(string.raw_value):
            return True
        begins_chain = _at_end(name).search(string.raw_value) is not None
        is_one_word = not re.search(r"\s", string.raw_value)
        if begins_chain and (is_one_word or isinstance(parent, cst.BinaryOperation)):
            return True
        return any(
            isinstance(around, cst.Annotation)
            or (isinstance(around, cst.Call) and last_name(around.func) in _EVALUATING_METHODS)
            for around in self._syntax.ancestors(above)
        )

    def _texts_of_f_strings_read(self, name: str) -> bool:
        """Whether an f-string such as `f"tf.{kind}"` may be a text that reads a variable."""
        word, evaluated = _word(name), _evaluated(name)
        for string in self._syntax.scopes.f_strings:
            text = "".join(map(_text_of_part, string.parts))
            if evaluated.search(text) or (self._evaluates_text and word.search(text)):
                return True
        return False

    @functools.cached_property
    def _evaluates_text(self) -> bool:
        """Whether the file may evaluate texts, so that any string of it may be one."""
        return any(name.value in _EVALUATING for name in self._syntax.scopes.loads) or any(
            map(self._syntax.attributes, _EVALUATING_ATTRIBUTES)
        )

    @functools.cached_property
    def _evaluates_computed_text(self) -> bool:
        """Whether the file evaluates a text that none of its strings shows, such as a file.

        As in `exec(open("use.py").read())`, `eval(arguments.dtype)` and `%run -i use.py`.
        """
        syntax = self._syntax
        calls = (syntax.call_of(load) for load in syntax.scopes.loads if load.value in _RUNNING)
        if any(call is not None and not _shows_text(call) for call in calls):
            return True
        texts = [*syntax.texts, *(string.raw_value for string in syntax.scopes.strings)]
        return any(map(_RUN_INSIDE.search, texts))

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


def _word(name: str) -> re.Pattern[str]:
    """Matches a name in the source of a string, where an escape can stand before it."""
    return re.compile(rf"(?:(?<!\w)|(?<=\\[abfnrtv])){re.escape(name)}(?!\w)")


def _evaluated(name: str) -> re.Pattern[str]:
    """Matches a name that is read, called, indexed, or put into a text by its name."""
    word = _word(name).pattern
    braces = rf"\{{{re.escape(name)}\s*[}}.!:\[]"
    return re.compile(rf"{word}(?:\.[\w{{%]|[(\[])|{braces}|%\({re.escape(name)}\)|\$\{{?{word}")


def _at_end(name: str) -> re.Pattern[str]:
    """Matches a name with a dot at the end of a text, to which an attribute may be added."""
    return re.compile(rf"{_word(name).pattern}\.$")


def _text_of_part(part: cst.BaseFormattedStringContent) -> str:
    """The text of a part of an f-string; an open brace for an expression."""
    return part.value if isinstance(part, cst.FormattedStringText) else "{"


def _is_of_modules(attribute: cst.Attribute) -> bool:
    """Whether an attribute is read from `sys.modules[...]` or from `__main__`."""
    owner = attribute.value
    if isinstance(owner, cst.Subscript):
        return last_name(owner.value) == "modules"
    return last_name(owner) == "__main__"


def _shows_text(call: cst.Call) -> bool:
    """Whether strings are a part of the text that a call evaluates, and no name of a file."""
    if not call.args:
        return True
    nodes = list(walk(call.args[0].value))
    strings = (cst.SimpleString, cst.FormattedStringText)
    has_string = any(isinstance(node, strings) for node in nodes)
    calls = (node for node in nodes if isinstance(node, cst.Call))
    return has_string and not any(last_name(inner.func) in _OPENING for inner in calls)
