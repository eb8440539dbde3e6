"""Removes statements that an edit leaves unused, without losing a comment."""

from __future__ import annotations

from typing import Optional

import libcst as cst

from ..resolve.program import Program
from ..resolve.scopes import Binding
from ..resolve.tree import REMOVED, Edit, body_of
from .comments import comments_in

__all__ = ["removal_of", "without_statement"]


def without_statement(
    program: Program, binding: Binding
) -> Optional[tuple[tuple[cst.CSTNode, Edit], ...]]:
    """The edits that remove the assignment of a name that is read once; None if it must remain."""
    if program.is_read_elsewhere(binding.scope, binding.name):
        return None
    if len(program.loads_of(binding.scope, binding.name)) > 1:
        return None
    return removal_of(program, binding)


def removal_of(
    program: Program, binding: Binding
) -> Optional[tuple[tuple[cst.CSTNode, Edit], ...]]:
    """The edits that remove a plain assignment; None for others, or if a comment would be lost."""
    line = next(
        (
            one
            for one in program.ancestors(binding.node)
            if isinstance(one, cst.SimpleStatementLine)
        ),
        None,
    )
    if line is None or len(line.body) != 1:
        return None
    statement = line.body[0]
    plain = (isinstance(statement, cst.Assign) and len(statement.targets) == 1) or isinstance(
        statement, cst.AnnAssign
    )
    value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
    if not plain or value is not binding.value or comments_in(statement):
        return None
    if line.trailing_whitespace.comment is not None:
        return None
    body = body_of(line, program.parents)
    if body is None:
        return None
    if len(body) == 1:
        return ((line, lambda old: old.with_changes(body=[cst.Pass()])),)
    if any(empty.comment for empty in line.leading_lines):
        return None
    return ((line, lambda old: REMOVED),)
