"""Removes statements that an edit leaves unused, without losing the comments above them."""

from __future__ import annotations

from typing import Optional

import libcst as cst

from ..resolve.program import Program
from ..resolve.scopes import Binding
from ..resolve.tree import Edit
from .comments import comments_in

__all__ = ["closed_up", "emptied", "removal_of", "without_statement"]

Edits = tuple[tuple[cst.CSTNode, Edit], ...]


def emptied(line: cst.CSTNode) -> object:
    """`line` without its statements; `closed_up` then takes it out of its block."""
    return line.with_changes(body=[])


def closed_up(block: cst.CSTNode) -> object:
    """`block` without its empty lines, whose comments move to the line below."""
    assert isinstance(block, (cst.Module, cst.IndentedBlock))
    body: list[cst.CSTNode] = []
    above: list[cst.EmptyLine] = []
    for statement in block.body:
        if isinstance(statement, cst.SimpleStatementLine) and not statement.body:
            is_commented = any(empty.comment for empty in statement.leading_lines)
            above += statement.leading_lines if is_commented else ()
            continue
        leading = [*above, *getattr(statement, "leading_lines", ())]
        if not body and statement is not block.body[0] and isinstance(block, cst.Module):
            while leading and not leading[0].comment and not block.header:
                del leading[0]  # the first line of a file
        body.append(statement.with_changes(leading_lines=leading))
        above = []
    if not body and isinstance(block, cst.IndentedBlock):
        last = block.body[-1]
        body, above = [last.with_changes(body=[cst.Pass()], leading_lines=above)], []
    return block.with_changes(body=body, footer=[*above, *block.footer])


def without_statement(program: Program, binding: Binding) -> Optional[Edits]:
    """The edits that remove the assignment of a name that is read once; None if it must remain."""
    if program.is_read_elsewhere(binding.scope, binding.name):
        return None
    if len(program.loads_of(binding.scope, binding.name)) > 1:
        return None
    return removal_of(program, binding)


def removal_of(program: Program, binding: Binding) -> Optional[Edits]:
    """The edits that remove a plain assignment; None for others, or if a comment is about it."""
    target = program.parents[binding.node]
    statement = program.parents[target] if isinstance(target, cst.AssignTarget) else target
    line = program.parents[statement]
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    is_plain = isinstance(statement, cst.AnnAssign) or (
        isinstance(statement, cst.Assign) and len(statement.targets) == 1
    )
    if not is_plain or comments_in(line):
        return None
    return (line, emptied), (program.parents[line], closed_up)
