"""Migrates programs of several files, all of them in one run of the command."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tf_lossscale_codemods.cli.command import main

from .file_programs import FileProgram

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "shim": ("--to", "shim"),
    "final2": ("--keras", "2"),
    "final3": ("--keras", "3"),
    "unsafe2": ("--keras", "2", "--unsafe"),
    "unsafe3": ("--keras", "3", "--unsafe"),
}
"""The options of each stage."""


class MigratedFiles(NamedTuple):
    """The sources after the edits; what is left to a person or to `--unsafe`, and what it applied.

    The latter as `file:line CODE`.
    """

    files: dict[str, str]
    left: list[str]
    unsafe: list[str]


def migrated_files(
    programs: Iterable[FileProgram], stage: str, folder: pathlib.Path
) -> dict[str, MigratedFiles]:
    """Every program after one stage, by name. Each has a directory of its own below `folder`."""
    programs = list(programs)
    for program in programs:
        (folder / program.name).mkdir(parents=True)
        for name, source in program.files.items():
            (folder / program.name / name).write_text(source, encoding="utf-8")
    report = folder / "report.json"
    arguments = [
        "migrate",
        str(folder),
        "--write",
        "--allow-dirty",
        "--no-settings",
        *ARGUMENTS[stage],
    ]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(
        io.StringIO()
    ) as said:
        status = main([*arguments, "--report", f"json:{report}"])
    if status not in (0, 1):
        raise ValueError(f"{stage}: {said.getvalue()}")
    findings: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads(report.read_text(encoding="utf-8"))["findings"]:
        findings.setdefault(pathlib.PurePath(one["path"]).parts[-2], []).append(one)
    return {
        program.name: MigratedFiles(
            {
                name: (folder / program.name / name).read_text(encoding="utf-8")
                for name in program.files
            },
            [_place(one) for one in findings.get(program.name, ()) if _is_left(one)],
            [
                _place(one)
                for one in findings.get(program.name, ())
                if one["applied"] and one["outcome"] == "unsafe"
            ],
        )
        for program in programs
    }


def _is_left(finding: Mapping[str, Any]) -> bool:
    return not finding["applied"] and finding["outcome"] != "safe"


def _place(finding: Mapping[str, Any]) -> str:
    return f"{pathlib.PurePath(finding['path']).name}:{finding['line']} {finding['code']}"
