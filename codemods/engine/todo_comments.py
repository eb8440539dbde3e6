"""`--mark`: adds a `# TODO(CODE): ...` comment above each manual finding, once."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..model import Safety
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import Proposal

__all__ = ["mark_edits"]


def mark_edits(program: Program, manual: Iterable[Proposal]) -> dict[cst.CSTNode, list[Edit]]:
    """Returns the edits that add the comments, except where a statement already has them."""
    wanted: dict[cst.CSTNode, dict[str, str]] = {}
    for one in manual:
        if one.outcome is Safety.MANUAL:
            statement = _statement(program, one.node)
            wanted.setdefault(statement, {}).setdefault(one.code, one.message)
    edits: dict[cst.CSTNode, list[Edit]] = {}
    for statement, messages in wanted.items():
        present = _comments_above(program, statement)
        missing = [
            f"# TODO({code}): {message}"
            for code, message in messages.items()
            if f"# TODO({code}):" not in present
        ]
        if missing:
            edits[statement] = [_marking(missing)]
    return edits


def _marking(comments: list[str]) -> Edit:
    def edit(old: cst.CSTNode) -> object:
        lines = [cst.EmptyLine(comment=cst.Comment(comment)) for comment in comments]
        return old.with_changes(leading_lines=[*old.leading_lines, *lines])  # type: ignore[attr-defined]

    return edit


def _statement(program: Program, node: cst.CSTNode) -> cst.CSTNode:
    """The innermost statement around `node` that can have comment lines above it."""
    for above in program.ancestors(node):
        if isinstance(above, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            parent = program.parents.get(above)
            is_elif = isinstance(parent, cst.If) and parent.orelse is above
            if not is_elif:
                return above
    raise AssertionError("a node outside a statement")


def _comments_above(program: Program, statement: cst.CSTNode) -> str:
    found = [line.comment.value for line in statement.leading_lines if line.comment]  # type: ignore[attr-defined]
    parent = program.parents.get(statement)
    if isinstance(parent, cst.Module) and parent.body[0] is statement:
        found += [line.comment.value for line in parent.header if line.comment]
    return "\n".join(found)
