"""Finds comments inside expressions, and keeps them when the expression is replaced."""

from __future__ import annotations

from typing import Optional

import libcst as cst

__all__ = ["comments_in", "keeping_comments"]


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
