"""Recognizes the code of a program that only some versions of TensorFlow run.

One conservative test tells such code: what decides whether it runs depends on the version or on
what a module of TensorFlow has (`conditions`), or a `try` catches that an import fails. What uses a
function, class or table with the code is tested, too. Nothing is analyzed beyond that, and no
branch is ever removed.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Optional

import libcst as cst

from .conditions import asks_version, tries_tensorflow
from .legacy_symbols import Family, is_of_shim, legacy_of, namespace_of
from .places import Branch, NamespaceUse, Place
from .program import Program
from .tree import body_of, children, last_name
from .values import reads_of_value

__all__ = ["depends_on_version", "is_final", "keep_guards"]

_MISSING = ("ImportError", "ModuleNotFound", "AttributeError", "Exception")
_EXITS = (cst.Return, cst.Continue, cst.Break)
_RUNNING = (cst.Call, cst.ClassDef, cst.FunctionDef, cst.If)
_DECIDING: dict[type, str] = {
    **dict.fromkeys((cst.If, cst.IfExp, cst.While), "test"),
    **dict.fromkeys((cst.FunctionDef, cst.ClassDef), "decorators"),
    **dict.fromkeys((cst.DictComp, cst.GeneratorExp, cst.ListComp, cst.SetComp), "for_in"),
    cst.BooleanOperation: "left",
    cst.Call: "args",
    cst.For: "iter",
    cst.Match: "subject",
    cst.MatchCase: "guard",
    cst.Subscript: "slice",
}
"""What decides, in each kind of node, whether the rest of it runs, or which part is used."""
_HOLDERS = (
    cst.Arg, cst.Dict, cst.DictElement, cst.Element, cst.IfExp, cst.Lambda, cst.List, cst.Set,
    cst.Tuple,
)  # fmt: skip
_HOLDING = ("OrderedDict", "dict", "partial", "staticmethod")


def keep_guards(program: Program) -> None:
    """Takes the places out of a program that are left because another branch is up to date.

    The places of that branch stay, too, unless Keras 3 needs the shim's class there.
    """
    program.guards = _guarded_branches(program)
    is_for_keras_3 = not program.options.to_shim and program.options.for_keras_3
    both = [branch for branch in program.guards if branch.has_final]
    kept = {place.node for branch in both for place in branch.places}
    others = {node for branch in both for node in branch.others}
    for place in program.places() if others else ():
        is_of_keras = isinstance(place, NamespaceUse) or place.legacy.family is Family.FINAL
        if _is_within(program, place.node, others) and not (is_for_keras_3 and is_of_keras):
            kept.add(place.node)
    if kept:
        program.guarded += [one for one in program.references if one.node in kept]
        program.references = [one for one in program.references if one.node not in kept]
        program.namespaces = [one for one in program.namespaces if one.node not in kept]
        program.by_node = {reference.node: reference for reference in program.references}


def depends_on_version(program: Program, node: cst.CSTNode) -> bool:
    """Whether the version of TensorFlow decides if a place runs."""
    return any(True for _ in _guards_around(program, node))


def _guarded_branches(program: Program) -> list[Branch]:
    """The innermost branch around each legacy place, or around what uses it."""
    found: dict[cst.CSTNode, Branch] = {}
    for place in sorted(filter(_moves, program.places()), key=lambda one: program.order[one.node]):
        around = _guards_around(program, place.node, place)
        for guard in itertools.chain(around, _guards_of_uses(program, place)):
            has_final = _have_final(program, guard.others, place)
            if guard.kind != "used" or not has_final:
                known = found.get(guard.node, guard._replace(has_final=has_final))
                found[guard.node] = known._replace(places=(*known.places, place))
                break
    return list(found.values())


def _guards_around(
    program: Program, node: cst.CSTNode, tried: Optional[Place] = None
) -> Iterator[Branch]:
    """The guards around a node, the innermost first; of a place that may be `tried`, those too."""
    below = node
    for above in program.ancestors(node):
        deciding = _deciding(program, above)
        if below not in deciding and any(asks_version(program, one) for one in deciding):
            others = [one for one in children(above) if one is not below and one not in deciding]
            if isinstance(above, cst.BooleanOperation):  # of `old and legacy or current`
                up = program.parents[above]
                others = [above.left, *([up.right] if isinstance(up, type(above)) else [])]
            yield Branch(below, others or _following(program, above))
        elif isinstance(above, cst.Try) and tried is not None:
            yield from _tried(program, tried, above, below)
        yield from _after_exit(program, below)
        below = above


def _deciding(program: Program, node: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """What decides whether the rest of a node runs, or which part of it is used."""
    if isinstance(node, cst.Call) and last_name(node.func) != "get":
        return ()  # not of a table
    found = getattr(node, _DECIDING.get(type(node), ""), None)
    if not isinstance(found, Sequence):
        return [found] if found is not None else ()
    return [one for one in found if "skip" not in program.code(one)]  # a test for some versions


def _guards_of_uses(program: Program, place: Place) -> Iterator[Branch]:
    """The guards around the uses of the functions, classes and tables that contain a place."""
    pending, seen = [place.node], {one.root or one.node for one in program.places()}
    for uses in itertools.chain.from_iterable(_uses(program, node) for node in pending):
        names = [one for one in uses if isinstance(one, cst.Name)]  # attributes: of any object
        for use in filter(lambda one: one not in seen, uses):
            seen.add(use)
            pending.append(use)
            for guard in program.cached(_guards_of_use, use):
                if not any(_is_within(program, one, guard.others) for one in names):
                    yield guard


def _guards_of_use(program: Program, use: cst.CSTNode) -> list[Branch]:
    return [guard._replace(kind="used") for guard in _guards_around(program, use)]


def _uses(program: Program, node: cst.CSTNode) -> list[list[cst.CSTNode]]:
    """The reads of the functions and classes around a node, and of the tables that hold it."""
    above = list(program.ancestors(node))
    holders = itertools.takewhile(_is_holder, above)
    definitions = (one for one in above if isinstance(one, (cst.FunctionDef, cst.ClassDef)))
    values = (node, *holders, *definitions)
    return [reads_of_value(program, value) for value in values]


def _is_holder(node: cst.CSTNode) -> bool:
    is_call = isinstance(node, cst.Call) and last_name(node.func) in _HOLDING
    return is_call or isinstance(node, _HOLDERS)


def _tried(
    program: Program, place: Place, statement: cst.Try, below: cst.CSTNode
) -> Iterator[Branch]:
    """The guard that a `try` around an import or the read of a module is."""
    handlers = [
        one
        for one in statement.handlers
        if one.type is None or any(name in program.code(one.type) for name in _MISSING)
    ]
    if below is statement.body and handlers:
        if _have_final(program, handlers, place) or _is_import(program, place, statement.body):
            yield Branch(below, handlers, "imported")
    elif handlers and below is not statement.body and tries_tensorflow(program, statement):
        yield Branch(below, [statement.body] if below in handlers else handlers)


def _is_import(program: Program, place: Place, body: cst.CSTNode) -> bool:
    """Whether the place imports or reads a symbol or module directly in the body of a `try`."""
    between = itertools.takewhile(lambda one: one is not body, program.ancestors(place.node))
    return not any(isinstance(one, _RUNNING) for one in between)


def _after_exit(program: Program, statement: cst.CSTNode) -> Iterator[Branch]:
    """The guards of what follows `if version: return`."""
    if body_of(statement, program.parents) is not None:
        for one in program.cached(_tested_exits, program.parents[statement]):
            if program.order[one] < program.order[statement]:
                yield Branch(one, [one.body])


def _tested_exits(program: Program, block: cst.CSTNode) -> list[cst.If]:
    ifs = [one for one in children(block) if isinstance(one, cst.If) and one.orelse is None]
    return [one for one in ifs if _exits(one.body) and asks_version(program, one.test)]


def _following(program: Program, statement: cst.CSTNode) -> list[cst.CSTNode]:
    """What follows `if version: return legacy`: its other branch."""
    if not isinstance(statement, cst.If) or not _exits(statement.body):
        return []
    body = body_of(statement, program.parents) or ()
    return list(itertools.dropwhile(lambda one: one is not statement, body))[1:]


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


def _have_final(program: Program, parts: Collection[cst.CSTNode], place: Place) -> bool:
    """Whether a branch uses the current API, or the shim, which runs on every TensorFlow."""
    return not program.cached(_around_finals, _is_on_shim(place)).isdisjoint(parts)


def _around_finals(program: Program, is_on_shim: bool) -> set[cst.CSTNode]:
    """What uses the current API, or the shim if a place is not on it, and what is around these."""
    finals = [
        one.node
        for one in program.places()
        if (not is_on_shim if _is_on_shim(one) else is_final(one))
    ]
    finals += [migrated for migrated, _ in program.migrated]
    finals += [one.node for one in program.imports() if _is_final_import(one.path)]
    finals += [use for node in tuple(finals) for uses in _uses(program, node) for use in uses]
    return {above for one in finals for above in (one, *program.ancestors(one))}


def _is_on_shim(place: Place) -> bool:
    return is_of_shim(place.path) if isinstance(place, NamespaceUse) else place.legacy.is_on_shim


def is_final(place: Place) -> bool:
    """Whether a place names what legacy symbols are migrated to, or a module of that."""
    if isinstance(place, NamespaceUse):
        module = namespace_of(place.path)
        return module is not None and module.is_final
    return place.legacy.is_final_path and place.legacy.family is not Family.CROSS_SHARD


def _is_final_import(path: str) -> bool:
    if not is_of_shim(path) or path.count(".") == 1:
        return False
    module = namespace_of(path)
    return legacy_of(path) is None and (module is None or module.is_final)
