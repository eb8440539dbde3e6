"""Recognizes the branches of a program that depend on the version of TensorFlow.

One conservative test tells such a branch: its condition mentions the version of TensorFlow or what
a module of TensorFlow has, directly or through a flag or function of the same file, or a `try`
catches that an import fails. Nothing is analyzed beyond that, and no branch is ever removed.

If the other branch already uses the current API, the program is right on both sides, and both stay
as they are. Elsewhere the legacy name is renamed as anywhere, which changes nothing on any version;
but after the upgrade the branch may be dead, so it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ..model import Target
from .legacy_symbols import Family, is_of_shim, legacy_of, namespace_of, root_of
from .places import Branch, NamespaceUse, Place, Reference, Taken
from .program import Program
from .scopes import Binding
from .tree import body_of, root_name, string_of, walk
from .values import bindings_of, class_around, sources_of

__all__ = ["depends_on_version", "keep_guards"]

_VERSIONS = frozenset(
    ["__version__", "VERSION", "version", "version.VERSION", "version.GIT_VERSION"]
)
_MISSING = ("ImportError", "ModuleNotFound", "AttributeError", "Exception")
_ASKING = ("hasattr", "getattr", "dir")
"""The functions that tell what a module has."""
_EXITS = (cst.Return, cst.Raise, cst.Continue, cst.Break)
_FLAG = re.compile(
    r"(?:^|_)(?:tf|tensorflow)_?v?[12](?:_|\b|\d)|(?:tf|tensorflow).*version|version.*(?:tf|tensorflow)"
    r"|(?:prev|old|new|legacy|below|before)_tf",
    re.IGNORECASE,
)
"""The name of a flag that another file has made of the version."""
_DEPTH = 4


def keep_guards(program: Program) -> None:
    """Takes the places out of a program that are left because another branch is up to date.

    The places of that branch stay, too, unless Keras 3 needs the shim's class there.
    """
    program.guards = _guarded_branches(program)
    is_for_keras_3 = program.options.target is Target.FINAL and program.options.for_keras_3
    kept: set[cst.CSTNode] = set()
    for branch in program.guards:
        if branch.has_final:
            kept.update(place.node for place in branch.places)
            inside = {node for part in branch.others for node in walk(part)}
            others = [place for place in program.places() if place.node in inside]
            kept.update(one.node for one in others if not (is_for_keras_3 and _is_of_keras(one)))
    if kept:
        program.guarded += [one for one in program.references if one.node in kept]
        program.references = [one for one in program.references if one.node not in kept]
        program.namespaces = [one for one in program.namespaces if one.node not in kept]
        program.by_node = {reference.node: reference for reference in program.references}


def _is_of_keras(place: Place) -> bool:
    """Whether a place names the final optimizer, of which Keras 3 has another one."""
    return isinstance(place, NamespaceUse) or place.legacy.family is Family.FINAL


def _guarded_branches(program: Program) -> list[Branch]:
    if not _may_have_guards(program):
        return []
    found: dict[tuple[int, int], list[Place]] = {}
    guards: dict[tuple[int, int], tuple[_Guard, bool]] = {}
    legacy: list[Place] = [one for one in program.references if _is_legacy(one)]
    legacy += [one for one in program.namespaces if _is_legacy_module(program, one.path)]
    for place in legacy:
        for guard in _guards_around(program, place):
            has_final = any(_has_final(program, part, place) for part in guard.others)
            key = id(guard.statement), id(guard.branch)
            if key not in guards or has_final:
                guards.setdefault(key, (guard, has_final))
            found.setdefault(key, []).append(place)
            break
    return [
        Branch(tuple(places), guards[key][0].taken, guards[key][1], guards[key][0].others)
        for key, places in found.items()
    ]


def depends_on_version(program: Program, node: cst.CSTNode) -> bool:
    """Whether the version of TensorFlow decides if a place runs."""
    below = node
    for above in program.ancestors(node):
        tests = [above.test] if isinstance(above, (cst.If, cst.IfExp)) else []
        tests = [] if below in tests else tests
        for earlier in body_of(below, program.parents) or ():
            if earlier is below:
                break
            if isinstance(earlier, cst.If) and earlier.orelse is None and _exits(earlier.body):
                tests.append(earlier.test)
        if any(_taken(program, test, _DEPTH) != _NO_GUARD for test in tests):
            return True
        below = above
    return False


class _Guard(NamedTuple):
    """One branch of a statement, with the other ones."""

    statement: cst.CSTNode
    branch: cst.CSTNode
    taken: Taken
    others: tuple[cst.CSTNode, ...]


def _may_have_guards(program: Program) -> bool:
    """Whether there is anything that could decide by a version; a quick look."""
    if any(program.attributes(name) for name in ("__version__", "VERSION", "version")):
        return True
    if any(name.value in _ASKING or _FLAG.search(name.value) for name in program.scopes.loads):
        return True
    if any(map(_FLAG.search, program.scopes.attributes)):
        return True
    places = program.places()
    return any(isinstance(up, cst.Try) for one in places for up in program.ancestors(one.node))


def _is_legacy(reference: Reference) -> bool:
    legacy = reference.legacy
    return bool(legacy.rule) and (legacy.is_on_shim or not legacy.is_final_path)


def _is_legacy_module(program: Program, path: str) -> bool:
    module = program.namespace_of(path)
    return module is not None and not module.is_final and "mixed_precision" in module.name


def _guards_around(program: Program, place: Place) -> Iterator[_Guard]:
    """The guards around a place, the innermost first."""
    below: cst.CSTNode = place.node
    for above in program.ancestors(place.node):
        if isinstance(above, (cst.If, cst.IfExp)) and below is not above.test:
            if_true, if_false = _taken(program, above.test, _DEPTH)
            taken = if_true if below is above.body else if_false
            others: list[cst.CSTNode] = [
                part
                for part in (above.body, above.orelse)
                if part is not None and part is not below
            ]
            if taken in (Taken.OLD, Taken.SOME):
                if not others:
                    others = list(_following(program, above))
                yield _Guard(above, below, taken, tuple(others))
        elif isinstance(above, cst.Try):
            yield from _tried(program, place, above, below)
        yield from _after_exit(program, below)
        below = above


def _tried(
    program: Program, place: Place, statement: cst.Try, below: cst.CSTNode
) -> Iterator[_Guard]:
    """The guard that a `try` around an import or the read of a module is."""
    handlers = [one for one in statement.handlers if _catches_absence(program, one)]
    if not handlers:
        return
    is_final = any(_has_final(program, handler, place) for handler in handlers)
    if below is statement.body and (is_final or _is_import(program, place, statement.body)):
        yield _Guard(statement, below, Taken.IMPORTING, tuple(handlers))
    elif below in handlers and _has_final(program, statement.body, place):
        yield _Guard(statement, below, Taken.OLD, (statement.body,))


def _catches_absence(program: Program, handler: cst.ExceptHandler) -> bool:
    return handler.type is None or any(one in program.code(handler.type) for one in _MISSING)


def _is_import(program: Program, place: Place, body: cst.CSTNode) -> bool:
    """Whether the place imports or reads a symbol or module directly in the body of a `try`."""
    node: cst.CSTNode = place.node
    for above in program.ancestors(place.node):
        if above is body:
            return True
        if isinstance(above, (cst.Call, cst.FunctionDef, cst.ClassDef, cst.If)):
            return False
        node = above
    return node is body


def _after_exit(program: Program, statement: cst.CSTNode) -> Iterator[_Guard]:
    """The guards of what follows `if version: return`."""
    body = body_of(statement, program.parents)
    if body is None:
        return
    for earlier in body:
        if earlier is statement:
            return
        if isinstance(earlier, cst.If) and earlier.orelse is None and _exits(earlier.body):
            taken = _taken(program, earlier.test, _DEPTH)[1]
            if taken in (Taken.OLD, Taken.SOME):
                yield _Guard(earlier, earlier, taken, (earlier.body,))


def _following(program: Program, statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What follows `if version: return legacy`: its other branch."""
    body = body_of(statement, program.parents)
    if body is not None and isinstance(statement, cst.If) and _exits(statement.body):
        index = next(i for i, one in enumerate(body) if one is statement)
        yield from body[index + 1 :]


def _exits(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, _EXITS)


def _has_final(program: Program, node: cst.CSTNode, place: Place) -> bool:
    """Whether a branch uses the current API, or the shim, which runs on every TensorFlow.

    The shim's legacy symbols are no other API than a place that uses them, too.
    """
    inside = set(walk(node))
    is_on_shim = _is_of_shim(place)
    finals = [one.node for one in program.references if _is_final(one, is_on_shim)]
    finals += [one.node for one in program.namespaces if _is_final_module(one.path, is_on_shim)]
    finals += [migrated for migrated, _ in program.migrated]
    finals += [one.node for one in program.imports() if _is_final_import(one.path)]
    return any(one in inside for one in finals)


def _is_final_import(path: str) -> bool:
    if not is_of_shim(path) or path.count(".") == 1:
        return False
    module = namespace_of(path, True)
    return legacy_of(path, True) is None and (module is None or module.is_final)


def _is_of_shim(place: Place) -> bool:
    return is_of_shim(place.path) if isinstance(place, NamespaceUse) else place.legacy.is_on_shim


def _is_final(reference: Reference, is_on_shim: bool) -> bool:
    legacy = reference.legacy
    if legacy.is_on_shim:
        return not is_on_shim
    return legacy.is_final_path and legacy.family is not Family.CROSS_SHARD


def _is_final_module(path: str, is_on_shim: bool) -> bool:
    if is_of_shim(path):
        return not is_on_shim
    module = namespace_of(path)
    return module is not None and module.is_final


_Sides = tuple[Optional[Taken], Optional[Taken]]
_NO_GUARD: _Sides = (None, None)


def _taken(program: Program, test: cst.BaseExpression, depth: int) -> _Sides:
    """Which TensorFlow makes a condition true, and which makes it false; None for any."""
    if depth == 0:
        return _NO_GUARD
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        if_true, if_false = _taken(program, test.expression, depth)
        return if_false, if_true
    if isinstance(test, cst.BooleanOperation):
        return _combined(test, *(_taken(program, one, depth) for one in (test.left, test.right)))
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
            return _NO_GUARD
        for source in sources:
            if source is not test:
                found = _taken(program, source, depth - 1)
                if found != _NO_GUARD:
                    return found
        return _flag_of_try(program, test)
    return _NO_GUARD


def _combined(test: cst.BooleanOperation, left: _Sides, right: _Sides) -> _Sides:
    """The sides of `a and b` and `a or b`: what one condition decides, the other may not."""
    is_and = isinstance(test.operator, cst.And)
    certain = 0 if is_and else 1
    sides = [side for side in (left, right) if side != _NO_GUARD]
    if not sides:
        return _NO_GUARD
    if len(sides) == 2 and left == right:
        return left
    known = Taken.OLD if any(one[certain] is Taken.OLD for one in sides) else sides[0][certain]
    return (known, Taken.SOME) if is_and else (Taken.SOME, known)


def _flag_of_try(program: Program, test: cst.BaseExpression) -> _Sides:
    """The sides of a flag that a `try` around an import of TensorFlow sets."""
    for binding in bindings_of(program, test) if isinstance(test, cst.Name) else ():
        if binding.kind == "import":
            continue
        for above in program.ancestors(binding.node):
            if isinstance(above, cst.Try) and any(map(_imports_tensorflow, walk(above.body))):
                return Taken.SOME, Taken.SOME
    return _NO_GUARD


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


def _compared(program: Program, test: cst.Comparison) -> _Sides:
    if any(_asks_module(program, one) for one in walk(test)):
        return Taken.SOME, Taken.SOME
    target = test.comparisons[0]
    left, operator, right = test.left, target.operator, target.comparator
    if _is_version(program, right, _DEPTH) and not _is_version(program, left, _DEPTH):
        swapped = {cst.LessThan: cst.GreaterThan, cst.GreaterThan: cst.LessThan}
        swapped.update(
            {cst.LessThanEqual: cst.GreaterThanEqual, cst.GreaterThanEqual: cst.LessThanEqual}
        )
        kind = swapped.get(type(operator), type(operator))
        left, right = right, left
    else:
        kind = type(operator)
    if not _is_version(program, left, _DEPTH):
        return _NO_GUARD
    if len(test.comparisons) > 1:
        return Taken.SOME, Taken.SOME
    if kind in (cst.LessThan, cst.LessThanEqual):
        return Taken.OLD, Taken.NEW
    if kind in (cst.GreaterThan, cst.GreaterThanEqual):
        return Taken.NEW, Taken.OLD
    sides = _of_text(program.code(right))
    return (sides[1], sides[0]) if kind in (cst.NotEqual, cst.NotIn) else sides


def _of_text(text: str) -> _Sides:
    """The sides of an equality with a version; TensorFlow 2.4 has the first final API."""
    numbers = [int(one) for one in re.findall(r"\d+", text)[:2]]
    if not numbers:
        return Taken.SOME, Taken.SOME
    return (
        (Taken.OLD, Taken.NEW)
        if numbers < [2] or [2] < numbers < [2, 4]
        else (Taken.NEW, Taken.OLD)
    )


def _called(program: Program, call: cst.Call, depth: int) -> _Sides:
    function = call.func
    if _asks_module(program, call):
        return _tests_attribute(program, call)
    if isinstance(function, cst.Attribute) and _is_version(program, function.value, _DEPTH):
        if function.attr.value == "startswith" and call.args:
            return _of_text(program.code(call.args[0].value))
        return Taken.SOME, Taken.SOME
    own = bindings_of(program, function) if isinstance(function, cst.Name) else []
    if len(own) == 1 and isinstance(own[0].node, cst.FunctionDef):
        returned = [one.value for one in walk(own[0].node) if isinstance(one, cst.Return)]
        if len(returned) == 1 and returned[0] is not None:
            return _taken(program, returned[0], depth - 1)
        if any(_is_version(program, one, 1) for one in walk(own[0].node) if _is_chain(one)):
            return Taken.SOME, Taken.SOME
    if any(_is_version(program, argument.value, _DEPTH) for argument in call.args):
        return Taken.SOME, Taken.SOME
    return _NO_GUARD


def _asks_module(program: Program, node: cst.CSTNode) -> bool:
    """Whether an expression is `hasattr(module, ...)` or the like, of a module of TensorFlow."""
    if not (isinstance(node, cst.Call) and node.args and isinstance(node.func, cst.Name)):
        return False
    paths = program.paths_of(node.args[0].value) if node.func.value in _ASKING else ()
    return bool(paths) and all(root_of(path) is not None for path in paths)


def _tests_attribute(program: Program, call: cst.Call) -> _Sides:
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


def _is_version(program: Program, node: cst.CSTNode, depth: int) -> bool:
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
            if any(
                value is not None and _is_version(program, value, depth - 1) for value in values
            ):
                return True
    return False
