"""Turns proposals into edits and findings; tells which groups of symbols must go to the shim."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ..model import FileError, FileResult, Finding, Group, Safety
from ..resolve.program import Program
from ..resolve.tree import Edit, rebuilt
from ..rewrite.proposal import Proposal
from ..rewrite.respell import respell
from .comments import Suppressions, mark_edits
from .parse import syntax_error
from .render import Place, Rendered, text_of

__all__ = ["NOTHING", "Needs", "applied", "needs_of", "without_edits"]

NOTHING = "no symbol to migrate in it: its names are not TensorFlow's, or migrated already"
"""Why there is nothing to do for a source with a legacy name."""

_SILENCED = "comments silence all findings in it"
_SUPPRESSED = "a comment suppresses the finding"
_KEPT = "not rewritten, because the class of this object is not: migrate both, or neither"
_SAME_SYMBOLS = (Group.V1, Group.CROSS_SHARD)
"""The groups of which the final API has the very same symbols as the legacy one."""


class Needs(NamedTuple):
    """The groups of symbols that must go to the shim, and the places that decide that."""

    groups: frozenset[Group]
    notes: Mapping[cst.CSTNode, Proposal]


def needs_of(
    program: Program,
    proposals: Sequence[Proposal],
    where: Mapping[cst.CSTNode, Place],
    suppressions: Suppressions,
) -> Needs:
    """The groups that do not fit the final API, with the reason at each place that decides it.

    A place that a comment suppresses keeps the legacy symbol, which only the shim's fits, and so
    does one that can only be rewritten with `--unsafe`.
    """
    notes: dict[cst.CSTNode, Proposal] = {}
    groups = set()
    for one in proposals:
        if one.group is None or one.stays or program.goes_to_shim(one.group):
            continue
        waits = one.outcome is Safety.UNSAFE and not program.options.unsafe
        is_silenced = one.group not in _SAME_SYMBOLS and suppressions.silence(
            one.code, where[one.node]
        )
        if one.blocks or waits or is_silenced:
            groups.add(one.group)
            message = _SUPPRESSED if is_silenced else one.message
            notes.setdefault(one.node, one._replace(message=message))
    return Needs(frozenset(groups), notes)


def without_edits(proposals: Sequence[Proposal], kept: Sequence[Proposal]) -> list[Proposal]:
    """The proposals, of which none edits what is called on an object whose class is kept.

    A class is kept if its proposal is silenced or not selected.
    """
    groups = {one.group for one in kept if one.moves and not one.stays}
    return [
        one._replace(outcome=Safety.MANUAL, message=_KEPT, edits=())
        if one.group in groups and one.edits and not one.moves
        else one
        for one in proposals
    ]


def applied(
    program: Program,
    sources: Sequence[bytes],
    errors: Sequence[Optional[FileError]],
    texts: Sequence[Optional[Rendered]],
    proposals: Sequence[Proposal],
    path: str,
) -> list[FileResult]:
    """Applies the proposals, and returns the result for each source."""
    where = {node: place for text in texts if text for node, place in text.places.items()}
    suppressions = Suppressions(texts)
    silenced = [one for one in proposals if suppressions.silence(one.code, where[one.node])]
    ids = set(map(id, silenced))
    left = without_edits([one for one in proposals if id(one) not in ids], silenced)
    unsafe = program.options.unsafe
    decided = [
        (
            one,
            not one.stays
            and (one.outcome is Safety.SAFE or (one.outcome is Safety.UNSAFE and unsafe)),
        )
        for one in left
    ]
    kept = {one.node for one in silenced}
    edits = _edits(program, [one for one, is_done in decided if is_done], kept)
    if program.options.mark:
        manual = [one for one, is_done in decided if not is_done]
        for node, more in mark_edits(program, manual).items():
            edits.setdefault(node, []).extend(more)
    findings = [_finding(one, is_done, where[one.node], path) for one, is_done in decided]
    findings += suppressions.unused(program.options, path)
    results = []
    for index, (source, error) in enumerate(zip(sources, errors)):
        module, text = program.modules[index], texts[index]
        if module is None or text is None:
            results.append(FileResult(source, error=error))
            continue
        once = dict.fromkeys(one for at, one in findings if at == index)
        mine = sorted(once, key=_place_of)
        edited = rebuilt(module, edits, program.parents)
        nothing = _SILENCED if silenced else NOTHING
        results.append(_result(source, edited, text, mine, path, nothing))
    return results


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


def _edits(
    program: Program, done: Sequence[Proposal], kept: Container[cst.CSTNode]
) -> dict[cst.CSTNode, list[Edit]]:
    moves = {reference: path for one in done for reference, path in one.moves}
    removed = {reference for one in done for reference in one.removed}
    edits = respell(program, moves, removed, kept) if moves or removed else {}
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
        through=one.through,
    )
    return place.source, finding
