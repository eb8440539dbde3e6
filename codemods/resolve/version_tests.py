"""Decides what a condition says about the version of TensorFlow: whether it tests it, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .legacy_symbols import root_of
from .program import Program
from .tree import children, string_of, walk

__all__ = ["features_tested", "is_version_test", "needs_old_version"]

_VERSION = re.compile(r"version|find_spec|\b_?(?:is|has|use)?_?tf_?v?\d|_tf_", re.I)
_EXAMINES = ("dir", "getattr", "hasattr", "vars")
_VERSION_CLASS = re.compile(r"(?:^|\.)(?:parse|(?:Loose|Strict|parse_)?version)$", re.I)
_OTHERS = frozenset(
    [
        "cv2",
        "jax",
        "matplotlib",
        "numpy",
        "os",
        "pandas",
        "platform",
        "scipy",
        "six",
        "sklearn",
        "sys",
        "torch",
    ]
)
"""Modules whose versions and flags are not TensorFlow's."""
_VERSION_OPERAND = re.compile(r"version|major|minor|\btf_?v\b", re.I)
_MINOR = re.compile(r"minor|\[1\]\)?(?: |$)", re.I)
_OLD_FLAG = re.compile(r"tf_?v?(?:1|2_?[0-3])(?!\d)(?:_?x)?$", re.I)
_NEW_FLAG = re.compile(r"ge_|gte|_min|later|plus|above|since|least|newer|not_|non_|no_", re.I)
_FIRST_FINAL = (2, 4)
"""The first TensorFlow with the final API."""

_FLIPPED: dict[type, type] = {
    cst.LessThan: cst.GreaterThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThan: cst.LessThan,
    cst.GreaterThanEqual: cst.LessThanEqual,
}
_NEGATED: dict[type, type] = {
    cst.LessThan: cst.GreaterThanEqual,
    cst.LessThanEqual: cst.GreaterThan,
    cst.GreaterThan: cst.LessThanEqual,
    cst.GreaterThanEqual: cst.LessThan,
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
}


def is_version_test(program: Program, test: cst.BaseExpression) -> bool:
    """Whether a condition can depend on the version of TensorFlow.

    That is: it names a version or the presence of an attribute, a flag that is imported from
    another module, or a variable, attribute or function of this one with such a value. Versions of
    Python, of the platform and of other libraries do not count.
    """
    known = program.cached(_known)
    if test not in known:
        known[test] = _tests_version(program, test, set())
    return known[test]


def _known(_: Program) -> dict[cst.CSTNode, bool]:
    """The conditions of a program that were looked at."""
    return {}


def _tests_version(
    program: Program, test: cst.CSTNode, seen: set[cst.CSTNode], only_named: bool = False
) -> bool:
    if test in seen:
        return False
    seen.add(test)
    stack = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.Name, cst.Attribute)):
            if _is_of_another_library(program, node):
                continue
            if _names_version(program, node, seen, only_named):
                return True
        elif isinstance(node, cst.Call):
            if _is_version_class(program, node.func):
                stack += node.args
                continue
            examines = node.func.value if isinstance(node.func, cst.Name) else ""
            if examines in _EXAMINES and node.args:
                if not _is_of_another_library(program, node.args[0].value):
                    return True
                continue
            if _calls_version_function(program, node, seen):
                return True
        elif isinstance(node, cst.SimpleString) and node.raw_value.startswith("tensorflow"):
            return True  # `importlib.metadata.version("tensorflow")`
        stack += children(node)
    return False


def _is_of_another_library(program: Program, node: cst.CSTNode) -> bool:
    """Whether a chain begins with Python's own module or a library such as NumPy."""
    while isinstance(node, (cst.Attribute, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    scope = program.scopes.loads.get(node) if isinstance(node, cst.Name) else None
    if scope is None or not isinstance(node, cst.Name):
        return False
    bindings = scope.bindings_of(node.value)
    return bool(bindings) and all(
        one.kind == "import" and one.path.partition(".")[0] in _OTHERS for one in bindings
    )


def _is_version_class(program: Program, function: cst.CSTNode) -> bool:
    """Whether it is a class or function that only makes a version of a string, and its like."""
    return isinstance(function, (cst.Name, cst.Attribute)) and bool(
        _VERSION_CLASS.search(program.code(function))
    )


def _names_version(
    program: Program, node: cst.BaseExpression, seen: set[cst.CSTNode], only_named: bool
) -> bool:
    """Whether a name or attribute means a version, or a value that depends on one."""
    if isinstance(node, cst.Attribute):
        return bool(_VERSION.search(node.attr.value)) or any(
            _tests_version(program, value, seen, only_named=True)
            for value in _values_of_attribute(program, node.attr.value)
        )
    assert isinstance(node, cst.Name)
    if _VERSION.search(node.value):
        return True
    scope = program.scopes.loads.get(node)
    for binding in scope.bindings_of(node.value) if scope is not None else ():
        if binding.kind == "import":
            if not only_named and root_of(binding.path) is None:
                return True
            if _VERSION.search(binding.path.rpartition(".")[2]):
                return True
        elif binding.value is not None:
            if _in_import_guard(program, binding.node):
                return True
            is_flag = isinstance(binding.value, (cst.Name, cst.Attribute, cst.UnaryOperation))
            if _tests_version(program, binding.value, seen, only_named or not is_flag):
                return True
        elif binding.kind == "other":
            value = _unpacked(program, binding.node)
            if value is not None and _tests_version(program, value, seen, only_named=True):
                return True
    return False


def _unpacked(program: Program, node: cst.CSTNode) -> Optional[cst.BaseExpression]:
    """The value that `major, minor = value` takes apart; None for other targets."""
    for above in program.ancestors(node):
        if isinstance(above, cst.Assign):
            return above.value
        if not isinstance(above, (cst.Tuple, cst.List, cst.Element, cst.AssignTarget)):
            return None
    return None


def _values_of_attribute(program: Program, name: str) -> Iterator[cst.BaseExpression]:
    """What classes and methods of the program assign to an attribute of this name."""
    for scope in program.all_scopes():
        if scope.kind == "class":
            for binding in scope.bindings.get(name, ()):
                if binding.value is not None:
                    yield binding.value
    for attribute in program.attributes(name):
        target = program.parents.get(attribute)
        statement = program.parents.get(target) if isinstance(target, cst.AssignTarget) else None
        if isinstance(statement, cst.Assign):
            yield statement.value


def _calls_version_function(program: Program, call: cst.Call, seen: set[cst.CSTNode]) -> bool:
    """Whether it calls a function of the program that decides or returns by a version."""
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(name, cst.Name):
        return False
    for function in program.cached(_functions).get(name.value, ()):
        if function in seen:
            continue
        seen.add(function)
        parts: list[Optional[cst.BaseExpression]] = []
        for node in walk(function.body):
            if isinstance(node, cst.Return):
                parts.append(node.value)
            elif isinstance(node, (cst.If, cst.IfExp)):
                parts.append(node.test)
        if any(part is not None and _tests_version(program, part, seen, True) for part in parts):
            return True
    return False


def _functions(program: Program) -> dict[str, list[cst.FunctionDef]]:
    found: dict[str, list[cst.FunctionDef]] = {}
    for scope in program.all_scopes():
        if isinstance(scope.node, cst.FunctionDef):
            found.setdefault(scope.node.name.value, []).append(scope.node)
    return found


def _in_import_guard(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is in `try: import ...` with a handler, as in `HAS_FINAL = False`."""
    return any(
        isinstance(above, cst.Try)
        and any(isinstance(one, (cst.Import, cst.ImportFrom)) for one in walk(above.body))
        for above in program.ancestors(node)
    )


def features_tested(test: cst.BaseExpression) -> Iterator[str]:
    """The attributes whose presence a condition needs: `hasattr(x, "experimental") and ...`."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from features_tested(test.left)
        yield from features_tested(test.right)
    elif isinstance(test, cst.Call) and isinstance(test.func, cst.Name) and len(test.args) > 1:
        name = string_of(test.args[1].value)
        if test.func.value in ("hasattr", "getattr") and name is not None:
            yield name


def needs_old_version(program: Program, test: cst.BaseExpression, negated: bool = False) -> bool:
    """Whether a condition certainly holds only on a TensorFlow below 2.4.

    Args:
      program: the program that it is in.
      test: the condition.
      negated: whether to ask about its opposite.
    """
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return needs_old_version(program, test.expression, not negated)
    if isinstance(test, cst.BooleanOperation):
        sides = [needs_old_version(program, side, negated) for side in (test.left, test.right)]
        one_is_enough = isinstance(test.operator, cst.And) is not negated
        return any(sides) if one_is_enough else all(sides)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return _compares_below(program, test, negated)
    if isinstance(test, cst.Call) and not negated:
        return _starts_with_old(program, test)
    if isinstance(test, (cst.Name, cst.Attribute)):
        return _is_old_flag(program, test, negated)
    return False


def _compares_below(program: Program, test: cst.Comparison, negated: bool) -> bool:
    target = test.comparisons[0]
    operator: type = type(target.operator)
    if any(_is_about_another(program, node) for node in (test.left, target.comparator)):
        return False
    version, limit = test.left, _limit(_value_code(program, target.comparator))
    if limit is None:
        version, limit = target.comparator, _limit(_value_code(program, test.left))
        operator = _FLIPPED.get(operator, operator)
    words = f"{_value_code(program, version)} {program.code(version)}"
    if limit is None or not _VERSION_OPERAND.search(words):
        return False
    if negated:
        operator = _NEGATED.get(operator, operator)
    if _MINOR.search(words):
        limit = (2, *limit)
    if operator is cst.LessThan:
        return limit[:2] < _FIRST_FINAL or (not any(limit[2:]) and limit[:2] == _FIRST_FINAL)
    if operator in (cst.LessThanEqual, cst.Equal):
        return (*limit[:-1], limit[-1] + 1) <= _FIRST_FINAL
    return False


def _is_about_another(program: Program, operand: cst.BaseExpression) -> bool:
    """Whether a side of a comparison contains the version of Python or of another library."""
    return any(
        _is_of_another_library(program, node)
        for node in walk(operand)
        if isinstance(node, (cst.Name, cst.Attribute))
    )


def _value_code(program: Program, node: cst.BaseExpression) -> str:
    """The source of an operand; of a name, that of the only value it is assigned."""
    if isinstance(node, cst.Name):
        scope = program.scopes.loads.get(node)
        bindings = scope.bindings_of(node.value) if scope is not None else []
        if len(bindings) == 1 and bindings[0].value is not None:
            return program.code(bindings[0].value)
    return program.code(node)


def _limit(code: str) -> Optional[tuple[int, ...]]:
    """The version that an operand such as `"2.4"`, `(2, 4)` or `Version("2.4.0")` writes."""
    if re.search(r"__version__|\.VERSION", code):
        return None
    literal = re.search(r"""^(?:[\w.]*\()?[\s("'\[]*(\d+(?:\s*[.,]\s*\d+)*)[\w.\s"')\],]*$""", code)
    if literal is None:
        return None
    return tuple(int(number) for number in re.findall(r"\d+", literal[1]))


def _starts_with_old(program: Program, call: cst.Call) -> bool:
    """Whether it is `tf.__version__.startswith("2.3")`."""
    function = call.func
    if not isinstance(function, cst.Attribute) or function.attr.value != "startswith":
        return False
    if not _VERSION_OPERAND.search(program.code(function.value)) or len(call.args) != 1:
        return False
    limit = _limit(program.code(call.args[0].value))
    return limit is not None and (*limit[:-1], limit[-1] + 1) <= _FIRST_FINAL


def _is_old_flag(program: Program, test: cst.BaseExpression, negated: bool) -> bool:
    if isinstance(test, cst.Name):
        scope = program.scopes.loads.get(test)
        bindings = scope.bindings_of(test.value) if scope is not None else []
        if len(bindings) == 1 and bindings[0].value is not None:
            value = bindings[0].value
            return not isinstance(value, cst.Name) and needs_old_version(program, value, negated)
    name = program.code(test).rpartition(".")[2]
    return not negated and bool(_OLD_FLAG.search(name)) and not _NEW_FLAG.search(name)
