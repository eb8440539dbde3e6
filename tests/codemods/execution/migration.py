"""Moves programs through the command, stage by stage, and says what came of them."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tf_lossscale_codemods.cli.command import main
from tf_lossscale_codemods.model import Finding, Options, Safety, Target
from verbs import transform_once as transform

from .leftovers import leftovers

STAGES: Mapping[str, Options] = {
    "shim": Options(target=Target.SHIM),
    "final2": Options(target=Target.FINAL, keras=2),
    "final3": Options(target=Target.FINAL, keras=3),
    "unsafe2": Options(target=Target.FINAL, keras=2, unsafe=True),
    "unsafe3": Options(target=Target.FINAL, keras=3, unsafe=True),
}


class Migrated(NamedTuple):
    """What one stage made of a program: its source after the edits, and what was found."""

    source: str
    findings: tuple[Finding, ...]


@functools.lru_cache(maxsize=None)
def migrated(source: str, stage: str) -> Migrated:
    """A source after one stage.

    Raises:
      ValueError: if the engine cannot process it.
    """
    result = transform(source.encode(), STAGES[stage])
    if result.error is not None:
        raise ValueError(f"{stage}: {result.error}\n{source}")
    return Migrated(result.source.decode(), result.findings)


def complaints(source: str, stage: str, expected: str) -> list[str]:
    """What is wrong with a migration before anything is run; empty when all is well.

    Args:
      source: the program.
      stage: one of `STAGES`.
      expected: "rewritten" if every legacy name must go, safely; "manual" if a place must be left
        and reported; "any" where it only counts that the program still computes the same.
    """
    result, wrong = migrated(source, stage), []
    left = [finding for finding in result.findings if finding.is_left]
    again = migrated(result.source, stage)
    if again.source != result.source:
        wrong.append("a second run changes it again")
    new = {finding.code for finding in again.findings if finding.is_left} - {
        finding.code for finding in left
    }
    new |= {finding.code for finding in again.findings if finding.applied}
    wrong += [f"a second run adds {code}" for code in sorted(new)]
    if expected == "rewritten":
        # An unsafe rewrite that this stage does not apply is an offer, not something left.
        left = [finding for finding in left if finding.outcome is not Safety.UNSAFE]
        wrong += [
            f"left: {finding.code} {finding.outcome.value} {finding.message}" for finding in left
        ]
        wrong += [f"still used: {path}" for path in leftovers(result.source)]
        wrong += ["nothing was rewritten"] if result.source == source else []
    reported = [finding for finding in result.findings if not finding.applied]
    if expected == "any" and not reported and leftovers(result.source):
        wrong.append(f"neither rewritten nor reported: {leftovers(result.source)}")
    if expected == "manual" and not any(finding.outcome is Safety.MANUAL for finding in left):
        wrong.append("nothing was reported as manual")
    return wrong


def migrated_anew(name: str, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a bundle, with what the rules make of their programs today."""
    migrate_one = {"bundle": _program, "guards": _guard}.get(name)
    return list(map(migrate_one, lines) if migrate_one else _programs_of_several_files(lines))


def _program(line: dict[str, Any]) -> dict[str, Any]:
    results = {stage: migrated(line["before"], stage) for stage in sorted(line["expects"])}
    return {
        **line,
        "after": {stage: result.source for stage, result in results.items()},
        # What the migration leaves to a person runs as before only where the originals are.
        "left": {stage: _left_to_a_person(result) for stage, result in results.items()},
    }


def _left_to_a_person(result: Migrated) -> list[str]:
    """Legacy names and reported places that the migration did not touch."""
    manual = [finding.code for finding in result.findings if finding.outcome is Safety.MANUAL]
    return sorted({*leftovers(result.source), *manual})


def _guard(line: dict[str, Any]) -> dict[str, Any]:
    results = {stage: migrated(line["before"], stage) for stage in STAGES}
    return {
        **line,
        "after": {stage: result.source for stage, result in results.items()},
        "is_left": {
            stage: any(finding.is_left for finding in result.findings)
            for stage, result in results.items()
        },
    }


def _programs_of_several_files(lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All programs in one run for each stage, each in a directory of its own."""
    lines = [{**line, "after": {}, "left": {}, "unsafe": {}} for line in lines]
    for stage, options in STAGES.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            for line in lines:
                for name, source in line["files"].items():
                    path = folder / line["name"] / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(source, encoding="utf-8")
            findings = _written(folder, options)
            for line in lines:
                here = folder / line["name"]
                line["after"][stage] = {name: (here / name).read_text() for name in line["files"]}
                mine = findings.get(line["name"], ())
                line["left"][stage] = [
                    _place(finding)
                    for finding in mine
                    if not finding["applied"] and finding["outcome"] != "safe"
                ]
                line["unsafe"][stage] = [
                    _place(finding)
                    for finding in mine
                    if finding["applied"] and finding["outcome"] == "unsafe"
                ]
    yield from lines


def _written(folder: pathlib.Path, options: Options) -> dict[str, list[dict[str, Any]]]:
    """Migrates the files below a folder; the findings by the name of their directory."""
    argv = ["migrate", str(folder), "--write", "--allow-dirty", "--no-settings"]
    argv += ["--to", "shim"] if options.target is Target.SHIM else ["--keras", str(options.keras)]
    argv += ["--unsafe"] if options.unsafe else []
    report, said = folder / "report.json", io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = main([*argv, "--report", f"json:{report}"])
    if status not in (0, 1):
        raise ValueError(f"{argv}: {said.getvalue()}")
    found: dict[str, list[dict[str, Any]]] = {}
    for finding in json.loads(report.read_text(encoding="utf-8"))["findings"]:
        below = os.path.relpath(os.path.abspath(finding["path"]), os.path.abspath(folder))
        found.setdefault(pathlib.PurePath(below).parts[0], []).append(finding)
    return found


def _place(finding: Mapping[str, Any]) -> str:
    return f"{pathlib.PurePath(finding['path']).name}:{finding['line']} {finding['code']}"
