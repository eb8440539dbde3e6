"""GitHub annotations: workflow commands that show each finding next to its line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TextIO

from ..files.printable import quoted, visible
from ..model import FileError, Safety
from ..run.results import FileOutcome, Summary
from .text import summary_lines

__all__ = ["write"]

_ENDS = re.compile("([\r\n])")


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes a workflow command for each finding and error, and the summary as a plain line."""
    for outcome in outcomes:
        for finding in outcome.findings:
            level = "notice" if finding.outcome is Safety.SAFE else "warning"
            properties = {
                "file": _file(finding.path),
                "line": finding.line,
                "endLine": max(finding.end_line, finding.line),
                "col": finding.column,
                "title": f"{finding.code} {visible(finding.symbol)} ({finding.outcome.value})",
            }
            stream.write(_command(level, properties, finding.full_message))
        for level, problem in outcome.problems:
            stream.write(_problem(level, problem))
    for warning in summary.keras.warnings:
        stream.write(_problem("warning", warning))
    stream.write(visible(summary.keras.words) + "\n")
    stream.writelines(line + "\n" for line in summary_lines(summary))


def _problem(level: str, problem: FileError) -> str:
    place = {"file": _file(problem.path), "line": max(problem.line, 1)}
    return _command(level, place, problem.message)


def _command(level: str, properties: dict[str, object], message: str) -> str:
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    # Control characters are escaped except line ends, which GitHub shows.
    lines = "".join(part if part in "\r\n" else visible(part) for part in _ENDS.split(message))
    return f"::{level} {listed}::{_data(lines)}\n"


def _file(path: str) -> str:
    """The path, which GitHub matches to a file; quoted if the runner could not decode it."""
    return path if re.sub(r"[\r\n]", "", path).isprintable() else quoted(path)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
