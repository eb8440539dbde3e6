"""Decides which version guards are replaced by their final arm (`--unsafe`), and how.

A guard is replaced only if nothing but its legacy arm goes: no other arm, no assignment in its
condition, no `else` or `finally` of a `try`, and no comment outside the arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ..model import Options, Target
from .cut import Cut, Removal
from .neighbors import NOBODY, Neighbors
from .program import Program
from .tree import REMOVED, Edit, walk
from .version_guards import Guarded, guarded_places, keep_guards

__all__ = ["resolved_program"]

_CODE = "LS908"


class _Plan(NamedTuple):
    """The part of a guard that stays (None: nothing), and the edit."""

    kept: Optional[cst.CSTNode]
    edit: Edit


def resolved_program(
    modules: Sequence[Optional[cst.Module]], options: Options, neighbors: Neighbors = NOBODY
) -> Program:
    """The program of some modules, with its version guards kept from edits or taken out."""
    program = Program(modules, options, neighbors)
    takes_out = options.unsafe and options.target is Target.FINAL and options.selects(_CODE)
    while takes_out:
        cut = _cut(program)
        if cut is program.cut:
            break
        program = Program(modules, options, neighbors, cut)
    keep_guards(program)
    return program


def _cut(program: Program) -> Cut:
    """What is cut already, and the guards that can be taken out now."""
    nodes = set(program.cut.nodes)
    values = dict(program.cut.values)
    removals = list(program.cut.removals)
    for guard, plan, places in _plans(program):
        kept = set(walk(plan.kept)) if plan.kept is not None else set()
        nodes.update(node for node in walk(guard) if node not in kept)
        if isinstance(guard, cst.BaseExpression) and isinstance(plan.kept, cst.BaseExpression):
            values[guard] = plan.kept
        shown = tuple((place.node, place.symbol) for place in places)
        removals.append(Removal(guard, plan.edit, shown))
    if len(removals) == len(program.cut.removals):
        return program.cut
    return Cut(frozenset(nodes), values, tuple(removals))


def _plans(program: Program) -> list[tuple[cst.CSTNode, _Plan, list[Guarded]]]:
    by_guard: dict[cst.CSTNode, list[Guarded]] = {}
    for place in program.cached(guarded_places):
        if place.guard is not None:
            by_guard.setdefault(place.guard, []).append(place)
    done = {removal.guard for removal in program.cut.removals}
    found: list[tuple[cst.CSTNode, _Plan, list[Guarded]]] = []
    emptied: dict[cst.CSTNode, int] = {}
    for guard, places in by_guard.items():
        is_inside = any(above in by_guard for above in program.ancestors(guard))
        if is_inside or guard in done or "lossscale:" in program.code(guard).lower():
            continue
        plan = _plan(program, guard, places)
        if plan is None:
            continue
        if plan.kept is None:
            block = program.parents[guard]
            emptied[block] = emptied.get(block, 0) + 1
            if isinstance(block, cst.IndentedBlock) and emptied[block] == len(block.body):
                continue  # a block needs a statement
        found.append((guard, plan, places))
    return found


def _plan(program: Program, guard: cst.CSTNode, places: Sequence[Guarded]) -> Optional[_Plan]:
    """How to replace `guard` by the arm without `places`; None if that takes a person."""
    legacy = {node for place in places for node in [place.node, *program.ancestors(place.node)]}
    if isinstance(guard, (cst.IfExp, cst.Call)):
        if "#" in program.code(guard):
            return None
        return _plan_value(guard, legacy)
    if not isinstance(program.parents.get(guard), (cst.Module, cst.IndentedBlock)):
        return None
    if isinstance(guard, cst.If):
        return _plan_if(program, guard, legacy)
    return _plan_try(guard, legacy) if isinstance(guard, cst.Try) else None


def _plan_value(guard: cst.CSTNode, legacy: set[cst.CSTNode]) -> Optional[_Plan]:
    if isinstance(guard, cst.Call):  # getattr(module, "experimental", final)
        if guard.args[1] not in legacy or guard.args[2] in legacy:
            return None
        return _Plan(guard.args[2].value, _third_argument)
    assert isinstance(guard, cst.IfExp)
    if (guard.body in legacy) is (guard.orelse in legacy) or _binds(guard.test):
        return None
    keeps_body = guard.orelse in legacy
    kept = guard.body if keeps_body else guard.orelse
    return None if isinstance(kept, (cst.IfExp, cst.Lambda)) else _Plan(kept, _side(keeps_body))


def _third_argument(old: cst.CSTNode) -> object:
    assert isinstance(old, cst.Call)
    return old.args[2].value


def _side(keeps_body: bool) -> Edit:
    def edit(old: cst.CSTNode) -> object:
        assert isinstance(old, cst.IfExp)
        now = old.body if keeps_body else old.orelse
        return now.with_changes(lpar=[*old.lpar, *now.lpar], rpar=[*now.rpar, *old.rpar])

    return edit


def _plan_if(program: Program, guard: cst.If, legacy: set[cst.CSTNode]) -> Optional[_Plan]:
    other = guard.orelse
    if isinstance(other, cst.If) or _binds(guard.test):
        return None
    if other is not None and _has_comment(other.leading_lines):
        return None
    if guard.body in legacy:
        if other is None:
            return None if _has_comment(guard.leading_lines) else _Plan(None, _gone)
        body, keeps_body = other.body, False
    else:
        body, keeps_body = guard.body, True
    if body in legacy or not _can_splice(body):
        return None

    def edit(old: cst.CSTNode) -> object:
        assert isinstance(old, cst.If)
        kept = old.body if keeps_body or old.orelse is None else old.orelse.body
        assert isinstance(kept, cst.IndentedBlock)
        return _spliced(kept, old.leading_lines)

    return _Plan(body, edit)


def _plan_try(guard: cst.Try, legacy: set[cst.CSTNode]) -> Optional[_Plan]:
    if len(guard.handlers) != 1 or guard.orelse is not None or guard.finalbody is not None:
        return None
    handler = guard.handlers[0]
    if handler.name is not None or (guard.body in legacy) is (handler in legacy):
        return None
    keeps_body = handler in legacy
    body = guard.body if keeps_body else handler.body
    if _has_comment(handler.leading_lines) or not _can_splice(body):
        return None

    def edit(old: cst.CSTNode) -> object:
        assert isinstance(old, cst.Try)
        kept = old.body if keeps_body else old.handlers[0].body
        assert isinstance(kept, cst.IndentedBlock)
        return _spliced(kept, old.leading_lines)

    return _Plan(body, edit)


def _gone(old: cst.CSTNode) -> object:
    del old
    return REMOVED


def _can_splice(body: cst.BaseSuite) -> bool:
    """Whether the statements of a body can stand without it, and no comment is lost."""
    if not isinstance(body, cst.IndentedBlock):
        return False
    has_comment = body.header.comment is not None or _has_comment(body.footer)
    ends = any(isinstance(node, cst.Raise) for node in walk(body))
    return not has_comment and not ends


def _spliced(block: cst.IndentedBlock, leading: Sequence[cst.EmptyLine]) -> object:
    """The statements of a block, which take the place of the compound statement around it."""
    first, *rest = block.body
    lines = [*leading, *first.leading_lines]  # type: ignore[attr-defined]
    return [first.with_changes(leading_lines=lines), *rest]


def _binds(test: cst.CSTNode) -> bool:
    return any(isinstance(node, cst.NamedExpr) for node in walk(test))


def _has_comment(lines: Sequence[cst.EmptyLine]) -> bool:
    return any(line.comment is not None for line in lines)
