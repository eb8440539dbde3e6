"""SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from tf_lossscale._about import HOME, VERSION

from ..files.printable import visible
from ..model import FileError, Finding, Replacement, Safety
from ..rules.codes import Code, codes
from ..run.results import FileOutcome, Summary

__all__ = ["write"]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_LEVELS = {Safety.SAFE: "note", Safety.UNSAFE: "warning", Safety.MANUAL: "warning"}


def write(outcomes: Iterable[FileOutcome], summary: Summary, stream: TextIO) -> None:
    """Writes one run, result by result, so that memory does not grow with the number of files."""
    rules = codes()
    index = {rule.code: number for number, rule in enumerate(rules)}
    driver: dict[str, Any] = {
        "name": "tf-lossscale",
        "version": VERSION,
        "rules": [_rule(rule) for rule in rules],
    }
    if HOME:
        driver["informationUri"] = HOME
    invocation = {
        "executionSuccessful": summary.failed == 0,
        "toolExecutionNotifications": list(_notifications(outcomes)),
        "toolConfigurationNotifications": [
            _notification(warning, "warning") for warning in summary.keras.warnings
        ],
        "properties": {
            "keras": summary.keras.target,
            "kerasReason": visible(summary.keras.reason),
        },
    }
    stream.write(f'{{"$schema": {json.dumps(_SCHEMA)}, "version": "2.1.0", "runs": [{{\n')
    stream.write(f'"tool": {json.dumps({"driver": driver})},\n')
    stream.write(f'"invocations": [{json.dumps(invocation)}],\n')
    stream.write('"columnKind": "unicodeCodePoints",\n')
    stream.write('"results": [')
    separator = "\n"
    for result in _results(outcomes, index):
        stream.write(separator + json.dumps(result))
        separator = ",\n"
    stream.write("\n]}]}\n")


def _rule(rule: Code) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.code,
        "shortDescription": {"text": rule.words},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.text},
    }
    if HOME:
        described["helpUri"] = f"{HOME}/blob/main/docs/rules/{rule.rule.slug}.md"
    return described


def _results(outcomes: Iterable[FileOutcome], index: dict[str, int]) -> Iterator[dict[str, Any]]:
    for outcome in outcomes:
        fixes = _fixes(outcome) if outcome.replacements else []
        for finding in outcome.findings:
            result: dict[str, Any] = {
                "ruleId": finding.code,
                "level": _LEVELS[finding.outcome],
                "message": {"text": f"{finding.symbol}: {finding.full_message}"},
                "locations": [_location(finding)],
                "properties": {"outcome": finding.outcome.value, "applied": finding.applied},
            }
            if finding.cell is not None:
                result["properties"].update(cell=finding.cell, cellLine=finding.cell_line)
            if finding.code in index:
                result["ruleIndex"] = index[finding.code]
            if finding.applied and fixes:  # with the first finding: they belong together
                result["fixes"], fixes = fixes, []
            yield result


def _fixes(outcome: FileOutcome) -> list[dict[str, Any]]:
    """One fix with all edits of the file, such as the imports that several findings need."""
    change = {
        "artifactLocation": {"uri": _uri(outcome.path)},
        "replacements": [_replacement(one) for one in outcome.replacements],
    }
    return [{"description": {"text": "Apply all edits of this file"}, "artifactChanges": [change]}]


def _replacement(one: Replacement) -> dict[str, Any]:
    region = {
        "startLine": one.line,
        "startColumn": one.column,
        "endLine": one.end_line,
        "endColumn": one.end_column,
    }
    return {"deletedRegion": region, "insertedContent": {"text": one.text}}


def _location(finding: Finding) -> dict[str, Any]:
    region = {
        "startLine": max(finding.line, 1),
        "startColumn": max(finding.column, 1),
        "endLine": max(finding.end_line, finding.line, 1),
    }
    if finding.end_column:
        region["endColumn"] = finding.end_column
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path)}, "region": region}}


def _notifications(outcomes: Iterable[FileOutcome]) -> Iterator[dict[str, Any]]:
    for outcome in outcomes:
        if outcome.error is not None:
            yield _notification(outcome.error, "error")
        elif outcome.warning is not None:
            yield _notification(outcome.warning, "warning")


def _notification(error: FileError, level: str) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(error.path)}}
    if error.line:
        place["region"] = {"startLine": error.line}
    return {
        "level": level,
        "message": {"text": error.message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    return urllib.parse.quote(os.fsencode(path.replace(os.sep, "/")))
