"""Recognizes the branches of a program that depend on the version of TensorFlow.

One conservative test tells such a branch: its condition mentions the version of TensorFlow or what
a module of TensorFlow has, directly or through a flag or function of the same file, or a `try`
catches that an import fails. Nothing is analyzed beyond that, and no branch is ever removed.

If the other branch already uses the current API, the program is right on both sides, and both stay
as they are. Elsewhere the legacy name is renamed as anywhere, which changes nothing on any version;
but after the upgrade the branch may be dead, so it is reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import libcst as cst

from ..model import Target
from .conditions import asks_version, may_ask_version
from .legacy_symbols import Family, is_of_shim, legacy_of, namespace_of
from .places import Branch, NamespaceUse, Place, Reference
from .program import Program
from .tree import body_of, walk

__all__ = ["depends_on_version", "keep_guards"]

_MISSING = ("ImportError", "ModuleNotFound", "AttributeError", "Exception")
_EXITS = (cst.Return, cst.Raise, cst.Continue, cst.Break)


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
        for guard in _guards_around(program, place.node, place):
            has_final = any(_has_final(program, part, place) for part in guard.others)
            key = id(guard.statement), id(guard.branch)
            if key not in guards or has_final:
                guards.setdefault(key, (guard, has_final))
            found.setdefault(key, []).append(place)
            break
    return [
        Branch(tuple(places), guards[key][1], guards[key][0].imports, guards[key][0].others)
        for key, places in found.items()
    ]


def depends_on_version(program: Program, node: cst.CSTNode) -> bool:
    """Whether the version of TensorFlow decides if a place runs."""
    return any(True for _ in _guards_around(program, node))


class _Guard(NamedTuple):
    """One branch of a statement, with the other ones."""

    statement: cst.CSTNode
    branch: cst.CSTNode
    others: tuple[cst.CSTNode, ...]
    imports: bool = False


def _may_have_guards(program: Program) -> bool:
    """Whether there is anything that could decide by a version; a quick look."""
    if may_ask_version(program):
        return True
    places = program.places()
    return any(isinstance(up, cst.Try) for one in places for up in program.ancestors(one.node))


def _is_legacy(reference: Reference) -> bool:
    legacy = reference.legacy
    return bool(legacy.rule) and (legacy.is_on_shim or not legacy.is_final_path)


def _is_legacy_module(program: Program, path: str) -> bool:
    module = program.namespace_of(path)
    return module is not None and not module.is_final and "mixed_precision" in module.name


def _guards_around(
    program: Program, node: cst.CSTNode, tried: Optional[Place] = None
) -> Iterator[_Guard]:
    """The guards around a node, the innermost first; of a place that may be `tried`, those too."""
    below = node
    for above in program.ancestors(node):
        if isinstance(above, (cst.If, cst.IfExp, cst.While)) and below is not above.test:
            others: list[cst.CSTNode] = [
                part
                for part in (above.body, above.orelse)
                if part is not None and part is not below
            ]
            if asks_version(program, above.test):
                yield _Guard(above, below, tuple(others or _following(program, above)))
        elif isinstance(above, cst.Try) and tried is not None:
            yield from _tried(program, tried, above, below)
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
        yield _Guard(statement, below, tuple(handlers), imports=True)
    elif below in handlers and _has_final(program, statement.body, place):
        yield _Guard(statement, below, (statement.body,))


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
        is_exit = isinstance(earlier, cst.If) and earlier.orelse is None and _exits(earlier.body)
        if isinstance(earlier, cst.If) and is_exit and asks_version(program, earlier.test):
            yield _Guard(earlier, earlier, (earlier.body,))


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
    module = namespace_of(path)
    return legacy_of(path) is None and (module is None or module.is_final)


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
