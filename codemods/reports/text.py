"""The text report: each finding with its source line, the counts, and what to do next.

Equal findings of a file are shown together. The first line of each group is
`path:line:column: CODE outcome symbol: message`, which editors and `grep` understand. Groups that
share a long reason are adjacent, and only the first one has it.
"""

from __future__ import annotations

import collections
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TextIO

from ..files.printable import quoted, visible
from ..model import FileError, Finding, Safety
from ..run.results import FileOutcome, Summary

__all__ = [
    "Style",
    "line_of",
    "next_steps",
    "other_contrib",
    "problem_line",
    "summary_line",
    "write",
]

_COLORS = {Safety.SAFE: "green", Safety.UNSAFE: "yellow", Safety.MANUAL: "magenta"}
_LONG = 40
"""The length from which a reason is printed once for a file."""
_BEFORE = 8
"""Columns kept before a place if its line is too long for the terminal."""

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "magenta": "35", "cyan": "36"}


class Style(NamedTuple):
    """The style of a stream.

    Attributes:
      color: whether to use colors.
      width: the columns of the terminal; 0 if lines are not wrapped.
    """

    color: bool = False
    width: int = 0

    def paint(self, text: str, *styles: str) -> str:
        """The text in these styles."""
        if not (self.color and styles):
            return text
        return f"\x1b[{';'.join(_CODES[one] for one in styles)}m{text}\x1b[0m"

    def wrapped(self, text: str) -> list[str]:
        """The text in lines; a word that is longer than a line stays whole."""
        if not self.width or len(text) <= self.width:
            return [text]
        return textwrap.wrap(
            text,
            self.width,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )


_PLAIN = Style()


def write(
    outcomes: Iterable[FileOutcome],
    summary: Summary,
    stream: TextIO,
    style: Style = _PLAIN,
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
        for groups in _by_reason(outcome.findings):
            for index, group in enumerate(groups):
                stream.writelines(line + "\n" for line in _shown(group, style, index == 0))
        if outcome.warning is not None:
            stream.write(problem_line(outcome.warning, "warning") + "\n")
        if outcome.error is not None:
            stream.write(problem_line(outcome.error, "error") + "\n")
    if statistics and counts:
        stream.writelines(line + "\n" for line in _table(counts, style))
    if counts and not summary.keras.is_given:
        stream.write(visible(summary.keras.words) + "\n")
    stream.write(style.paint(summary_line(summary), "bold") + "\n")
    if summary.other_contrib:
        stream.write(other_contrib(summary) + "\n")
    if next_steps(summary):
        stream.write(next_steps(summary) + "\n")


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
    finding = group[0]
    if not with_reason:
        advice = finding.message[: -len(_reason(finding.message))]
        finding = finding._replace(message=advice + "see above")
    first, *others = style.wrapped(line_of(finding))
    if style.color:
        place, _, rest = first.partition(": ")
        words = rest.split(" ", 2)
        words[0] = style.paint(words[0], "bold")
        words[1:2] = [style.paint(one, _COLORS[group[0].outcome]) for one in words[1:2]]
        first = f"{style.paint(place, 'cyan')}: {' '.join(words)}"
    yield from (first, *others)
    if any(one.text for one in group):
        for one in group:
            yield from _source(one, style)
    else:
        for one in group[1:]:
            yield f"{quoted(one.path)}:{one.line}:{one.column}: the same"


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
    yield below + style.paint(marks, "bold", _COLORS[finding.outcome])


def _plain(text: str) -> str:
    return visible(text.replace("\t", "    "))


def line_of(finding: Finding) -> str:
    """Formats a finding as `path:line:column: CODE outcome symbol: message`."""
    outcome = finding.outcome.value
    if finding.remark:
        outcome += f" ({finding.remark})"
    place = f"{quoted(finding.path)}:{finding.line}:{finding.column}"
    words = visible(f"{finding.symbol}: {finding.full_message}")
    return f"{place}: {finding.code} {outcome} {words}"


def problem_line(problem: FileError, kind: str) -> str:
    """Formats an error or a warning as `path:line: error: message`."""
    place = quoted(problem.path) + (f":{problem.line}" if problem.line else "")
    return f"{place}: {kind}: {visible(problem.message)}"


def _table(counts: collections.Counter[tuple[str, Safety]], style: Style) -> Iterator[str]:
    """The counts of each rule, by outcome."""
    from ..rules.codes import codes  # late: it imports LibCST

    words = {code.code: code.words for code in codes()}
    head = "".join(f"{safety.value:>8}" for safety in Safety)
    yield style.paint(f"{'code':<6}{head}  what", "bold")
    for code in sorted({code for code, _ in counts}):
        numbers = "".join(f"{counts[code, safety]:>8,}" for safety in Safety)
        yield f"{code:<6}{numbers}  {words.get(code, '')}".rstrip()


def summary_line(summary: Summary) -> str:
    """Formats the counts as one line."""
    files = "1 file" if summary.files == 1 else f"{summary.files:,} files"
    parts = [
        f"{summary.changed:,} {'rewritten' if summary.wrote else 'to change'}",
        f"{summary.failed:,} failed",
        f"{summary.safe:,} safe",
        f"{summary.unsafe:,} unsafe",
        f"{summary.manual:,} manual",
    ]
    return f"{files} checked: {', '.join(parts)}"


def other_contrib(summary: Summary) -> str:
    """What the run did not check: the files that use the rest of `tf.contrib`."""
    files = "1 file" if summary.other_contrib == 1 else f"{summary.other_contrib:,} files"
    return (
        f"tf.contrib is still used in {files} for other things; "
        "tf_upgrade_v2 rewrites or reports them"
    )


def next_steps(summary: Summary) -> str:
    """What to do next; empty if there is nothing to do."""
    parts = []
    if summary.applied and summary.is_dry:
        edits = "1 edit" if summary.applied == 1 else f"{summary.applied:,} edits"
        parts.append(f"{edits} can be applied: add --write")
    if summary.held:
        more = "1 edit" if summary.held == 1 else f"{summary.held:,} edits"
        parts.append(f"{more} can change behavior: see above, and add --unsafe")
    if summary.manual:
        parts.append(f"{summary.manual:,} {'needs' if summary.manual == 1 else 'need'} you")
    return "; ".join(parts)


def _width_of(text: str) -> int:
    """The columns that printable text takes on a terminal."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return len(text) + wide - sum(unicodedata.combining(one) != 0 for one in text)
