"""The text report: each finding with its source line, the counts, and what to do next.

Equal findings of a file are shown together. Each has a line that begins with `path:line:column: `,
which editors and `grep` understand. The first of a group continues with `CODE outcome symbol:
message`. Groups that share a long reason are adjacent, and only the first one has it.
"""

from __future__ import annotations

import collections
import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TextIO

from ..files.printable import quoted, visible
from ..model import FileError, Finding, Safety
from ..run.results import FileOutcome, Summary

__all__ = [
    "PLAIN",
    "Style",
    "line_of",
    "next_steps",
    "problem_line",
    "summary_lines",
    "write",
]

_BOLD, _CYAN = "1", "36"
_COLORS = {Safety.SAFE: "32", Safety.UNSAFE: "33", Safety.MANUAL: "35"}
"""The codes of terminals: green, yellow, magenta."""
_LONG = 40
"""The length from which a reason is printed once for a file."""
_MOST_REQUIREMENTS = 8
_BEFORE = 8
"""Columns kept before a place if its line is too long for the terminal."""


class Style(NamedTuple):
    """The style of a stream.

    Attributes:
      color: whether to use colors.
      width: the columns of the terminal, for source lines; 0 if they are not cut.
    """

    color: bool = False
    width: int = 0

    def paint(self, text: str, *codes: str) -> str:
        """The text in the styles with these codes."""
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if self.color else text


PLAIN = Style()


def write(
    outcomes: Iterable[FileOutcome],
    summary: Summary,
    stream: TextIO,
    style: Style = PLAIN,
    statistics: bool = False,
) -> None:
    """Writes the findings, the errors, the target, the counts and the next steps.

    The target is written if there are findings and the command line does not give it.

    Args:
      outcomes: the outcomes of the run.
      summary: the counts of the run.
      stream: where to write.
      style: colors and width of the stream.
      statistics: whether to add a table with the counts of each rule.
    """
    counts: collections.Counter[tuple[str, Safety]] = collections.Counter()
    for outcome in outcomes:
        counts.update((finding.code, finding.outcome) for finding in outcome.findings)
        stream.writelines(line + "\n" for line in _lines_of_file(outcome, style))
    if statistics and counts:
        stream.writelines(line + "\n" for line in _table(counts, style))
    if counts and not summary.keras.is_given:
        stream.write(visible(summary.keras.words) + "\n")
    first, *others = summary_lines(summary)
    lines = [style.paint(first, _BOLD), *others, next_steps(summary)]
    stream.writelines(line + "\n" for line in lines if line)


def _lines_of_file(outcome: FileOutcome, style: Style) -> Iterator[str]:
    """The findings of a file, with each reason once, and its problems."""
    for groups in _by_reason(outcome.findings):
        for index, group in enumerate(groups):
            yield from _shown(group, style, index == 0)
    for problem in outcome.problems:
        yield problem_line(*problem)


def _by_reason(findings: Iterable[Finding]) -> Iterator[Collection[list[Finding]]]:
    """The findings of a file, by reason; those that differ only in their place form one group."""
    reasons: dict[tuple[object, ...], dict[tuple[str, ...], list[Finding]]] = {}
    for finding in findings:
        reason = _reason(finding.message)
        shared = reason if len(reason) >= _LONG else (finding.code, finding.symbol, finding.message)
        groups = reasons.setdefault((finding.outcome, finding.applied, shared), {})
        same = finding.code, finding.symbol, finding.message
        groups.setdefault(same, []).append(finding)
    for groups in reasons.values():
        yield groups.values()


def _reason(message: str) -> str:
    """What follows the advice, as in `use A; it behaves as B`; the message if that is all."""
    return message.partition("; ")[2] or message


def _shown(group: list[Finding], style: Style, with_reason: bool) -> Iterator[str]:
    """The lines of equal findings: the first with its message, the others with their places."""
    finding = group[0]
    if not with_reason:
        advice = finding.message[: -len(_reason(finding.message))]
        finding = finding._replace(message=advice + "see above")
    yield line_of(finding, style)
    has_sources = any(same.text for same in group)
    if has_sources:
        yield from _source(finding, style)
    for same in group[1:]:
        yield f"{_place_of(same, style)}: the same"
        if has_sources:
            yield from _source(same, style)


def _source(finding: Finding, style: Style) -> Iterator[str]:
    """The source line, and below it a line that underlines the place."""
    place = str(finding.line) if finding.cell is None else f"{finding.cell}:{finding.cell_line}"
    gutter = f"{place:>6} | "
    if not finding.text:
        yield f"{gutter}(a long line, column {finding.column})"
        return
    text = finding.text
    end = finding.end_column - 1 if finding.end_line == finding.line else len(text)
    before = _plain(text[: finding.column - 1]).lstrip()
    marked = _plain(text[finding.column - 1 : max(end, finding.column)])
    line = _plain(text).strip()
    start = _width_of(before)
    if style.width and len(gutter) + len(line) > style.width:
        room = max(style.width - len(gutter) - 2, 20)
        cut = max(start - _BEFORE, 0) if start + len(marked) > room else 0
        line = ("\u2026" if cut else "") + line[cut : cut + room]
        line += "\u2026" if len(line) > room else ""
        start -= cut - bool(cut)
    marks = "^" * max(min(_width_of(marked), _width_of(line) - start), 1)
    yield gutter + line
    below = "| ".rjust(len(gutter)) + " " * start
    yield below + style.paint(marks, _BOLD, _COLORS[finding.outcome])


def _plain(text: str) -> str:
    return visible(text.replace("\t", "    "))


def line_of(finding: Finding, style: Style = PLAIN) -> str:
    """Formats a finding as `path:line:column: CODE outcome symbol: message`."""
    place = _place_of(finding, style)
    code = style.paint(finding.code, _BOLD)
    outcome = style.paint(finding.outcome.value, _COLORS[finding.outcome])
    if finding.remark:
        outcome += f" ({finding.remark})"
    return f"{place}: {code} {outcome} {visible(f'{finding.symbol}: {finding.full_message}')}"


def _place_of(finding: Finding, style: Style) -> str:
    return style.paint(f"{quoted(finding.path)}:{finding.line}:{finding.column}", _CYAN)


def problem_line(kind: str, problem: FileError) -> str:
    """Formats an error or a warning as `path:line: error: message`."""
    place = quoted(problem.path) + (f":{problem.line}" if problem.line else "")
    return f"{place}: {kind}: {visible(problem.message)}"


def _table(counts: collections.Counter[tuple[str, Safety]], style: Style) -> Iterator[str]:
    """The counts of each rule, by outcome."""
    from ..rules.codes import codes  # late: it imports LibCST

    words = {code.code: code.words for code in codes()}
    head = "".join(f"{safety.value:>8}" for safety in Safety)
    yield style.paint(f"{'code':<6}{head}  what", _BOLD)
    for code in sorted({code for code, _ in counts}):
        numbers = "".join(f"{counts[code, safety]:>8,}" for safety in Safety)
        yield f"{code:<6}{numbers}  {words.get(code, '')}".rstrip()


def summary_lines(summary: Summary) -> list[str]:
    """The counts, and the files that use the rest of `tf.contrib`, which the run did not check."""
    parts = [
        f"{summary.changed:,} {'rewritten' if summary.wrote else 'to change'}",
        f"{summary.failed:,} failed",
        f"{summary.safe:,} safe",
        f"{summary.unsafe:,} unsafe",
        f"{summary.manual:,} manual",
    ]
    lines = [f"{_counted(summary.files, 'file')} checked: {', '.join(parts)}"]
    if summary.in_baseline:
        lines.append(f"{_counted(summary.in_baseline, 'finding')} in the baseline: not counted")
    if summary.wrote and summary.needs_shim and not summary.have_shim:
        lines.append(_needs_shim(summary.requirements))
    if summary.other_contrib:
        lines.append(
            f"tf.contrib is still used in {_counted(summary.other_contrib, 'file')} for other "
            "things; tf_upgrade_v2 rewrites or reports them, but not imports from it"
        )
    return lines


def _needs_shim(requirements: list[str]) -> str:
    """What the written files need, and where that can be said; nothing of it is edited."""
    need = "the program now needs tf-lossscale where it runs"
    if not requirements:
        return f"{need}: pip install tf-lossscale"
    listed = sorted(requirements, key=lambda path: (path.count(os.sep), path))
    more = len(listed) - _MOST_REQUIREMENTS
    shown = [*map(quoted, listed[:_MOST_REQUIREMENTS]), *([f"{more} more"] if more > 0 else [])]
    return f"{need}: add it to {', '.join(shown)}"


def next_steps(summary: Summary) -> str:
    """What to do next; empty if there is nothing to do."""
    parts = []
    if summary.applied and summary.is_dry:
        parts.append(f"{_counted(summary.applied, 'edit')} can be applied: add --write")
    if summary.held:
        edits = _counted(summary.held, "edit")
        parts.append(f"{edits} can change behavior: see above, and add --unsafe")
    if summary.manual:
        parts.append(f"{summary.manual:,} {'needs' if summary.manual == 1 else 'need'} you")
    return "; ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _width_of(text: str) -> int:
    """The columns that printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)
