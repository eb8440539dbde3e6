"""Rewrites lines of import statements after some of their names have changed."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..resolve.tree import Edit, Edited, Parents, ancestors
from .comments import closed_up, comments_in, emptied

__all__ = ["NO_IMPORT", "Change", "edits_of_lines"]

_Small = cst.BaseSmallStatement
_LINES = (cst.SimpleStatementLine, cst.SimpleStatementSuite)


class Change(NamedTuple):
    """The new path and local name of one import alias; without a path, it is removed."""

    path: Optional[str] = None
    local: str = ""


NO_IMPORT = Change()
"""Removes an import alias."""


def edits_of_lines(
    parents: Parents,
    changes: Mapping[cst.ImportAlias, Change],
    added: Mapping[cst.CSTNode, Sequence[str]],
) -> dict[cst.CSTNode, list[Edit]]:
    """The edits that change import aliases, and put new imports behind statements.

    What a lone statement becomes stands on lines of its own, below its comments that would be lost
    otherwise.
    """
    found: dict[cst.CSTNode, list[Edit]] = {}
    lines = {
        next(above for above in ancestors(node, parents) if isinstance(above, _LINES)): None
        for node in [*changes, *added]
    }
    for line in lines:
        parts = [
            [*_changed(statement, changes), *_parsed(added.get(statement, ()))]
            for statement in line.body
        ]
        is_line = isinstance(line, cst.SimpleStatementLine)
        if is_line and not any(parts):
            found[line] = [emptied]
            found[parents[line]] = [closed_up]
        else:
            found[line] = [_line_edit(line.body, parts, is_line and len(parts) == 1)]
    return found


def _line_edit(old: Sequence[_Small], parts: list[list[_Small]], is_alone: bool) -> Edit:
    """The edit of a line, or of the statements after a colon, to what its statements become.

    The comments of a statement that goes are kept above the line.

    Args:
      old: the statements before the edit.
      parts: what each of them becomes; nothing if it goes.
      is_alone: whether the line has one statement, which may become several lines.
    """

    def edit(line: cst.CSTNode) -> Edited:
        assert isinstance(line, _LINES)
        body = []
        for was, now, becomes in zip(old, line.body, parts):
            body += [now if statement is was else statement for statement in becomes]
        if not is_alone:
            body = body or [cst.Pass()]
            body[-1] = body[-1].with_changes(semicolon=line.body[-1].semicolon)
            return line.with_changes(body=body)
        assert isinstance(line, cst.SimpleStatementLine)
        return _lines_of(line, old[0], body)

    return edit


def _lines_of(
    line: cst.SimpleStatementLine, old: _Small, body: Sequence[_Small]
) -> list[cst.SimpleStatementLine]:
    """The lines that a line of one statement becomes; comments of `old` that are lost go above."""
    left = collections.Counter(comments_in(old))
    left.subtract(comment for statement in body for comment in comments_in(statement))
    lost = [cst.EmptyLine(comment=cst.Comment(comment)) for comment in left.elements()]
    first = body[0].with_changes(semicolon=line.body[0].semicolon)
    head = line.with_changes(leading_lines=[*line.leading_lines, *lost], body=[first])
    return [head, *[cst.SimpleStatementLine([statement]) for statement in body[1:]]]


def _changed(statement: _Small, changes: Mapping[cst.ImportAlias, Change]) -> list[_Small]:
    """What a statement becomes: nothing, itself, or imports."""
    if not isinstance(statement, (cst.Import, cst.ImportFrom)):
        return [statement]
    if isinstance(statement.names, cst.ImportStar):
        return [statement]
    if not any(alias in changes for alias in statement.names):
        return [statement]
    if isinstance(statement, cst.Import):
        return _import_changed(statement, changes)
    return _import_from_changed(statement, changes)


def _import_changed(
    statement: cst.Import, changes: Mapping[cst.ImportAlias, Change]
) -> list[_Small]:
    aliases = []
    for alias in statement.names:
        change = changes.get(alias)
        if change is None:
            aliases.append(alias)
        elif change.path is not None:
            aliases.append(alias.with_changes(name=_module(change.path)))
    return [_with_aliases(statement, aliases)] if aliases else []


def _import_from_changed(
    statement: cst.ImportFrom, changes: Mapping[cst.ImportAlias, Change]
) -> list[_Small]:
    """What a `from ... import` becomes: what stays, and a statement for each new module."""
    assert not isinstance(statement.names, cst.ImportStar)
    stay: list[cst.ImportAlias] = []
    moved: dict[str, list[cst.ImportAlias]] = {}
    for alias in statement.names:
        change = changes.get(alias)
        if change is None:
            stay.append(alias)
        elif change.path is not None:
            module, _, name = change.path.rpartition(".")
            moved.setdefault(module, []).append(_renamed(alias, name, change.local))
    found: list[_Small] = [_with_aliases(statement, stay)] if stay else []
    for module, aliases in moved.items():
        if found:
            plain = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in aliases]
            found.append(cst.ImportFrom(module=_module(module), names=plain))
        else:
            first = _with_aliases(statement, aliases)
            found.append(first.with_changes(module=_module(module), relative=[]))
    return found


def _renamed(alias: cst.ImportAlias, name: str, local: str) -> cst.ImportAlias:
    asname: Optional[cst.AsName] = None
    if name != local:
        asname = alias.asname or cst.AsName(cst.Name(local))
        asname = asname.with_changes(name=cst.Name(local))
    return alias.with_changes(name=cst.Name(name), asname=asname)


def _with_aliases(
    statement: Union[cst.Import, cst.ImportFrom], aliases: list[cst.ImportAlias]
) -> _Small:
    assert not isinstance(statement.names, cst.ImportStar)
    last = aliases[-1].with_changes(comma=statement.names[-1].comma)
    return statement.with_changes(names=[*aliases[:-1], last])


def _module(path: str) -> Union[cst.Name, cst.Attribute]:
    module = cst.parse_expression(path)
    assert isinstance(module, (cst.Name, cst.Attribute))
    return module


def _parsed(statements: Sequence[str]) -> list[_Small]:
    found: list[_Small] = []
    for statement in statements:
        line = cst.parse_statement(statement)
        assert isinstance(line, cst.SimpleStatementLine)
        found.extend(line.body)
    return found
