"""Decides what a condition says about the version of TensorFlow: whether it tests it, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from .legacy_symbols import root_of
from .program import Program
from .tree import string_of, walk

__all__ = ["features_tested", "is_version_test", "needs_old_version"]

_VERSION = re.compile(r"version|hasattr|getattr|find_spec|\b_?(?:is|has|use)?_?tf_?v?\d|_tf_", re.I)
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

    That is: it names a version or the presence of an attribute, or a flag that is imported from
    another module or is assigned such a condition in this one.
    """
    return _tests_version(program, test, set())


def _tests_version(
    program: Program, test: cst.BaseExpression, seen: set[cst.CSTNode], only_named: bool = False
) -> bool:
    if test in seen:
        return False
    seen.add(test)
    if _VERSION.search(program.code(test)):
        return True
    for node in walk(test):
        scope = program.scopes.loads.get(node) if isinstance(node, cst.Name) else None
        if scope is None or not isinstance(node, cst.Name):
            continue
        for binding in scope.bindings_of(node.value):
            if binding.kind == "import":
                if not only_named and root_of(binding.path) is None:
                    return True
            elif binding.value is not None:
                if _in_import_guard(program, binding.node):
                    return True
                if _tests_version(program, binding.value, seen, only_named=True):
                    return True
    return False


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
