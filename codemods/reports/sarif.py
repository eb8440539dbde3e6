"""SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, Union

from tf_lossscale._about import HOME, VERSION

from ..files.printable import visible
from ..model import FileError, Finding, Replacement, Safety
from ..rules.codes import Code, codes
from ..run.results import FileOutcome, Summary
from .json_ import write_list

__all__ = ["write"]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


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
        "toolExecutionNotifications": [
            _notification(*problem) for outcome in outcomes for problem in outcome.problems
        ],
        "toolConfigurationNotifications": [
            _notification("warning", warning) for warning in summary.keras.warnings
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
    stream.write('"results": ')
    write_list(_results(outcomes, index), stream)
    stream.write("}]}\n")


def _rule(rule: Code) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.code,
        "shortDescription": {"text": rule.words},
        "fullDescription": {"text": rule.rule.summary},
        "help": {"text": rule.text},
    }
    if HOME:
        described["helpUri"] = f"{HOME}/blob/main/docs/rules/{rule.rule.slug}.md"
    return described


def _results(outcomes: Iterable[FileOutcome], index: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Yields the findings; the first one of a file that is applied has all edits of the file."""
    for outcome in outcomes:
        fixes = _fixes(outcome) if outcome.replacements else []
        for finding in outcome.findings:
            result = _result(finding, index)
            if finding.applied and fixes:
                result["fixes"], fixes = fixes, []
            yield result


def _result(finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    """A finding without its edits; `index` has the positions of the rules by their code."""
    properties: dict[str, Any] = {"outcome": finding.outcome.value, "applied": finding.applied}
    if finding.cell is not None:
        properties.update(cell=finding.cell, cellLine=finding.cell_line)
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": "note" if finding.outcome is Safety.SAFE else "warning",
        "message": {"text": f"{finding.symbol}: {finding.full_message}"},
        "locations": [_location(finding.path, _region(finding))],
        "properties": properties,
    }
    if finding.code in index:
        result["ruleIndex"] = index[finding.code]
    return result


def _fixes(outcome: FileOutcome) -> list[dict[str, Any]]:
    """One fix with all edits of the file, such as the imports that several findings need."""
    change = {
        "artifactLocation": {"uri": _uri(outcome.path)},
        "replacements": [
            {"deletedRegion": _region(replacement), "insertedContent": {"text": replacement.text}}
            for replacement in outcome.replacements
        ],
    }
    return [{"description": {"text": "Apply all edits of this file"}, "artifactChanges": [change]}]


def _region(place: Union[Finding, Replacement]) -> dict[str, int]:
    region = {
        "startLine": max(place.line, 1),
        "startColumn": max(place.column, 1),
        "endLine": max(place.end_line, place.line, 1),
        "endColumn": place.end_column,
    }
    return {key: number for key, number in region.items() if number}


def _location(path: str, region: dict[str, int]) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    return {"physicalLocation": {**place, "region": region} if region else place}


def _notification(level: str, error: FileError) -> dict[str, Any]:
    region = {"startLine": error.line} if error.line else {}
    return {
        "level": level,
        "message": {"text": error.message},
        "locations": [_location(error.path, region)],
    }


def _uri(path: str) -> str:
    return urllib.parse.quote(os.fsencode(path.replace(os.sep, "/")))
