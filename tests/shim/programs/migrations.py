"""What the command makes of the programs, as text: `=== NAME`, properties, and edits.

For each program there is the key of its sources, so that no stale result is ever used; what is left
of it; and after `--- STAGE STAGE` the edits that these stages make, below `+++ FILE` for a program
of several files. `make programs` writes the text, and a reviewer reads in its diff what a change of
the rules changes.
"""

import json
import os
from typing import Any, Dict, Iterable, Iterator, List, Tuple

from programs.edits import Hunk, edited, edits_between, read_hunk

PROGRAM, STAGES, FILE, HUNK = "=== ", "--- ", "+++ ", "@@ "
PROPERTIES = ("is_left", "left", "unsafe")
"""What the migration gives besides the edits, each by stage."""

Program = Dict[str, Any]
Sources = Dict[str, str]
Edits = Dict[str, List[Hunk]]
"""The hunks of each file; the name of the only file of a program is empty."""


class Migration:
    """What the stages make of one program."""

    def __init__(self):
        self.properties = {}  # type: Dict[str, Any]
        self.stages = []  # type: List[Tuple[List[str], Edits]]

    def applied_to(self, program: Program) -> Program:
        """Returns the properties of a migrated program, with its source or sources by stage."""
        after = {}
        for stages, edits in self.stages:
            sources = {
                name: edited(source, edits.get(name, [])) for name, source in sources_of(program)
            }
            for stage in stages:
                after[stage] = dict(sources) if "files" in program else sources[""]
        return dict(self.properties, after=after)


def sources_of(program: Program) -> List[Tuple[str, str]]:
    """Returns the files of a program; the only one of a program has no name."""
    if "files" in program:
        return list(program["files"].items())
    return [("", program["before"])]


def read_migrations(path: str) -> Dict[str, Migration]:
    """Returns the migrations in a file, by the key of the program."""
    with open(path, encoding="utf-8", newline="\n") as text:
        lines = text.read().split("\n")
    found = {}  # type: Dict[str, Migration]
    migration, edits, hunks = Migration(), {}, []  # type: Migration, Edits, List[Hunk]
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if line.startswith(PROGRAM):
            migration = Migration()
        elif line.startswith(STAGES):
            hunks = []
            edits = {"": hunks}
            migration.stages.append((line[len(STAGES) :].split(), edits))
        elif line.startswith(FILE):
            hunks = edits.setdefault(line[len(FILE) :], [])
        elif line.startswith(HUNK):
            hunk, place = read_hunk(lines, place - 1)
            hunks.append(hunk)
        elif line:
            name, _, value = line.partition(": ")
            if name == "key":
                found[json.loads(value)] = migration
            else:
                migration.properties[name] = json.loads(value)
    return found


def write_migrations(path: str, programs: Iterable[Tuple[str, Program]]):
    """Writes migrated programs, each with its key."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="\n") as text:
        for key, program in programs:
            text.write("\n".join(_lines_of(key, program)) + "\n")


def _lines_of(key: str, program: Program) -> Iterator[str]:
    yield PROGRAM + program["name"]
    yield "key: " + json.dumps(key)
    for name in PROPERTIES:
        if name in program:
            yield f"{name}: {json.dumps(program[name], sort_keys=True)}"
    for stages, after in _alike(program["after"]):
        yield STAGES + " ".join(stages)
        for name, source in sources_of(program):
            edits = list(edits_between(source, after[name] if name else after))
            if edits and name:
                yield FILE + name
            yield from edits


def _alike(after: Dict[str, Any]) -> Iterator[Tuple[List[str], Any]]:
    """Yields each result once, with the stages that make it."""
    stages = sorted(after)
    while stages:
        result = after[stages[0]]
        alike = [stage for stage in stages if after[stage] == result]
        yield alike, result
        stages = [stage for stage in stages if stage not in alike]
