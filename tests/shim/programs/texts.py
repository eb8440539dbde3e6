"""Programs as text: `=== NAME`, a line for each property, and the files after `--- FILE`.

A property is its name, a colon and a value in JSON. Whoever adds a program writes text, and reviews
text. What the migration makes of a program is packed beside it, under a key of its files: it is no
source, and `make programs` makes it again. The random packages are made by their generator.
"""

import gzip
import hashlib
import json
import os
from typing import Any, Dict, Iterable, List

from programs import packages

PACKAGES = "packages"
FOLDER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data", "programs"
)
KINDS = ("bundle", "guards", "files", PACKAGES)
"""Programs of one file, those with a version guard, those of several files, random packages."""
RESULTS = ("after", "is_left", "left", "unsafe")
"""The properties that the migration gives, rather than the text."""
PROGRAM, FILE = "=== ", "--- "


def read_programs(kind: str = "bundle") -> List[Dict[str, Any]]:
    """The programs of a kind, with what the migration made of them."""
    migrated = read_packed(_results_of(kind))
    programs = packages.programs() if kind == PACKAGES else []
    for name in sorted(os.listdir(os.path.join(FOLDER, kind))) if kind != PACKAGES else ():
        with open(os.path.join(FOLDER, kind, name), encoding="utf-8") as text:
            programs += parsed(text)
    return [dict(program, **migrated.get(key_of_program(program), {})) for program in programs]


def write_results(kind: str, programs: Iterable[Dict[str, Any]]) -> None:
    """Packs what the migration made of all programs of a kind."""
    results = {
        key_of_program(program): {name: program[name] for name in RESULTS if name in program}
        for program in programs
    }
    write_packed(_results_of(kind), results)


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


def write_packed(name: str, results: Dict[str, Dict[str, Any]]) -> None:
    """Writes results, by key, to a file of the folder that is the same for the same results."""
    with open(os.path.join(FOLDER, name), "wb") as raw, gzip.GzipFile(
        "", "wb", 9, raw, mtime=0
    ) as packed:
        packed.write(json.dumps(results, sort_keys=True).encode())


def _results_of(kind: str) -> str:
    return f"migrated-{kind}.json.gz"


def read_packed(name: str) -> Dict[str, Dict[str, Any]]:
    with gzip.open(os.path.join(FOLDER, name), "rt", encoding="utf-8") as packed:
        found = json.load(packed)  # type: Dict[str, Dict[str, Any]]
    return found
