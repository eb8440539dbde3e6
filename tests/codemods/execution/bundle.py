"""The programs of the proof with their migrations, as the file that every environment runs.

    python -m execution --count 300 --out FOLDER

TensorFlow 1.15 needs Python 3.7 and the codemods need 3.9, so migrating and running cannot happen
in one interpreter. The bundle is the bridge; `test_bundle.py` fails when the rules have moved on.
"""

from __future__ import annotations

import gzip
import json
import pathlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from tf_lossscale_codemods.model import Safety

from .file_migration import ARGUMENTS, migrated_files
from .file_programs import file_programs
from .graph_programs import (
    contrib_program,
    cross_shard_program,
    graph_trap_program,
    v1_program,
)
from .guard_programs import guard_programs
from .keras_programs import keras_program, trap_program
from .leftovers import leftovers
from .migration import STAGES, Migrated, migrated, migrated_source
from .program import Program

BUNDLE = pathlib.Path(__file__).resolve().parents[2] / "data" / "programs"
COUNT = 420
GUARDS = 277
"""The bundle contains each 277th program with a version guard."""
FILES = 96
"""How many programs of several files the bundle contains."""
SEED = 20200512
SHARES = (
    (keras_program, 40),
    (trap_program, 15),
    (contrib_program, 18),
    (v1_program, 14),
    (graph_trap_program, 8),
    (cross_shard_program, 5),
)
"""How many of a hundred programs each grammar writes."""


def programs(count: int) -> Iterator[Program]:
    """The first `count` programs, always the same ones, shared out over the grammars."""
    for write, share in SHARES:
        for number in range(count * share // 100):
            yield write(SEED, number)


def bundled(program: Program) -> dict[str, Any]:
    """One line of the bundle."""
    results = {stage: migrated(program, stage) for stage in sorted(program.expects)}
    return {
        "name": program.name,
        "family": program.family,
        "original": program.original,
        "before": program.source,
        "after": {stage: result.source for stage, result in results.items()},
        # What the migration leaves to a person runs as before only where the originals are.
        "left": {stage: left_to_a_person(result) for stage, result in results.items()},
        "ignores": {stage: list(keys) for stage, keys in program.ignores.items()},
    }


def left_to_a_person(result: Migrated) -> list[str]:
    """Legacy names and reported places that the migration did not touch."""
    manual = [each.code for each in result.findings if each.outcome is Safety.MANUAL]
    return sorted({*leftovers(result.source), *manual})


def write_bundle(folder: pathlib.Path, count: int) -> int:
    """Writes both bundles into the folder; returns the number of programs without guards."""
    lines = [bundled(program) for program in programs(count)]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "bundle.jsonl.gz", lines)
    _write(folder / "guards.jsonl.gz", bundled_guards())
    _write(folder / "files.jsonl.gz", bundled_files())
    return len(lines)


def bundled_guards(every: int = 1) -> Iterator[dict[str, Any]]:
    """Every `every`-th line of the bundle of programs with version guards."""
    for program in guard_programs(every * GUARDS):
        results = {stage: migrated_source(program.source, stage) for stage in STAGES}
        yield {
            "name": program.name,
            "is_guard": program.is_guard,
            "before": program.source,
            "after": {stage: result.source for stage, result in results.items()},
            "is_left": {
                stage: any(finding.is_left for finding in result.findings)
                for stage, result in results.items()
            },
        }


def bundled_files(count: int = FILES) -> list[dict[str, Any]]:
    """The first `count` lines of the bundle of programs of several files."""
    made = list(file_programs(count))
    lines: list[dict[str, Any]] = [
        {**program._asdict(), "after": {}, "left": {}, "unsafe": {}} for program in made
    ]
    for stage in ARGUMENTS:
        with tempfile.TemporaryDirectory() as folder:
            migrated_here = migrated_files(made, stage, pathlib.Path(folder))
        for line in lines:
            result = migrated_here[line["name"]]
            line["after"][stage], line["left"][stage], line["unsafe"][stage] = result
    as_read: list[dict[str, Any]] = json.loads(json.dumps(lines))  # JSON turns tuples into lists
    return as_read


def _write(path: pathlib.Path, lines: Iterable[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.encode())


def read_bundle(name: str) -> list[dict[str, Any]]:
    """The lines of the bundle of programs, "bundle", of those with "guards", or of "files"."""
    with gzip.open(BUNDLE / f"{name}.jsonl.gz", "rt", encoding="utf-8") as packed:
        return [json.loads(line) for line in packed]
