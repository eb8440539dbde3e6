"""Programs of several files, migrated as one run."""

import json
import textwrap
from typing import Dict, NamedTuple


class Migrated(NamedTuple):
    """The sources afterwards, by file, and the findings as `file:line CODE outcome`."""

    sources: Dict[str, str]
    findings: list
    status: int
    messages: str


def write(command_line, files: Dict[str, str]) -> Dict[str, str]:
    sources = {name: textwrap.dedent(text) for name, text in files.items()}
    for name, text in sources.items():
        command_line.path(name).write_text(text)
    return sources


def migrate(command_line, files: Dict[str, str], *options: str) -> Migrated:
    """Writes the files, migrates the directory, and reads them again; a second run is the same."""
    write(command_line, files)
    argv = ["migrate", ".", "--write", "--allow-dirty", "--report", "json", *options]
    if not {"--keras", "--to"} & set(options):
        argv += ["--keras", "2"]
    ran = command_line.run(*argv)
    report = json.loads(ran.out)
    assert not report["errors"], report["errors"]
    after = {name: command_line.path(name).read_text() for name in files}
    command_line.run(*argv)
    assert after == {name: command_line.path(name).read_text() for name in files}
    findings = [
        f"{finding['path']}:{finding['line']} {finding['code']} {finding['outcome']}"
        for finding in report["findings"]
    ]
    messages = "\n".join(finding["message"] for finding in report["findings"])
    return Migrated(after, findings, ran.status, messages)


def migrate_all(command_line, cases: Dict[str, Dict[str, str]], *options: str) -> Dict[str, dict]:
    """Migrates several programs in one run, each in a folder of its own; their sources afterwards.

    One run for all costs a tenth of one for each.
    """
    folders = {case: f"case{number}" for number, case in enumerate(cases)}
    files = {
        f"{folders[case]}/{name}": text
        for case, sources in cases.items()
        for name, text in sources.items()
    }
    after = migrate(command_line, files, *options).sources
    return {
        case: {name: after[f"{folders[case]}/{name}"] for name in sources}
        for case, sources in cases.items()
    }
