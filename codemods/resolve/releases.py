"""Computes what an expression is on each release of TensorFlow, if it is made of the version.

This covers what programs write to compare versions: the version as text, as numbers and as objects
of `packaging` and `distutils`, and whether a module has a legacy name. Nothing is executed.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

import libcst as cst

from ..facts import Constant
from .legacy_symbols import Family, legacy_of, namespace_of, root_of
from .resolved_program import ResolvedProgram
from .scopes import ScopeKind
from .tree import last_name, string_of

__all__ = [
    "NEWEST",
    "Flags",
    "first_release_again",
    "is_conditional",
    "is_version",
    "value_on_newest",
]

RELEASES = ("1.15.0", *(f"2.{minor}.0" for minor in range(22)))
NEWEST = RELEASES[-1]
_LAST_OF_ONE_DIGIT = "2.9.0"
"""The last release whose text sorts like its numbers."""
_KERAS = {
    "1.15.0": "2.2.4-tf", "2.0.0": "2.2.4-tf", "2.1.0": "2.2.4-tf", "2.2.0": "2.3.0-tf",
    "2.3.0": "2.4.0",
    **{f"2.{minor}.0": f"3.{minor - 16}.0" for minor in range(16, 22)},
}  # fmt: skip
"""The version of Keras in a release, where it is not the same."""

Flags = Mapping[str, Optional[tuple[Constant]]]
"""The names of other files that depend on the version, with their values on the newest release."""

_VERSION = re.compile(r"(?:^|\.)(?:__version__|(?:GIT_)?VERSION)$")
_NUMBER = re.compile(r"\d+")
_NUMBER_OR_WORD = re.compile(r"\d+|[a-z]+|[^\d.a-z]+")
_DISTRIBUTION = re.compile(r"(?:tensorflow(?:[-_](?:cpu|gpu))?|tf[-_]nightly)$")
_DEPTH = 12
"""How many names and calls an expression is followed through."""
_LONGEST = 1000
"""Elements of a value; versions have a few."""
_MOST_STEPS = 2000
"""Expressions that one value is made of; versions take a few dozen."""
_EVERYWHERE = (
    "compat", "compat.v1", "keras", "keras.mixed_precision", "keras.optimizers", "train",
)  # fmt: skip
"""The modules that every release has."""
_REMOVED = ("keras.mixed_precision.experimental", "mixed_precision.experimental")
"""The modules that TensorFlow 2.9 removed."""


class _Unknown(Exception):
    """The value cannot be computed."""


@functools.total_ordering
class _Version:
    """A version object of `packaging` or `pkg_resources`, which is not compared with text.

    Attributes:
      release: its numbers; of a `LooseVersion`, also its words, such as `rc`.
    """

    def __init__(self, text: object) -> None:
        if not isinstance(text, str):
            raise _Unknown
        self._text = text
        self.release: tuple[Union[int, str], ...] = _numbers(text)

    def __eq__(self, other: object) -> bool:
        found = self._like(other)
        return NotImplemented if found is None else self.release == found.release

    def __lt__(self, other: object) -> bool:
        found = self._like(other)
        return NotImplemented if found is None else self.release < found.release

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"

    def _like(self, other: object) -> Optional[_Version]:
        """What this is compared with; None if Python compares them in no way."""
        return other if isinstance(other, _Version) and type(other) is type(self) else None


class _StrictVersion(_Version):
    """A `StrictVersion` of `distutils`, which makes a version of a text to compare with it."""

    def _like(self, other: object) -> Optional[_Version]:
        return super()._like(type(self)(other) if isinstance(other, str) else other)


class _LooseVersion(_StrictVersion):
    """A `LooseVersion` of `distutils`, for which 2.4 is older than 2.4.0."""

    def __init__(self, text: object) -> None:
        super().__init__(text)
        parts = _NUMBER_OR_WORD.findall(self._text)
        self.release = tuple(int(part) if part.isdigit() else part for part in parts)


_Value = Any
"""A `Constant`, a list of them, or a version object."""


def value_on_newest(
    program: ResolvedProgram, node: cst.BaseExpression, flags: Flags
) -> Optional[tuple[Constant]]:
    """The value of an expression on the newest release, in a tuple; None if it is not known.

    A comparison that goes wrong from TensorFlow 2.10 on counts as what it is meant to be.
    """
    try:
        value = _Evaluation(program, NEWEST, flags).of(node)
    except _Unknown:
        return None
    return (_constant(value),)


def first_release_again(program: ResolvedProgram, node: cst.BaseExpression) -> str:
    """The first release from which a test of the version gives the answer for older ones again.

    Empty if there is none. `tf.__version__ < "2.4"` compares text: it is true for 2.10, as it was
    for 2.1; `tf.__version__[:3] == "2.1"` is, too. A part that is a whole number, such as the minor
    version, is compared as it is meant.
    """
    operands = _operands(node)
    if not operands:
        return ""
    try:
        values = [_values_on(program, release, operands) for release in RELEASES]
        answers = [bool(_Evaluation(program, release, {}).directly(node)) for release in RELEASES]
    except _Unknown:
        return ""
    varying = [column for column in zip(*values) if len(set(map(repr, column))) > 1]
    if not varying or any(map(_is_number, varying)):
        return ""
    if isinstance(node, cst.Comparison) and _orders(node):
        changes = [
            index for index in range(1, len(answers)) if answers[index] != answers[index - 1]
        ]
        expected = len(node.comparisons)
        return _minor(RELEASES[changes[expected]]) if len(changes) > expected else ""
    return _collision(varying, answers)


def _is_number(column: Sequence[_Value]) -> bool:
    """Whether an operand is a whole number of the version, and not only its first digit."""
    first, second = RELEASES.index("2.1.0"), RELEASES.index("2.2.0")
    is_cut = column[first] == column[RELEASES.index("2.10.0")] != column[second]
    return isinstance(column[0], int) and not is_cut


def _operands(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a comparison compares; for `version.startswith("2.1")`, the version and the text."""
    if isinstance(node, cst.Comparison):
        return [node.left, *(part.comparator for part in node.comparisons)]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        is_prefix = node.func.attr.value == "startswith" and len(node.args) == 1
        return [node.func.value, node.args[0].value] if is_prefix else []
    return []


def _values_on(
    program: ResolvedProgram, release: str, operands: Sequence[cst.CSTNode]
) -> list[_Value]:
    evaluation = _Evaluation(program, release, {})
    return [evaluation.of(operand) for operand in operands]


def _orders(node: cst.Comparison) -> bool:
    return all(type(part.operator) in _ORDERS for part in node.comparisons)


def _collision(varying: Sequence[Sequence[_Value]], answers: Sequence[bool]) -> str:
    """The first release with two digits that is taken for one with the first of them."""
    last = RELEASES.index(_LAST_OF_ONE_DIGIT)
    for older, newer in (("2.1.0", "2.10.0"), ("2.2.0", "2.20.0")):
        was, now = RELEASES.index(older), RELEASES.index(newer)
        is_cut = all(_is_cut(column[was], column[now]) for column in varying)
        if is_cut and answers[was] == answers[now] != answers[last]:
            return _minor(newer)
    return ""


def _is_cut(older: _Value, newer: _Value) -> bool:
    """Whether only a part of the version is compared, which both releases have."""
    return older == newer or newer in _WITH_TWO_DIGITS


_WITH_TWO_DIGITS = ("2.10.0", "2.20.0")


def _minor(release: str) -> str:
    return release.rpartition(".")[0]


_CONDITIONAL = (cst.For, cst.If, cst.Match, cst.Try, cst.TryStar, cst.While)


def is_conditional(program: ResolvedProgram, target: cst.CSTNode) -> bool:
    """Whether only some runs bind a name at a place, such as one in a `try`."""
    for above in program.ancestors(target):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return False
        if isinstance(above, _CONDITIONAL):
            return True
    return False


def _part(version: _Version, name: str) -> _Value:
    """An attribute of a version object."""
    if name in _PARTS:
        return (*version.release, 0, 0, 0)[_PARTS[name]]
    return version.release if name == "release" else list(version.release)


def _constant(value: _Value) -> Constant:
    if isinstance(value, _Version):
        return value.release
    return tuple(map(_constant, value)) if isinstance(value, (list, tuple)) else value


def _numbers(text: str) -> tuple[int, ...]:
    """The version that a text means, without zeros at the end: 2.4 and 2.4.0 are equal."""
    numbers: list[int] = []
    for part in text.split("."):
        found = _NUMBER.match(part)
        if found is None:
            break
        numbers.append(int(found[0][:9]))
        if found.end() != len(part):
            break
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


_ORDERS: dict[type, Callable[[Any, Any], bool]] = {
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    **_ORDERS,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.Is: lambda left, right: left is right,
    cst.IsNot: lambda left, right: left is not right,
    cst.In: lambda left, right: left in right,
    cst.NotIn: lambda left, right: left not in right,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "LooseVersion": _LooseVersion,
    "StrictVersion": _StrictVersion,
    "Version": _Version,
    "bool": bool,
    "float": float,
    "int": int,
    "len": len,
    "list": list,
    "parse": _Version,
    "parse_version": _Version,
    "str": str,
    "tuple": tuple,
}
_METHODS = (
    "endswith",
    "partition",
    "replace",
    "rpartition",
    "rsplit",
    "split",
    "startswith",
    "strip",
)
_NAMES = {"None": None, "True": True, "False": False}
_PARTS = {"major": 0, "minor": 1, "micro": 2}
_GIVING_VERSION = ("get_distribution", "version", "distribution")


class _Evaluation:
    """Evaluates expressions for one release; raises `_Unknown` for all that it does not know."""

    def __init__(
        self, program: ResolvedProgram, release: str, flags: Flags, depth: int = _DEPTH
    ) -> None:
        self._program = program
        self._release = release
        self._flags = flags
        self._depth = depth
        self._steps = 0

    def of(self, node: cst.CSTNode) -> _Value:
        """The value of an expression."""
        evaluate = _EVALUATE.get(type(node))
        self._steps += 1
        if evaluate is None or not self._depth or self._steps > _MOST_STEPS:
            raise _Unknown
        self._depth -= 1
        try:
            value = self._attempt(evaluate, node)
        finally:
            self._depth += 1
        if isinstance(value, (str, list, tuple)) and len(value) > _LONGEST:
            raise _Unknown
        return value

    def _text(self, node: cst.SimpleString) -> str:
        text = string_of(node)
        if text is None:
            raise _Unknown
        return text

    def _number(self, node: Union[cst.Integer, cst.Float]) -> _Value:
        if len(node.value) > 20:
            raise _Unknown
        return node.evaluated_value

    def _sequence(self, node: Union[cst.Tuple, cst.List]) -> _Value:
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            raise _Unknown
        values = [self.of(element.value) for element in node.elements]
        if any(isinstance(value, (list, tuple)) for value in values):
            raise _Unknown
        return tuple(values) if isinstance(node, cst.Tuple) else values

    def _name(self, node: Union[cst.Name, cst.Attribute]) -> _Value:
        """The value of a name or an attribute.

        Raises:
          _Unknown: it has several bindings, or one that runs on a condition.
        """
        if isinstance(node, cst.Name) and node.value in _NAMES:
            return _NAMES[node.value]
        paths = self._program.paths_of(node)
        if paths and all(map(_is_version, paths)):
            return self._version(min(paths))
        if paths and paths <= self._flags.keys():
            return self._flag(min(paths))
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        bindings = self._program.values.bindings_of(node)
        if len(bindings) != 1 or is_conditional(self._program, bindings[0].node):
            raise _Unknown
        if bindings[0].value is not None:
            return self.of(bindings[0].value)
        return self._unpacked(bindings[0].node)

    def _version(self, path: str) -> str:
        root = root_of(path)
        is_keras = root is not None and (root.name == "keras" or root.rest.startswith("keras."))
        return _KERAS.get(self._release, self._release) if is_keras else self._release

    def _flag(self, path: str) -> _Value:
        value = self._flags[path]
        if value is None or self._release != NEWEST:
            raise _Unknown
        return value[0]

    def _attribute(self, node: cst.Attribute) -> _Value:
        name = node.attr.value
        if name == "__version__" and "tensorflow" in self._program.code(node.value):
            return self._release  # of `sys.modules["tensorflow"]`
        if name in ("version", "release") or name in _PARTS:
            value = self.of(node.value)
            if isinstance(value, _Version):
                return _part(value, name)
            if isinstance(value, str) and name == "version":
                return value  # of a distribution
        return self._of_class(name)

    def _of_class(self, name: str) -> _Value:
        """The value of an attribute that one class of the file has."""
        for scope in self._program.scopes.all:
            bindings = scope.bindings.get(name, []) if scope.kind is ScopeKind.CLASS else []
            if len(bindings) != 1 or is_conditional(self._program, bindings[0].node):
                continue
            if bindings[0].value is not None:
                return self.of(bindings[0].value)
        raise _Unknown

    def _unpacked(self, target: cst.CSTNode) -> _Value:
        """The part of `major, minor = ...` that a target gets."""
        element = self._program.parents.get(target)
        group = self._program.parents.get(element) if element is not None else None
        holder = self._program.parents.get(group) if group is not None else None
        assign = self._program.parents.get(holder) if holder is not None else None
        if not isinstance(group, (cst.Tuple, cst.List)) or not isinstance(assign, cst.Assign):
            raise _Unknown
        values = self.of(assign.value)
        starred = [isinstance(element, cst.StarredElement) for element in group.elements]
        index = [element.value is target for element in group.elements].index(True)
        if any(starred[: index + 1]) or not isinstance(values, (list, tuple)):
            raise _Unknown
        return values[index]

    def _subscript(self, node: cst.Subscript) -> _Value:
        """The value of an index or a slice, such as the first two parts of a version."""
        value = self.of(node.value)
        if len(node.slice) != 1:
            raise _Unknown
        part = node.slice[0].slice
        if isinstance(part, cst.Index):
            return value[self.of(part.value)]
        if not isinstance(part, cst.Slice) or part.step is not None:
            raise _Unknown
        bounds = [
            self.of(bound) if bound is not None else None for bound in (part.lower, part.upper)
        ]
        return value[slice(*bounds)]

    def _call(self, node: cst.BaseExpression) -> _Value:
        """The value of a call of a known function, such as `tuple`, `int` or `hasattr`.

        Raises:
          _Unknown: what it returns does not depend on the version alone.
        """
        assert isinstance(node, cst.Call)
        function = self._function(node.func)
        if any(argument.star or argument.keyword for argument in node.args):
            raise _Unknown
        if function in ("hasattr", "getattr", "find_spec"):
            return self._found(function, node)
        if function in _GIVING_VERSION and node.args:
            return self._version_of_distribution(node.args[0].value)
        if function in (*_METHODS, "join") and isinstance(node.func, cst.Attribute):
            return self._method(function, node.func.value, node.args)
        if function == "map" and len(node.args) == 2:
            mapped = _FUNCTIONS[self._known(last_name(node.args[0].value))]
            return [mapped(element) for element in self.of(node.args[1].value)]
        if function in _FUNCTIONS and node.args:
            return _FUNCTIONS[function](*(self.of(argument.value) for argument in node.args))
        return self._returned(node)

    def _function(self, node: cst.BaseExpression) -> str:
        """The name of a function, also if the file imports it under another one."""
        paths = self._program.paths_of(node)
        return min(paths).rpartition(".")[2] if len(paths) == 1 else last_name(node)

    def _version_of_distribution(self, name: cst.BaseExpression) -> str:
        if not _DISTRIBUTION.match(str(self.of(name))):
            raise _Unknown
        return self._release

    def _method(
        self, name: str, receiver: cst.BaseExpression, arguments: Sequence[cst.Arg]
    ) -> _Value:
        """What a method of a text returns."""
        text = self.of(receiver)
        if not isinstance(text, str):
            raise _Unknown
        return getattr(text, name)(*(self.of(argument.value) for argument in arguments))

    def _known(self, function: str) -> str:
        if function not in _FUNCTIONS:
            raise _Unknown
        return function

    def _returned(self, node: cst.Call) -> _Value:
        """What a function of the file without arguments returns, by its only statement."""
        made = self._program.values.definition_of(node.func)
        if node.args or not isinstance(made, cst.FunctionDef):
            raise _Unknown
        lines = made.body.body
        last = lines[-1] if lines else None
        found = last.body[0] if isinstance(last, cst.SimpleStatementLine) else last
        if not isinstance(found, cst.Return) or found.value is None:
            raise _Unknown
        if any(isinstance(line, cst.BaseCompoundStatement) for line in lines):
            raise _Unknown
        return self.of(found.value)

    def _found(self, function: str, node: cst.Call) -> _Value:
        """Whether a module has a legacy name, or None where it is missing."""
        if function == "find_spec":
            paths = [str(self.of(node.args[0].value))]
        else:
            name = self.of(node.args[1].value)
            modules = self._program.paths_of(node.args[0].value)
            paths = [f"{module}.{name}" for module in modules]
        there = {_has(path, self._release) for path in paths}
        if len(there) != 1 or None in there:
            raise _Unknown
        is_there = there == {True}
        if function == "hasattr":
            return is_there
        if is_there or (function == "getattr" and len(node.args) < 3):
            raise _Unknown
        return self.of(node.args[2].value) if function == "getattr" else None

    def _compared(self, node: cst.Comparison) -> bool:
        """The result of a comparison by Python's rules."""
        left = self.of(node.left)
        for part in node.comparisons:
            right = self.of(part.comparator)
            compare = _COMPARISONS.get(type(part.operator))
            if compare is None:
                raise _Unknown
            if not compare(left, right):
                return False
            left = right
        return True

    def directly(self, node: cst.BaseExpression) -> _Value:
        """The result of a comparison, or of a method of text, by Python's rules."""
        is_comparison = isinstance(node, cst.Comparison)
        evaluate = _Evaluation._compared if is_comparison else _Evaluation._call
        return self._attempt(evaluate, node)

    def _attempt(self, evaluate: _Evaluate, node: cst.CSTNode) -> _Value:
        """What a method returns for a node.

        Raises:
          _Unknown: it fails, as Python does for a number that is compared with a text.
        """
        try:
            return evaluate(self, node)
        except (TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise _Unknown from None

    def _as_meant(self, node: cst.BaseExpression) -> _Value:
        """The result; on the newest release, what it is meant to be."""
        if self._release == NEWEST and first_release_again(self._program, node):
            return _Evaluation(
                self._program, _LAST_OF_ONE_DIGIT, self._flags, self._depth
            ).directly(node)
        return self.directly(node)

    def _not(self, node: cst.UnaryOperation) -> _Value:
        value = self.of(node.expression)
        if isinstance(node.operator, cst.Not):
            return not value
        if isinstance(node.operator, cst.Minus):
            return -value
        raise _Unknown

    def _boolean(self, node: cst.BooleanOperation) -> _Value:
        """`and` and `or`, of which one side can be unknown."""
        decides = isinstance(node.operator, cst.Or)
        values: list[_Value] = []
        for side in (node.left, node.right):
            try:
                values.append(self.of(side))
            except _Unknown:
                continue
        for value in values:
            if bool(value) is decides:
                return value
        if len(values) < 2:
            raise _Unknown
        return values[1]

    def _chosen(self, node: cst.IfExp) -> _Value:
        return self.of(node.body if self.of(node.test) else node.orelse)

    def _walrus(self, node: cst.NamedExpr) -> _Value:
        return self.of(node.value)

    def _comprehension(self, node: Union[cst.GeneratorExp, cst.ListComp]) -> _Value:
        """`[int(n) for n in tf.__version__.split(".")]`."""
        loop = node.for_in
        element = node.elt
        is_plain = (
            isinstance(element, cst.Call)
            and len(element.args) == 1
            and isinstance(loop.target, cst.Name)
            and isinstance(element.args[0].value, cst.Name)
            and element.args[0].value.value == loop.target.value
            and not loop.ifs
            and loop.inner_for_in is None
        )
        if not is_plain or not isinstance(element, cst.Call):
            raise _Unknown
        convert = _FUNCTIONS[self._known(last_name(element.func))]
        return [convert(value) for value in self.of(loop.iter)]


_Evaluate = Callable[[_Evaluation, Any], _Value]
_EVALUATE: dict[type, _Evaluate] = {
    cst.Attribute: _Evaluation._name,
    cst.BooleanOperation: _Evaluation._boolean,
    cst.Call: _Evaluation._as_meant,
    cst.Comparison: _Evaluation._as_meant,
    cst.Float: _Evaluation._number,
    cst.GeneratorExp: _Evaluation._comprehension,
    cst.IfExp: _Evaluation._chosen,
    cst.Integer: _Evaluation._number,
    cst.List: _Evaluation._sequence,
    cst.ListComp: _Evaluation._comprehension,
    cst.Name: _Evaluation._name,
    cst.NamedExpr: _Evaluation._walrus,
    cst.SimpleString: _Evaluation._text,
    cst.Subscript: _Evaluation._subscript,
    cst.Tuple: _Evaluation._sequence,
    cst.UnaryOperation: _Evaluation._not,
}


def is_version(program: ResolvedProgram, node: cst.CSTNode) -> bool:
    """Whether a name or an attribute is the version of TensorFlow, as text."""
    paths = program.paths_of(node)
    if paths:
        return all(map(_is_version, paths))
    is_named = isinstance(node, cst.Attribute) and node.attr.value == "__version__"
    return is_named and "tensorflow" in program.code(node)


def _is_version(path: str) -> bool:
    root = root_of(path)
    return root is not None and bool(_VERSION.search(root.rest))


@functools.lru_cache(maxsize=1024)
def _has(path: str, release: str) -> Optional[bool]:
    """Whether a release has a legacy symbol or module, or one of the final API; None if unknown."""
    root = root_of(path)
    numbers = _numbers(release)
    if root is None or root.name not in ("tf", "v1", "v2"):
        return None
    if root.rest in _EVERYWHERE:
        return True
    if root.rest.partition(".")[0] == "contrib":
        return numbers < (2,)
    legacy, module = legacy_of(path), namespace_of(path)
    if legacy is not None and not legacy.is_private:
        return _is_released(legacy.family, legacy.is_current, numbers)
    if module is not None and module.name in _REMOVED:
        return numbers < (2, 9)
    return None


def _is_released(family: Family, is_current: bool, numbers: tuple[int, ...]) -> Optional[bool]:
    """Whether a release has the symbols of a family at their public paths; None if unknown."""
    if family is Family.FINAL:
        return numbers >= (2, 4)
    if family is Family.EXPERIMENTAL or (family is Family.V1 and not is_current):
        return numbers < (2, 9)
    return None
