"""Every file of `tests/data` is in its manifest, and was recorded as that says."""

import fnmatch
import functools
import itertools
import json
import re
from typing import Dict, Iterator, List, NamedTuple

import pytest
from documents import ROOT, config

from tf_lossscale._records.reading import read_record

DATA = ROOT / "tests" / "data"
RECORDERS = DATA / "recorders"
MANIFEST = "README.md"


class Row(NamedTuple):
    """A row of the manifest."""

    patterns: List[str]
    command: str
    tensorflow: str
    python: str
    keras: str
    reader: str


def rows(text: str) -> List[Row]:
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            patterns = [
                pattern for cell in re.findall(r"`([^`]+)`", cells[0]) for pattern in expanded(cell)
            ]
            found.append(Row(patterns, *[cell.strip("`") for cell in cells[1:]]))
    return found


def expanded(pattern: str) -> Iterator[str]:
    """`a{b,c}` is `ab` and `ac`; a directory stands for what is in it."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    for words in itertools.product(*choices):
        yield "".join(words)


def matches(row: Row, path: str) -> bool:
    """Whether a file is named, or a directory that it is in: `*` does not go beyond a slash."""
    for pattern in row.patterns:
        wanted, parts = pattern.split("/"), path.split("/")
        if len(wanted) <= len(parts) and all(map(fnmatch.fnmatchcase, parts, wanted)):
            return True
    return False


@functools.lru_cache(maxsize=None)
def data_files() -> List[str]:
    return [
        path.relative_to(DATA).as_posix()
        for path in sorted(DATA.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def manifest() -> List[Row]:
    return rows((DATA / MANIFEST).read_text(encoding="utf-8"))


def recorded_files() -> List[str]:
    return [file for file in data_files() if file != MANIFEST and "recorders/" not in file]


def wrong_files(table: List[Row], paths: List[str]) -> List[str]:
    """Files that are in no row, or in several, and rows without files."""
    wrong = []
    for path in paths:
        count = len([row for row in table if matches(row, path)])
        if count != 1:
            wrong.append(f"{path} is in {count} rows")
    for row in table:
        if not any(matches(row, path) for path in paths):
            wrong.append(f"{row.patterns[0]} names no file")
    return wrong


def wrong_versions(row: Row, facts: Dict[str, str]) -> List[str]:
    """What a recording says of its TensorFlow, Python, Keras and mode, beside what its row says."""
    wrong = []
    for key, stated in (("tf", row.tensorflow), ("python", row.python), ("keras", row.keras)):
        if facts.get(key, "") != stated:
            wrong.append(f"{key} is {facts.get(key)} and not {stated}")
    if "mode" in facts and row.command.split()[-1] not in (facts["mode"], "k3"):
        wrong.append(f"mode is {facts['mode']}")
    return wrong


def test_every_file_is_in_one_row():
    assert wrong_files(manifest(), recorded_files()) == []


def test_the_recordings_are_of_the_versions_that_are_stated():
    wrong, seen = [], 0
    for path in recorded_files():
        if path.endswith("expected.json") or path.startswith(("golden/", "messages/")):
            facts = json.loads((DATA / path).read_text(encoding="utf-8"))
            row = next(row for row in manifest() if matches(row, path))
            wrong += [f"{path}: {problem}" for problem in wrong_versions(row, facts)]
            seen += 1
    assert wrong == []
    assert seen > 200


@pytest.mark.parametrize("name", ["digits_graph", "digits_keras"])
def test_the_records_of_the_demo_can_be_read(name):
    path = str(ROOT / "examples" / "traces" / f"{name}.jsonl")
    assert len(read_record(path).optimizers[0].steps) == 120


def test_versions_that_no_file_holds_are_those_of_the_environments():
    pins = dict(
        re.findall(r"tf([\d.]+): tensorflow\S*==([\d.]+)", config("tox.ini")["testenv"]["deps"])
    )
    checked = [row for row in manifest() if row.patterns[0].startswith("programs/recorded-")]
    for row in checked:
        assert row.tensorflow == pins[re.findall(r"-(\d\.\d+)\.json", row.patterns[0])[0]]
    assert len(checked) == 3


def test_every_recorder_is_there():
    for row in manifest():
        words = row.command.split()
        if words[:1] == ["python"]:
            assert (ROOT / words[1]).is_file() or (RECORDERS / words[1]).is_file(), row.command
