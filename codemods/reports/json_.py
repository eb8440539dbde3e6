"""The JSON report, version 1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Optional, TextIO

from ..files.printable import is_utf8, quoted, visible
from ..model import FileError
from ..run.results import FileOutcome, Summary

__all__ = ["write"]


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes the report entry by entry, so that memory does not grow with the number of files."""
    stream.write('{\n  "version": 1,\n  "summary": ')
    stream.write(json.dumps(summary.as_dict()))
    stream.write(',\n  "keras": ')
    stream.write(json.dumps(_keras(summary)))
    stream.write(',\n  "findings": ')
    _list(_findings(outcomes), stream)
    stream.write(',\n  "errors": ')
    _list(_problems(outcome.error for outcome in outcomes), stream)
    stream.write(',\n  "warnings": ')
    _list(_problems(outcome.warning for outcome in outcomes), stream)
    stream.write("\n}\n")


def _keras(summary: Summary) -> dict[str, object]:
    """The Keras version to target, and why."""
    return {
        "target": summary.keras.target,
        "reason": visible(summary.keras.reason),
        "warnings": [
            {"path": _path(one.path), "line": one.line, "message": visible(one.message)}
            for one in summary.keras.warnings
        ],
    }


def _list(entries: Iterator[object], stream: TextIO) -> None:
    separator = "[\n    "
    for entry in entries:
        stream.write(separator + json.dumps(entry))
        separator = ",\n    "
    stream.write("[]" if separator.startswith("[") else "\n  ]")


def _findings(outcomes: Iterable[FileOutcome]) -> Iterator[dict[str, object]]:
    for outcome in outcomes:
        for finding in outcome.findings:
            yield {
                "path": _path(finding.path),
                "line": finding.line,
                "column": finding.column,
                "end_line": max(finding.end_line, finding.line),
                "end_column": finding.end_column or finding.column,
                "code": finding.code,
                "symbol": finding.symbol,
                "outcome": finding.outcome.value,
                "applied": finding.applied,
                "message": finding.full_message,
                "cell": finding.cell,
                "cell_line": finding.cell_line if finding.cell else None,
            }


def _problems(problems: Iterable[Optional[FileError]]) -> Iterator[dict[str, object]]:
    for one in problems:
        if one is not None:
            yield {"path": _path(one.path), "line": one.line, "message": one.message}


def _path(path: str) -> str:
    """The path; quoted if it is not UTF-8, which JSON cannot represent, or looks quoted."""
    return path if is_utf8(path) and not path.startswith('"') else quoted(path)
