"""Turns proposals into edits and findings: each group applies as a whole or not at all."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Optional

import libcst as cst

from ..model import FileError, FileResult, Finding, Safety
from ..resolve.instance_checks import is_class_read
from ..resolve.program import Program
from ..resolve.tree import Edit, rebuilt
from ..rewrite.proposal import Group, Proposal
from ..rewrite.respell import respell
from .names_seen import why_nothing
from .parse import syntax_error
from .render import Place, Rendered, text_of
from .suppressions import Suppressions
from .todo_comments import mark_edits

__all__ = ["applied"]

_WAITS = "not rewritten: resolve {} first: {}"
_SILENCED = "comments silence all findings in it"


def applied(
    program: Program,
    sources: Sequence[bytes],
    errors: Sequence[Optional[FileError]],
    texts: Sequence[Optional[Rendered]],
    proposals: Sequence[Proposal],
    path: str,
) -> list[FileResult]:
    """Applies all proposals that can be applied, and returns the result for each source."""
    where: dict[cst.CSTNode, Place] = {}
    for text in texts:
        if text is not None:
            where.update(text.places)
    suppressions = Suppressions(texts)
    proposals = [_blocked(one, program) for one in proposals]
    silenced = {id(one) for one in proposals if suppressions.silence(one.code, where[one.node])}
    decided = _resolve_groups(proposals, silenced, program.options.unsafe, where)
    edits = _edits(program, [one for one, is_done in decided if is_done])
    if program.options.mark:
        manual = [one for one, is_done in decided if not is_done]
        for node, more in mark_edits(program, manual).items():
            edits.setdefault(node, []).extend(more)
    findings = [_finding(one, is_done, where[one.node], path) for one, is_done in decided]
    findings += suppressions.unused(program.options, path)
    left = _left(program, proposals, {id(one) for one, is_done in decided if is_done or one.stays})
    results = []
    for index, (source, error) in enumerate(zip(sources, errors)):
        module, text = program.modules[index], texts[index]
        if module is None or text is None:
            results.append(FileResult(source, error=error))
            continue
        once = dict.fromkeys(one for at, one in findings if at == index)
        mine = sorted(once, key=_place_of)
        edited = rebuilt(module, edits, program.parents)
        nothing = _SILENCED if silenced else why_nothing(program, sources)
        result = _result(source, edited, text, mine, path, nothing)
        results.append(result._replace(left=left))
    return results


def _blocked(one: Proposal, program: Program) -> Proposal:
    """The proposal, left to a person if the same class must stay in another file of the run."""
    file = program.neighbors.blocked_by.get(one.code)
    if file is None or one.group is None or one.outcome is Safety.MANUAL:
        return one
    message = _WAITS.format(file, one.message)
    return one._replace(
        outcome=Safety.MANUAL, message=message, comment="", blocks=True, moves=(), edits=()
    )


def _left(program: Program, proposals: Sequence[Proposal], gone: Container[int]) -> frozenset[str]:
    """The codes of the classes that are read as values at places that keep them."""
    return frozenset(
        one.code
        for one in proposals
        if id(one) not in gone and one.node in program.by_node and is_class_read(program, one.node)
    )


def _result(
    source: bytes,
    module: Optional[cst.Module],
    text: Rendered,
    findings: list[Finding],
    path: str,
    nothing: str,
) -> FileResult:
    if module is None:
        note = "no edit is possible; see the findings" if findings else nothing
        return FileResult(source, tuple(findings), None, note)
    new_source = text_of(module, text.statements).encode(module.encoding)
    problem = syntax_error(new_source)
    if problem is not None:
        message = f"not rewritten: the result would not parse ({problem.message})"
        return FileResult(source, error=FileError(path, problem.line, message))
    return FileResult(new_source, tuple(findings))


def _place_of(finding: Finding) -> tuple[int, int, str, str, str]:
    return finding.line, finding.column, finding.code, finding.symbol, finding.message


def _resolve_groups(
    proposals: Sequence[Proposal],
    silenced: Container[int],
    unsafe: bool,
    where: dict[cst.CSTNode, Place],
) -> list[tuple[Proposal, bool]]:
    """Returns each proposal that is not silenced, and whether it is applied.

    If one proposal of a group cannot be applied, the others become manual. In a group that needs
    all of its places, a silenced proposal (known by its `id`) has the same effect.
    """
    holding: dict[Group, Proposal] = {}
    for one in proposals:
        if one.group is None:
            continue
        waits = one.outcome is Safety.UNSAFE and not unsafe
        is_missing = one.group.needs_all and id(one) in silenced
        if one.blocks or waits or is_missing:
            holding.setdefault(one.group, one)
    decided = []
    for one in proposals:
        if id(one) in silenced:
            continue
        holder = holding.get(one.group) if one.group is not None else None
        if one.outcome is Safety.MANUAL or one.stays:
            decided.append((one, False))
        elif holder is not None and holder is not one:
            line = where[holder.node].line
            held = one._replace(
                outcome=Safety.MANUAL,
                message=_WAITS.format(f"line {line} ({holder.symbol})", one.message),
                comment=_WAITS.format(f"{holder.symbol} ({holder.code})", one.message),
            )
            decided.append((one if one.outcome is Safety.UNSAFE else held, False))
        else:
            decided.append((one, one.outcome is Safety.SAFE or unsafe))
    return decided


def _edits(program: Program, done: Sequence[Proposal]) -> dict[cst.CSTNode, list[Edit]]:
    moves = {reference: path for one in done for reference, path in one.moves}
    removed = {reference for one in done for reference in one.removed}
    has_names = moves or removed or program.unread
    edits = respell(program, moves, removed) if has_names else {}
    for one in done:
        for node, edit in one.edits:
            edits.setdefault(node, []).append(edit)
    return edits


def _finding(one: Proposal, is_done: bool, place: Place, path: str) -> tuple[int, Finding]:
    finding = Finding(
        path=path,
        line=place.line,
        column=place.column,
        code=one.code,
        symbol=one.symbol,
        outcome=one.outcome,
        applied=is_done,
        message=one.message,
        end_line=place.end_line,
        end_column=place.end_column,
        text=place.text,
    )
    return place.source, finding
