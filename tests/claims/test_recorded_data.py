"""Every file of `tests/data` is in its manifest, was recorded as that says, and feeds a test."""

import ast
import fnmatch
import functools
import importlib.util
import itertools
import json
import os
import pathlib
import re
import sys
from typing import Dict, Iterator, List, NamedTuple, Set

import pytest
from documents import ROOT
from test_versions import config

from tf_lossscale._recording.reading import read_record

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
                each for one in re.findall(r"`([^`]+)`", cells[0]) for each in expanded(one)
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
    return [each for each in data_files() if each != MANIFEST and "recorders/" not in each]


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
            wrong += [f"{path}: {each}" for each in wrong_versions(row, facts)]
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


def imported_by(path) -> Set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)}


def test_every_recorder_is_there_and_records_something():
    used = set()
    for row in manifest():
        words = row.command.split()
        if words[:1] == ["python"]:
            assert (ROOT / words[1]).is_file() or (RECORDERS / words[1]).is_file(), row.command
            used.add(words[1])
    scripts = {path.name for path in RECORDERS.glob("*.py")}
    for name in scripts & used:
        used |= {f"{each}.py" for each in imported_by(RECORDERS / name)}
    for name in scripts & used:  # a helper of a helper
        used |= {f"{each}.py" for each in imported_by(RECORDERS / name)}
    assert scripts <= used


@pytest.fixture
def fixture_files(monkeypatch):
    """The module by which the tests of the checkpoint command find the fixtures."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "shim"))
    path = ROOT / "tests" / "shim" / "checkpoint" / "recorded_files.py"
    spec = importlib.util.spec_from_file_location("fixture_files", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fixture_files", module)
    spec.loader.exec_module(module)
    return module


def test_every_fixture_is_read(fixture_files):
    """`test_inspect.py` shows each file of `all_files` and each SavedModel of `saved_models`."""
    test = (ROOT / "tests/shim/checkpoint/test_inspect.py").read_text(encoding="utf-8")
    assert "recorded_files.all_files()" in test
    assert "recorded_files.saved_models()" in test
    read = set(fixture_files.all_files())
    for path in fixture_files.all_files():  # of a checkpoint the prefix
        read |= {
            str(each) for each in pathlib.Path(path).parent.glob(pathlib.Path(path).name + ".*")
        }
    for folder in [*filter(os.path.isdir, read), *fixture_files.saved_models()]:
        read |= {str(each) for each in pathlib.Path(folder).rglob("*")}
    fixtures = [str(DATA / each) for each in recorded_files() if each.startswith("fixtures/")]
    facts = [each for each in fixtures if each.endswith("expected.json")]
    assert sorted(set(fixtures) - read - set(facts)) == []
    for each in facts:
        assert any(one.startswith(os.path.dirname(each) + os.sep) for one in read), each


@pytest.mark.parametrize("row", manifest(), ids=lambda row: row.patterns[0])
def test_every_other_file_is_named_where_it_is_read(row):
    reader = (ROOT / row.reader).read_text(encoding="utf-8")
    folder, _, name = row.patterns[0].rpartition("/")
    if folder.startswith("fixtures"):
        assert '"fixtures"' in reader
        return
    stem = name.partition(".json")[0].partition("-")[0]  # `recorded-1.15`: by version
    assert re.search(rf"""["'/]{re.escape(stem)}(\.json|["'.-])""", reader), name


@pytest.mark.parametrize(
    "line",
    [
        "| `golden/*` | `python golden.py v1 graph` | 1.15.5 | | | `x.py` |",
        "| `golden/not_there.json` | `python golden.py v1 graph` | 1.15.5 | | | `x.py` |",
    ],
)
def test_a_wrong_row_is_found(line):
    assert wrong_files([*manifest(), *rows(line)], recorded_files())


def test_a_file_without_a_row_is_found():
    assert wrong_files(manifest(), [*recorded_files(), "golden/v2.json"])


def test_a_wrong_version_is_found():
    (row,) = rows("| `golden/a.json` | `python golden.py v1 graph` | 1.15.5 | 3.7.16 | | `x.py` |")
    assert wrong_versions(row, {"tf": "1.15.5", "python": "3.7.16", "mode": "graph"}) == []
    assert wrong_versions(row, {"tf": "2.15.5", "python": "3.7.16", "mode": "graph"})
    assert wrong_versions(row, {"tf": "1.15.5", "python": "3.7.16", "mode": "eager"})
