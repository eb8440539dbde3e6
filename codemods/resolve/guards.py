"""Recognizes the branches of a program that depend on the version of TensorFlow.

One conservative test tells such a branch: its condition mentions the version of TensorFlow or what
a module of TensorFlow has, directly or through a flag or function of the same file (`conditions`),
or a `try` catches that an import fails. Nothing is analyzed beyond that, and no branch is ever
removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, Optional

import libcst as cst

from .conditions import asks_version
from .legacy_symbols import Family, is_of_shim, legacy_of, namespace_of
from .places import Branch, NamespaceUse, Place
from .program import Program
from .tree import body_of

__all__ = ["depends_on_version", "keep_guards"]

_MISSING = ("ImportError", "ModuleNotFound", "AttributeError", "Exception")
_EXITS = (cst.Return, cst.Raise, cst.Continue, cst.Break)


class _Guard(NamedTuple):
    """One branch, with the other ones of its statement."""

    branch: cst.CSTNode
    others: tuple[cst.CSTNode, ...]
    imports: bool = False


def keep_guards(program: Program) -> None:
    """Takes the places out of a program that are left because another branch is up to date.

    The places of that branch stay, too, unless Keras 3 needs the shim's class there.
    """
    program.guards = _guarded_branches(program)
    is_for_keras_3 = not program.options.to_shim and program.options.for_keras_3
    kept: set[cst.CSTNode] = set()
    for branch in program.guards:
        if branch.has_final:
            kept.update(place.node for place in branch.places)
            kept.update(
                place.node
                for place in program.places()
                if _is_within(program, place.node, branch.others)
                and not (is_for_keras_3 and _is_of_keras(place))
            )
    if kept:
        program.guarded += [one for one in program.references if one.node in kept]
        program.references = [one for one in program.references if one.node not in kept]
        program.namespaces = [one for one in program.namespaces if one.node not in kept]
        program.by_node = {reference.node: reference for reference in program.references}


def depends_on_version(program: Program, node: cst.CSTNode) -> bool:
    """Whether the version of TensorFlow decides if a place runs."""
    return any(True for _ in _guards_around(program, node))


def _guarded_branches(program: Program) -> list[Branch]:
    """The innermost branch around each legacy place."""
    found: dict[cst.CSTNode, Branch] = {}
    places: dict[cst.CSTNode, list[Place]] = {}
    for place in program.places():
        guard = next(_guards_around(program, place.node, place), None) if _moves(place) else None
        if guard is not None and guard.branch not in found:
            has_final = _have_final(program, guard.others, place)
            found[guard.branch] = Branch((), has_final, guard.imports, guard.others)
        if guard is not None:
            places.setdefault(guard.branch, []).append(place)
    order = {node: number for number, node in enumerate(program.parents if found else ())}
    for group in places.values():
        group.sort(key=lambda place: order[place.node])
    return [branch._replace(places=tuple(places[node])) for node, branch in found.items()]


def _guards_around(
    program: Program, node: cst.CSTNode, tried: Optional[Place] = None
) -> Iterator[_Guard]:
    """The guards around a node, the innermost first; of a place that may be `tried`, those too."""
    below = node
    for above in program.ancestors(node):
        if isinstance(above, (cst.If, cst.IfExp, cst.While)) and below is not above.test:
            others = [one for one in (above.body, above.orelse) if one and one is not below]
            if asks_version(program, above.test):
                yield _Guard(below, tuple(others or _following(program, above)))
        elif isinstance(above, cst.BooleanOperation) and isinstance(above.operator, cst.And):
            up = program.parents.get(above)
            rest = (up.right,) if isinstance(up, cst.BooleanOperation) else ()
            if below is above.right and asks_version(program, above.left):
                yield _Guard(below, rest)  # of `old and legacy or current`
        elif isinstance(above, cst.Try) and tried is not None:
            yield from _tried(program, tried, above, below)
        yield from _after_exit(program, below)
        below = above


def _tried(
    program: Program, place: Place, statement: cst.Try, below: cst.CSTNode
) -> Iterator[_Guard]:
    """The guard that a `try` around an import or the read of a module is."""
    handlers = [
        one
        for one in statement.handlers
        if one.type is None or any(name in program.code(one.type) for name in _MISSING)
    ]
    if below is statement.body and handlers:
        if _have_final(program, handlers, place) or _is_import(program, place, statement.body):
            yield _Guard(below, tuple(handlers), imports=True)
    elif below in handlers and _have_final(program, [statement.body], place):
        yield _Guard(below, (statement.body,))


def _is_import(program: Program, place: Place, body: cst.CSTNode) -> bool:
    """Whether the place imports or reads a symbol or module directly in the body of a `try`."""
    for above in program.ancestors(place.node):
        if above is body or isinstance(above, (cst.Call, cst.FunctionDef, cst.ClassDef, cst.If)):
            return above is body
    return False


def _after_exit(program: Program, statement: cst.CSTNode) -> Iterator[_Guard]:
    """The guards of what follows `if version: return`."""
    for earlier in body_of(statement, program.parents) or ():
        if earlier is statement:
            return
        is_exit = isinstance(earlier, cst.If) and earlier.orelse is None and _exits(earlier.body)
        if isinstance(earlier, cst.If) and is_exit and asks_version(program, earlier.test):
            yield _Guard(earlier, (earlier.body,))


def _following(program: Program, statement: cst.CSTNode) -> list[cst.CSTNode]:
    """What follows `if version: return legacy`: its other branch."""
    body = body_of(statement, program.parents)
    if body is None or not isinstance(statement, cst.If) or not _exits(statement.body):
        return []
    index = next(i for i, one in enumerate(body) if one is statement)
    return list(body[index + 1 :])


def _exits(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, _EXITS)


def _is_within(program: Program, node: cst.CSTNode, parts: Collection[cst.CSTNode]) -> bool:
    return any(above in parts for above in (node, *program.ancestors(node)))


# What is legacy, and what is current.


def _moves(place: Place) -> bool:
    """Whether a place names a legacy symbol, a module of such, or the twin of one of these."""
    if isinstance(place, NamespaceUse):
        module = namespace_of(place.path)
        return module is not None and not module.is_current and "mixed_precision" in module.name
    return bool(place.legacy.rule) and not place.legacy.is_current


def _is_of_keras(place: Place) -> bool:
    """Whether a place names the final optimizer, of which Keras 3 has another one."""
    return isinstance(place, NamespaceUse) or place.legacy.family is Family.FINAL


def _have_final(program: Program, parts: Collection[cst.CSTNode], place: Place) -> bool:
    """Whether a branch uses the current API, or the shim, which runs on every TensorFlow.

    The shim's legacy symbols are no other API than a place that uses them, too.
    """
    is_on_shim = _is_on_shim(place)
    finals = [one.node for one in program.places() if _is_final(one, is_on_shim)]
    finals += [migrated for migrated, _ in program.migrated]
    finals += [one.node for one in program.imports() if _is_final_import(one.path)]
    return any(_is_within(program, one, parts) for one in finals)


def _is_on_shim(place: Place) -> bool:
    return is_of_shim(place.path) if isinstance(place, NamespaceUse) else place.legacy.is_on_shim


def _is_final(place: Place, is_beside_shim: bool) -> bool:
    if _is_on_shim(place):
        return not is_beside_shim
    if isinstance(place, NamespaceUse):
        module = namespace_of(place.path)
        return module is not None and module.is_final
    return place.legacy.is_final_path and place.legacy.family is not Family.CROSS_SHARD


def _is_final_import(path: str) -> bool:
    if not is_of_shim(path) or path.count(".") == 1:
        return False
    module = namespace_of(path)
    return legacy_of(path) is None and (module is None or module.is_final)
