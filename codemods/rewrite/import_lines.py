"""Rewrites lines of import statements after some of their names have changed."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Optional, Union

import libcst as cst

from ..resolve.tree import REMOVED, Edit, Parents
from .comments import comments_in

__all__ = ["Change", "Line", "Lines"]

Line = Union[cst.SimpleStatementLine, cst.SimpleStatementSuite]
"""The nodes that hold small statements, such as imports."""

_Small = cst.BaseSmallStatement
_Changed = tuple[Optional[_Small], list[_Small]]
"""A statement afterwards (None: removed), and the statements to add behind it."""


class Change(NamedTuple):
    """The new path and local name of one import alias; None removes it."""

    path: Optional[str] = None
    local: str = ""


class Lines:
    """Converts changes of imports to edits of their lines."""

    def __init__(
        self,
        parents: Parents,
        changes: Mapping[cst.ImportAlias, Change],
        found: dict[cst.CSTNode, list[Edit]],
    ) -> None:
        self._parents = parents
        self._changes = changes
        self._found = found
        self._removed: dict[cst.SimpleStatementLine, None] = {}

    def write(self, line: Line, behind: Mapping[cst.CSTNode, Sequence[str]]) -> None:
        """Adds the edits of one line, with new imports after some of its statements.

        What a lone statement becomes stands on lines of its own, below its comments that would be
        lost otherwise.
        """
        originals = list(line.body)
        changed = [self._changed(statement) for statement in originals]
        added = [_parsed(behind.get(statement, ())) for statement in originals]
        is_alone = isinstance(line, cst.SimpleStatementLine) and len(originals) == 1
        if is_alone and changed[0][0] is None and not changed[0][1] and not added[0]:
            assert isinstance(line, cst.SimpleStatementLine)
            self._take_out(line)
            return

        def edit(old: cst.CSTNode) -> object:
            assert isinstance(old, (cst.SimpleStatementLine, cst.SimpleStatementSuite))
            body: list[_Small] = []
            for index, now in enumerate(old.body):
                kept, more = changed[index]
                if kept is originals[index]:
                    body.append(now)
                elif kept is not None:
                    body.append(kept.with_changes(semicolon=now.semicolon))
                body.extend([*more, *added[index]])
            if not is_alone:
                return old.with_changes(body=_joined(body or [cst.Pass()], old.body[-1]))
            assert isinstance(old, cst.SimpleStatementLine)
            first, *others = body
            head = old.with_changes(
                leading_lines=[*old.leading_lines, *_lost(old.body[0], body)],
                body=[_ending_as(first, old.body[0])],
            )
            return [head, *[cst.SimpleStatementLine([_bare(other)]) for other in others]]

        self._found.setdefault(line, []).append(edit)

    def put_before(self, compound: cst.CSTNode, statements: Sequence[str]) -> None:
        """Puts imports before a compound statement."""
        self._found.setdefault(compound, []).append(_putting_before(statements))

    def close_up(self, modules: Sequence[Optional[cst.Module]]) -> None:
        """Moves the comments and blank lines above removed lines, after all lines are written."""
        for line in reversed(list(self._removed)):
            self._keep_comments(line)
        for module in modules:
            if module is None or module.header:
                continue
            left = [statement for statement in module.body if statement not in self._removed]
            if left and left[0] is not module.body[0]:
                self._found.setdefault(left[0], []).append(_without_blank_lines)

    def _keep_comments(self, line: cst.SimpleStatementLine) -> None:
        """Moves the comments above a removed line to the next remaining line."""
        leading = line.leading_lines
        if not any(empty.comment for empty in leading):
            return
        block = self._parents[line]
        assert isinstance(block, (cst.Module, cst.IndentedBlock))
        index = next(i for i, statement in enumerate(block.body) if statement is line)
        below = [one for one in block.body[index + 1 :] if one not in self._removed]
        if below:
            self._found.setdefault(below[0], []).append(_leading_with(leading))
        else:
            self._found.setdefault(block, []).append(_footer_with(leading))

    def _take_out(self, line: cst.SimpleStatementLine) -> None:
        block = self._parents[line]
        assert isinstance(block, (cst.Module, cst.IndentedBlock))
        left = [statement for statement in block.body if statement not in self._removed]
        if isinstance(block, cst.IndentedBlock) and len(left) == 1:
            self._found.setdefault(line, []).append(_passing)
            return
        self._removed[line] = None
        self._found.setdefault(line, []).append(lambda old: REMOVED)

    def _changed(self, statement: _Small) -> _Changed:
        if isinstance(statement, cst.Import):
            return _import_changed(statement, self._changes)
        if isinstance(statement, cst.ImportFrom):
            return _import_from_changed(statement, self._changes)
        return statement, []


def _import_changed(statement: cst.Import, changes: Mapping[cst.ImportAlias, Change]) -> _Changed:
    if not any(alias in changes for alias in statement.names):
        return statement, []
    aliases = []
    for alias in statement.names:
        change = changes.get(alias)
        if change is None:
            aliases.append(alias)
        elif change.path is not None:
            aliases.append(alias.with_changes(name=_module(change.path)))
    if not aliases:
        return None, []
    aliases[-1] = aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return statement.with_changes(names=aliases), []


def _import_from_changed(
    statement: cst.ImportFrom, changes: Mapping[cst.ImportAlias, Change]
) -> _Changed:
    if isinstance(statement.names, cst.ImportStar):
        return statement, []
    if not any(alias in changes for alias in statement.names):
        return statement, []
    stay: list[cst.ImportAlias] = []
    move: dict[str, list[cst.ImportAlias]] = {}
    renamed: dict[cst.ImportAlias, cst.ImportAlias] = {}
    for alias in statement.names:
        change = changes.get(alias)
        if change is None:
            stay.append(alias)
        elif change.path is not None:
            module, _, name = change.path.rpartition(".")
            renamed[alias] = _renamed(alias, name, change.local)
            move.setdefault(module, []).append(alias)
    modules = list(move)
    if not stay and not modules:
        return None, []
    moved = {module: [renamed[alias] for alias in aliases] for module, aliases in move.items()}
    if stay:
        return _with_aliases(statement, stay), [_from(one, moved[one]) for one in modules]
    first = _with_aliases(statement, moved[modules[0]])
    first = first.with_changes(module=_module(modules[0]), relative=[])
    return first, [_from(module, moved[module]) for module in modules[1:]]


def _lost(old: _Small, body: Sequence[_Small]) -> list[cst.EmptyLine]:
    """The comments between the names of an import that are not in what it becomes."""
    left = collections.Counter(comments_in(old))
    left.subtract(comment for statement in body for comment in comments_in(statement))
    return [cst.EmptyLine(comment=cst.Comment(comment)) for comment in left.elements()]


def _renamed(alias: cst.ImportAlias, name: str, local: str) -> cst.ImportAlias:
    asname: Optional[cst.AsName] = None
    if name != local:
        asname = alias.asname or cst.AsName(cst.Name(local))
        asname = asname.with_changes(name=cst.Name(local))
    return alias.with_changes(name=cst.Name(name), asname=asname)


def _with_aliases(statement: cst.ImportFrom, aliases: list[cst.ImportAlias]) -> cst.ImportFrom:
    assert not isinstance(statement.names, cst.ImportStar)
    last = aliases[-1].with_changes(comma=statement.names[-1].comma)
    return statement.with_changes(names=[*aliases[:-1], last])


def _from(module: str, aliases: list[cst.ImportAlias]) -> cst.ImportFrom:
    plain = [alias.with_changes(comma=cst.MaybeSentinel.DEFAULT) for alias in aliases]
    return cst.ImportFrom(module=_module(module), names=plain)


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


def _joined(body: list[_Small], last: _Small) -> list[_Small]:
    """Statements on one line: a semicolon after each but the last, which ends as `last` did."""
    between = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    most = [
        part if isinstance(part.semicolon, cst.Semicolon) else part.with_changes(semicolon=between)
        for part in body[:-1]
    ]
    return [*most, _ending_as(body[-1], last)]


def _ending_as(statement: _Small, last: _Small) -> _Small:
    return statement.with_changes(semicolon=last.semicolon)


def _bare(statement: _Small) -> _Small:
    return statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


def _putting_before(statements: Sequence[str]) -> Edit:
    def edit(old: cst.CSTNode) -> object:
        assert isinstance(old, cst.BaseCompoundStatement)
        first, *others = [cst.SimpleStatementLine([part]) for part in _parsed(statements)]
        first = first.with_changes(leading_lines=old.leading_lines)
        return [first, *others, old.with_changes(leading_lines=[])]

    return edit


def _passing(old: cst.CSTNode) -> object:
    return old.with_changes(body=[cst.Pass()])


def _leading_with(lines: Sequence[cst.EmptyLine]) -> Edit:
    def edit(old: cst.CSTNode) -> object:
        assert isinstance(old, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        return old.with_changes(leading_lines=[*lines, *old.leading_lines])

    return edit


def _footer_with(lines: Sequence[cst.EmptyLine]) -> Edit:
    def edit(old: cst.CSTNode) -> object:
        assert isinstance(old, (cst.Module, cst.IndentedBlock))
        return old.with_changes(footer=[*lines, *old.footer])

    return edit


def _without_blank_lines(old: cst.CSTNode) -> object:
    assert isinstance(old, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    lines = list(old.leading_lines)
    while lines and lines[0].comment is None:
        del lines[0]
    return old.with_changes(leading_lines=lines)
