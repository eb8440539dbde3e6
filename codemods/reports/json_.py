"""The JSON report, version 1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TextIO

from ..files.printable import quoted, visible
from ..model import FileError
from ..run.results import FileOutcome, Summary

__all__ = ["write", "write_list"]


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes the report entry by entry, so that memory does not grow with the number of files."""
    stream.write('{\n  "version": 1,\n  "summary": ')
    stream.write(json.dumps(summary.as_dict()))
    keras = {
        "target": summary.keras.target,
        "reason": visible(summary.keras.reason),
        "warnings": list(map(_problem, summary.keras.warnings)),
    }
    stream.write(f',\n  "keras": {json.dumps(keras)},\n  "findings": ')
    write_list(_findings(outcomes), stream)
    for kind in ("error", "warning"):
        stream.write(f',\n  "{kind}s": ')
        problems = (problem for outcome in outcomes for problem in outcome.problems)
        write_list(
            (_problem(problem) for kind_of_problem, problem in problems if kind_of_problem == kind),
            stream,
        )
    stream.write("\n}\n")


def write_list(entries: Iterable[object], stream: TextIO) -> None:
    """Writes a list entry by entry."""
    separator = "[\n    "
    for entry in entries:
        stream.write(separator + json.dumps(entry))
        separator = ",\n    "
    stream.write("[]" if separator.startswith("[") else "\n  ]")


def _findings(outcomes: Iterable[FileOutcome]) -> Iterator[dict[str, object]]:
    """Yields the findings as objects with the keys that the schema lists."""
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


def _problem(problem: FileError) -> dict[str, object]:
    path = _path(problem.path)
    return {"path": path, "line": problem.line, "message": visible(problem.message)}


def _path(path: str) -> str:
    """The path; quoted if it is not UTF-8, which JSON cannot represent, or looks quoted."""
    is_utf8 = path.encode("utf-8", "replace").decode("utf-8") == path
    return path if is_utf8 and not path.startswith('"') else quoted(path)
