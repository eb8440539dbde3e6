"""Replaces expressions and removes statements without losing the comments in and above them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Optional

import libcst as cst

from ..resolve.program import Program
from ..resolve.scopes import Binding
from ..resolve.tree import Edit, Edited

__all__ = [
    "closed_up",
    "comments_in",
    "emptied",
    "keeping_comments",
    "removal_of",
    "without_statement",
]

Edits = tuple[tuple[cst.CSTNode, Edit], ...]


def comments_in(node: cst.CSTNode) -> list[str]:
    """The comments inside `node`, in order."""
    if "#" not in cst.Module([]).code_for_node(node):  # a walk takes ten times as long
        return []
    found: list[str] = []

    class Collector(cst.CSTVisitor):
        def visit_Comment(self, node: cst.Comment) -> None:
            found.append(node.value)

    node.visit(Collector())
    return found


def keeping_comments(old: cst.CSTNode, new: cst.BaseExpression) -> Optional[cst.BaseExpression]:
    """`new` with the missing comments of `old` inserted before its last dot.

    None if `new` has no place for them.
    """
    there = comments_in(new)
    lost = []
    for comment in comments_in(old):
        if comment in there:
            there.remove(comment)
        else:
            lost.append(comment)
    if not lost:
        return new
    if not isinstance(new, cst.Attribute):
        return None
    first, *rest = lost
    space = cst.ParenthesizedWhitespace(
        first_line=cst.TrailingWhitespace(cst.SimpleWhitespace("  "), cst.Comment(first)),
        empty_lines=[cst.EmptyLine(comment=cst.Comment(comment)) for comment in rest],
        indent=True,
        last_line=cst.SimpleWhitespace("    "),
    )
    return new.with_changes(dot=new.dot.with_changes(whitespace_before=space))


def emptied(line: cst.CSTNode) -> Edited:
    """`line` without its statements; `closed_up` then takes it out of its block."""
    return line.with_changes(body=[])


def closed_up(block: cst.CSTNode) -> Edited:
    """`block` without its empty lines, whose comments move to the line below."""
    assert isinstance(block, (cst.Module, cst.IndentedBlock))
    body: list[cst.CSTNode] = []
    above: list[cst.EmptyLine] = []
    for statement in block.body:
        if isinstance(statement, cst.SimpleStatementLine) and not statement.body:
            above += _comments_above(statement)
            continue
        leading = [*above, *getattr(statement, "leading_lines", ())]
        is_first = not body and statement is not block.body[0]
        if is_first and isinstance(block, cst.Module) and not block.header:
            leading = list(itertools.dropwhile(_is_empty, leading))
        body.append(statement.with_changes(leading_lines=leading))
        above = []
    if not body and isinstance(block, cst.IndentedBlock):
        last = block.body[-1]
        body, above = [last.with_changes(body=[cst.Pass()], leading_lines=above)], []
    return block.with_changes(body=body, footer=[*above, *block.footer])


def _comments_above(statement: cst.SimpleStatementLine) -> Sequence[cst.EmptyLine]:
    """The lines above a statement, if one of them has a comment."""
    lines = statement.leading_lines
    return lines if any(line.comment for line in lines) else ()


def _is_empty(line: cst.EmptyLine) -> bool:
    return line.comment is None


def without_statement(program: Program, binding: Binding) -> Optional[Edits]:
    """The edits that remove the assignment of a name that is read once; None if it must remain."""
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
