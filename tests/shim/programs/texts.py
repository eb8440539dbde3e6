"""Programs as text: `=== NAME`, a line for each property, and the files after `--- FILE`.

A property is its name, a colon and a value in JSON. Whoever adds a program writes text, and reviews
text. What the migration makes of it is text, too, in `migrated/`: the edits, which `make programs`
writes. The random packages are made by their generator, and only their edits are kept.
"""

import gzip
import hashlib
import json
import os
from typing import Any, Dict, Iterable, List

from programs import packages
from programs.migrations import read_migrations, write_migrations

PACKAGES = "packages"
FOLDER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data", "programs"
)
KINDS = ("bundle", "guards", "files", PACKAGES)
"""Programs of one file, those with a version guard, those of several files, random packages."""
PROGRAM, FILE = "=== ", "--- "


def read_programs(kind: str = "bundle") -> List[Dict[str, Any]]:
    """The programs of a kind, with what the migration made of them."""
    migrations = read_migrations(_migrations_of(kind))
    programs = packages.programs() if kind == PACKAGES else []
    for name in sorted(os.listdir(os.path.join(FOLDER, kind))) if kind != PACKAGES else ():
        with open(os.path.join(FOLDER, kind, name), encoding="utf-8") as text:
            programs += parsed(text)
    for program in programs:
        migration = migrations.get(key_of_program(program))
        if migration is not None:  # a new program has none until `make programs`
            program.update(migration.applied_to(program))
    return programs


def write_results(kind: str, programs: Iterable[Dict[str, Any]]):
    """Writes what the migration made of all programs of a kind."""
    write_migrations(
        _migrations_of(kind), [(key_of_program(program), program) for program in programs]
    )


def parsed(lines: Iterable[str]) -> List[Dict[str, Any]]:
    """The programs in a text; one of a single file has its source as `before`."""
    programs = []  # type: List[Dict[str, Any]]
    files = {}  # type: Dict[str, List[str]]
    source = None
    for line in lines:
        if line.startswith(PROGRAM):
            files, source = {}, None
            programs.append({"name": line[len(PROGRAM) :].strip(), "files": files})
        elif line.startswith(FILE):
            source = files.setdefault(line[len(FILE) :].strip(), [])
        elif source is not None:
            source.append(line)
        else:
            name, _, value = line.partition(":")
            programs[-1][name] = json.loads(value)
    for program in programs:
        sources = {name: "".join(found) for name, found in program.pop("files").items()}
        if "originals" in program:
            program["files"] = sources
        else:
            (program["before"],) = sources.values()
    return programs


def key_of_program(program: Dict[str, Any]) -> str:
    """What results are filed under: the sources, so that no stale one is ever found."""
    return key_of_files(program["files"]) if "files" in program else key_of(program["before"])


def key_of_files(files: Dict[str, str]) -> str:
    """What a result of several files is filed under."""
    return key_of(json.dumps(files, sort_keys=True))


def key_of(source: str) -> str:
    """What a result is filed under: the program's text, so that no stale one is ever found."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def write_packed(name: str, results: Dict[str, Dict[str, Any]]):
    """Writes results, by key, to a file of the folder that is the same for the same results."""
    with open(os.path.join(FOLDER, name), "wb") as raw, gzip.GzipFile(
        "", "wb", 9, raw, mtime=0
    ) as packed:
        packed.write(json.dumps(results, sort_keys=True).encode())


def _migrations_of(kind: str) -> str:
    return os.path.join(FOLDER, "migrated", kind + ".txt")


def read_packed(name: str) -> Dict[str, Dict[str, Any]]:
    with gzip.open(os.path.join(FOLDER, name), "rt", encoding="utf-8") as packed:
        found = json.load(packed)  # type: Dict[str, Dict[str, Any]]
    return found
