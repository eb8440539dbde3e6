"""The text report: one line for each finding, and a summary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from ..files.printable import quoted, visible
from ..model import FileError, Finding
from ..workers.results import FileOutcome, Summary

__all__ = ["error_line", "line_of", "summary_line", "write"]


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes the findings, the errors and the summary."""
    for outcome in outcomes:
        for finding in outcome.findings:
            stream.write(line_of(finding) + "\n")
        if outcome.error is not None:
            stream.write(error_line(outcome.error) + "\n")
    stream.write(summary_line(summary) + "\n")


def line_of(finding: Finding) -> str:
    """Formats a finding as `path:line:column: CODE outcome symbol: message`."""
    outcome = finding.outcome.value
    if finding.remark:
        outcome += f" ({finding.remark})"
    place = f"{quoted(finding.path)}:{finding.line}:{finding.column}"
    return f"{place}: {finding.code} {outcome} {visible(f'{finding.symbol}: {finding.message}')}"


def error_line(error: FileError) -> str:
    """Formats an error as `path:line: error: message`."""
    place = quoted(error.path) + (f":{error.line}" if error.line else "")
    return f"{place}: error: {visible(error.message)}"


def summary_line(summary: Summary) -> str:
    """Formats the counts as one line."""
    files = "1 file" if summary.files == 1 else f"{summary.files:,} files"
    parts = [
        f"{summary.changed:,} {'changed' if summary.wrote else 'to change'}",
        f"{summary.failed:,} failed",
        f"{summary.safe:,} safe",
        f"{summary.unsafe:,} unsafe",
        f"{summary.manual:,} manual",
    ]
    return f"{files} checked: {', '.join(parts)}"
