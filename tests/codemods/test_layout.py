"""Each folder of the codemods imports only what the table in CONTRIBUTING.md lets it import."""

import ast
import functools
import pathlib
import re
from typing import Dict, Iterator, List, Set

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODEMODS = ROOT / "codemods"
PACKAGES = {"__init__.py", "rules/__init__.py"}
"""Which hold a docstring only."""


@functools.lru_cache(maxsize=None)
def table() -> Dict[str, Set[str]]:
    """Each row of the table: a folder or file, and what it may import. Names in file order."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.split("## The folders of `codemods/`")[1].split("\n## ")[0]
    rows = [line.strip().strip("|").split("|") for line in section.splitlines() if "`" in line]
    found: Dict[str, Set[str]] = {}
    for cells in rows:
        if len(cells) == 3:
            for name in re.findall(r"`([^`]+)`", cells[0]):
                found[name] = set(re.findall(r"`([^`]+)`", cells[2]))
    del found["codemods/"]  # the head
    return found


def imports(file: pathlib.Path) -> Iterator[str]:
    """What a module imports of the codemods, at its top or later: paths below `codemods/`."""
    package = list(file.relative_to(CODEMODS).parent.parts)
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) + 1 - node.level]
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                yield path_of([*base, alias.name]) or path_of(base)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            assert "tf_lossscale_codemods" not in ast.dump(node), (file, names)


def path_of(parts: List[str]) -> str:
    """The file of a module or package; empty where there is none."""
    path = CODEMODS.joinpath(*parts)
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.exists():
            return file.relative_to(CODEMODS).as_posix()
    return ""


@functools.lru_cache(maxsize=None)
def graph() -> Dict[str, Set[str]]:
    files = CODEMODS.rglob("*.py")
    return {file.relative_to(CODEMODS).as_posix(): set(imports(file)) for file in files}


def is_in(path: str, name: str) -> bool:
    return path.startswith(name) if name.endswith("/") else path == name


def test_the_graph_is_drawn_from_every_kind_of_import(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.CODEMODS", tmp_path)
    for name in ("__init__.py", "a/__init__.py", "a/b.py", "c/__init__.py", "c/d.py", "e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "a" / "b.py").write_text(
        "from ..c import d\ndef late():\n    from .. import e\n    from .b import itself\n"
    )
    assert graph.__wrapped__()["a/b.py"] == {"c/d.py", "e.py", "a/b.py"}


def test_every_module_has_a_row():
    for path in graph():
        if path not in PACKAGES:
            assert [name for name in table() if is_in(path, name)], path


def test_every_row_has_modules_and_names_rows_above_it():
    above: List[str] = []
    for name, allowed in table().items():
        assert (CODEMODS / name).exists(), name
        for each in allowed:
            assert any(is_in(earlier, each) for earlier in above), (name, each)
        above.append(name)


@pytest.mark.parametrize("name", table())
def test_imports_only_what_its_row_allows(name):
    rows = table()
    upward = [
        (path, each)
        for path, imported in graph().items()
        for each in imported - PACKAGES
        if is_in(path, name) and not any(is_in(each, one) for one in (name, *rows[name]))
    ]
    assert not upward


@pytest.mark.parametrize("name", table())
def test_what_its_row_allows_is_imported(name):
    imported = {each for path, those in graph().items() if is_in(path, name) for each in those}
    for allowed in table()[name]:
        assert any(is_in(each, allowed) for each in imported), (name, allowed)


def test_no_module_imports_itself_by_way_of_others():
    edges = {path: {one for one in those if one != path} for path, those in graph().items()}
    left = dict(edges)
    while True:
        leaves = [path for path, those in left.items() if not those & set(left)]
        if not leaves:
            break
        for path in leaves:
            del left[path]
    assert not left, "a circle of imports goes through these"
