"""Tells which TensorFlow makes a condition true, and which makes it false.

A condition counts if it mentions the version of TensorFlow or what a module of TensorFlow has,
directly or through a flag or function of the same file. Nothing is analyzed beyond that.
"""

from __future__ import annotations

import re
from typing import Optional

import libcst as cst

from .legacy_symbols import is_of_shim, legacy_of, namespace_of, root_of
from .places import Taken
from .program import Program
from .scopes import Binding
from .tree import root_name, string_of, walk
from .values import bindings_of, class_around, sources_of

__all__ = ["NO_SIDES", "Sides", "may_ask_version", "sides_of"]

_VERSIONS = frozenset(
    ["__version__", "VERSION", "version", "version.VERSION", "version.GIT_VERSION"]
)
_ASKING = ("hasattr", "getattr", "dir")
"""The functions that tell what a module has."""
_FLAG = re.compile(
    r"(?:^|_)(?:tf|tensorflow)_?v?[12](?:_|\b|\d)|(?:tf|tensorflow).*version|version.*(?:tf|tensorflow)"
    r"|(?:prev|old|new|legacy|below|before)_tf",
    re.IGNORECASE,
)
"""The name of a flag that another file has made of the version."""
_DEPTH = 4

Sides = tuple[Optional[Taken], Optional[Taken]]
"""Which TensorFlow takes the branch for true, and which that for false; None for any."""
NO_SIDES: Sides = (None, None)


def may_ask_version(program: Program) -> bool:
    """Whether any condition of a program could depend on the version; a quick look."""
    if any(program.attributes(name) for name in ("__version__", "VERSION", "version")):
        return True
    if any(name.value in _ASKING or _FLAG.search(name.value) for name in program.scopes.loads):
        return True
    return any(map(_FLAG.search, program.scopes.attributes))


def sides_of(program: Program, test: cst.BaseExpression, depth: int = _DEPTH) -> Sides:
    """Which TensorFlow makes a condition true, and which makes it false; None for any."""
    if depth == 0:
        return NO_SIDES
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        if_true, if_false = sides_of(program, test.expression, depth)
        return if_false, if_true
    if isinstance(test, cst.BooleanOperation):
        return _combined(test, *(sides_of(program, one, depth) for one in (test.left, test.right)))
    if isinstance(test, cst.Comparison):
        return _compared(program, test)
    if isinstance(test, cst.Call):
        return _called(program, test, depth)
    if isinstance(test, (cst.Name, cst.Attribute)):
        name = test.attr.value if isinstance(test, cst.Attribute) else test.value
        sources = [one for one in sources_of(program, test) if isinstance(one, cst.BaseExpression)]
        if _FLAG.search(name) and all(source is test for source in sources):
            return Taken.SOME, Taken.SOME
        if isinstance(test, cst.Attribute) and class_around(program, test) is None:
            return NO_SIDES
        for source in sources:
            if source is not test:
                found = sides_of(program, source, depth - 1)
                if found != NO_SIDES:
                    return found
        return _flag_of_try(program, test)
    return NO_SIDES


def _combined(test: cst.BooleanOperation, left: Sides, right: Sides) -> Sides:
    """The sides of `a and b` and `a or b`: what one condition decides, the other may not."""
    is_and = isinstance(test.operator, cst.And)
    certain = 0 if is_and else 1
    sides = [side for side in (left, right) if side != NO_SIDES]
    if not sides:
        return NO_SIDES
    if len(sides) == 2 and left == right:
        return left
    known = Taken.OLD if any(one[certain] is Taken.OLD for one in sides) else sides[0][certain]
    return (known, Taken.SOME) if is_and else (Taken.SOME, known)


def _flag_of_try(program: Program, test: cst.BaseExpression) -> Sides:
    """The sides of a flag that a `try` around an import of TensorFlow sets."""
    for binding in bindings_of(program, test) if isinstance(test, cst.Name) else ():
        if binding.kind == "import":
            continue
        for above in program.ancestors(binding.node):
            if isinstance(above, cst.Try) and any(map(_imports_tensorflow, walk(above.body))):
                return Taken.SOME, Taken.SOME
    return NO_SIDES


def _imports_tensorflow(node: cst.CSTNode) -> bool:
    """Whether a statement imports TensorFlow, or the shim, which a first run writes."""
    if isinstance(node, cst.ImportFrom):
        modules = [node.module]
    else:
        modules = [one.name for one in node.names] if isinstance(node, cst.Import) else []
    roots = (root_name(one) for one in modules if one is not None)
    return any(
        one is not None and (one.value == "tensorflow" or is_of_shim(one.value)) for one in roots
    )


def _compared(program: Program, test: cst.Comparison) -> Sides:
    if any(_asks_module(program, one) for one in walk(test)):
        return Taken.SOME, Taken.SOME
    target = test.comparisons[0]
    left, operator, right = test.left, target.operator, target.comparator
    if is_version(program, right, _DEPTH) and not is_version(program, left, _DEPTH):
        swapped = {cst.LessThan: cst.GreaterThan, cst.GreaterThan: cst.LessThan}
        swapped.update(
            {cst.LessThanEqual: cst.GreaterThanEqual, cst.GreaterThanEqual: cst.LessThanEqual}
        )
        kind = swapped.get(type(operator), type(operator))
        left, right = right, left
    else:
        kind = type(operator)
    if not is_version(program, left, _DEPTH):
        return NO_SIDES
    if len(test.comparisons) > 1:
        return Taken.SOME, Taken.SOME
    if kind in (cst.LessThan, cst.LessThanEqual):
        return Taken.OLD, Taken.NEW
    if kind in (cst.GreaterThan, cst.GreaterThanEqual):
        return Taken.NEW, Taken.OLD
    sides = _of_text(program.code(right))
    return (sides[1], sides[0]) if kind in (cst.NotEqual, cst.NotIn) else sides


def _of_text(text: str) -> Sides:
    """The sides of an equality with a version; TensorFlow 2.4 has the first final API."""
    numbers = [int(one) for one in re.findall(r"\d+", text)[:2]]
    if not numbers:
        return Taken.SOME, Taken.SOME
    return (
        (Taken.OLD, Taken.NEW)
        if numbers < [2] or [2] < numbers < [2, 4]
        else (Taken.NEW, Taken.OLD)
    )


def _called(program: Program, call: cst.Call, depth: int) -> Sides:
    function = call.func
    if _asks_module(program, call):
        return _tests_attribute(program, call)
    if isinstance(function, cst.Attribute) and is_version(program, function.value, _DEPTH):
        if function.attr.value == "startswith" and call.args:
            return _of_text(program.code(call.args[0].value))
        return Taken.SOME, Taken.SOME
    own = bindings_of(program, function) if isinstance(function, cst.Name) else []
    if len(own) == 1 and isinstance(own[0].node, cst.FunctionDef):
        returned = [one.value for one in walk(own[0].node) if isinstance(one, cst.Return)]
        if len(returned) == 1 and returned[0] is not None:
            return sides_of(program, returned[0], depth - 1)
        if any(is_version(program, one, 1) for one in walk(own[0].node) if _is_chain(one)):
            return Taken.SOME, Taken.SOME
    if any(is_version(program, argument.value, _DEPTH) for argument in call.args):
        return Taken.SOME, Taken.SOME
    return NO_SIDES


def _asks_module(program: Program, node: cst.CSTNode) -> bool:
    """Whether an expression is `hasattr(module, ...)` or the like, of a module of TensorFlow."""
    if not (isinstance(node, cst.Call) and node.args and isinstance(node.func, cst.Name)):
        return False
    paths = program.paths_of(node.args[0].value) if node.func.value in _ASKING else ()
    return bool(paths) and all(root_of(path) is not None for path in paths)


def _tests_attribute(program: Program, call: cst.Call) -> Sides:
    """The sides of `hasattr(module, "name")` for a module of TensorFlow."""
    name = string_of(call.args[1].value) if len(call.args) > 1 else None
    if name is None:
        return Taken.SOME, Taken.SOME
    path = f"{min(program.paths_of(call.args[0].value))}.{name}"
    root = root_of(path)
    legacy, module = legacy_of(path), namespace_of(path)
    if root is not None and root.rest == "contrib":
        return Taken.OLD, Taken.NEW
    if legacy is not None or module is not None:
        is_final = legacy.is_final_path if legacy is not None else bool(module and module.is_final)
        return (Taken.NEW, Taken.OLD) if is_final else (Taken.OLD, Taken.NEW)
    return Taken.SOME, Taken.SOME


def _is_chain(node: cst.CSTNode) -> bool:
    return isinstance(node, (cst.Name, cst.Attribute))


def _value_of(program: Program, binding: Binding) -> Optional[cst.BaseExpression]:
    """What a name is bound to; for `major, minor = ...`, what both are made of."""
    if binding.value is not None:
        return binding.value
    for above in program.ancestors(binding.node):
        if isinstance(above, cst.Assign):
            return above.value
        if not isinstance(above, (cst.AssignTarget, cst.Tuple, cst.List, cst.Element)):
            return None
    return None


def is_version(program: Program, node: cst.CSTNode, depth: int) -> bool:
    """Whether an expression is made of the version of TensorFlow."""
    if depth == 0:
        return False
    for one in walk(node):
        if not isinstance(one, (cst.Name, cst.Attribute)):
            continue
        for path in program.paths_of(one):
            root = root_of(path)
            if root is not None and root.rest in _VERSIONS:
                return True
        if isinstance(one, cst.Name) and one in program.scopes.loads:
            values = [_value_of(program, binding) for binding in bindings_of(program, one)]
            if any(value is not None and is_version(program, value, depth - 1) for value in values):
                return True
    return False
