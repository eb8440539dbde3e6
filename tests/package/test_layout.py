"""Each folder of both packages imports only folders above it in its table in CONTRIBUTING.md."""

import ast
import functools
import pathlib
import re
from typing import Dict, Iterator, List, Set, Tuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Package:
    """The source of a package, and its table.

    Args:
      folder: name of its folder, which is also in the heading and in the head of the table.
      name: the name that it is imported by. If it differs, the modules do not use it themselves.
    """

    def __init__(self, folder: str, name: str):
        self.folder = folder
        self.source = ROOT / folder
        self.name = name

    def __repr__(self) -> str:
        return self.folder

    @functools.cached_property
    def rows(self) -> List[List[str]]:
        """The rows of the table: folders and files that do not import each other."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        section = text.split(f"## The folders of `{self.folder}/`")[1].split("\n## ")[0]
        cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
        rows = [re.findall(r"`([^`]+)`", cell) for cell in cells]
        return [row for row in rows if row and row != [f"{self.folder}/"]]  # without the head

    def floor_of(self, path: str) -> Tuple[int, str]:
        """The row of a module, and its name in it; the longest name that fits."""
        found = [
            (len(name), number, name)
            for number, row in enumerate(self.rows)
            for name in row
            if is_in(path, name)
        ]
        assert found, f"{path} is in no row of the table in CONTRIBUTING.md"
        return max(found)[1:]

    @functools.cached_property
    def graph(self) -> Dict[str, Set[str]]:
        """What each module imports of the package, at its top or later; by paths in its folder."""
        files = self.source.rglob("*.py")
        return {file.relative_to(self.source).as_posix(): set(self.imports(file)) for file in files}

    @functools.cached_property
    def empty(self) -> Set[str]:
        """The `__init__.py` that only describe a folder: they need no row, and all may import them.

        Python imports that of a folder with every module in it.
        """
        files = self.source.rglob("__init__.py")
        bodies = {file: ast.parse(file.read_bytes()).body for file in files}
        plain = (ast.Expr, ast.Assign, ast.AnnAssign)  # a docstring, and an empty `__all__`
        return {
            file.relative_to(self.source).as_posix()
            for file, body in bodies.items()
            if all(isinstance(node, plain) for node in body)
        }

    def imports(self, file: pathlib.Path) -> Iterator[str]:
        package = list(file.relative_to(self.source).parent.parts)
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = package[: len(package) + 1 - node.level]
                base += node.module.split(".") if node.module else []
                for alias in node.names:
                    yield self.path_of([*base, alias.name]) or self.path_of(base)
            elif isinstance(node, ast.ImportFrom) and self.has(str(node.module), file):
                base = str(node.module).split(".")[1:]
                for alias in node.names:
                    yield self.path_of([*base, alias.name]) or self.path_of(base)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if self.has(alias.name, file):
                        yield self.path_of(alias.name.split(".")[1:])
            elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
                for argument in node.args:
                    name = str(getattr(argument, "value", ""))
                    if self.has(name, file):
                        yield self.path_of(name.split(".")[1:])

    def has(self, module: str, file: pathlib.Path) -> bool:
        is_own = module.split(".")[0] == self.name
        assert self.folder == self.name or not is_own, f"{file} imports {module} by its full name"
        return is_own

    def path_of(self, parts: List[str]) -> str:
        """The file of a module or package; empty where there is none."""
        path = self.source.joinpath(*parts)
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.exists():
                return file.relative_to(self.source).as_posix()
        return ""


CODEMODS = Package("codemods", "tf_lossscale_codemods")
SHIM = Package("tf_lossscale", "tf_lossscale")

MOST_NAMES = 10
"""Names that a rule imports of the package; the fixers of django-upgrade import about seven."""

EVERY_PACKAGE = pytest.mark.parametrize("package", [CODEMODS, SHIM], ids=repr)


def is_in(path: str, name: str) -> bool:
    return path.startswith(name) if name.endswith("/") else path == name


@EVERY_PACKAGE
def test_every_row_has_modules(package):
    names = [name for row in package.rows for name in row]
    assert len(names) > 10
    assert len(names) == len(set(names))
    assert [name for name in names if not (package.source / name).exists()] == []


@EVERY_PACKAGE
def test_no_import_runs_upward(package):
    assert sum(map(len, package.graph.values())) > 300
    upward = []
    for path in sorted(set(package.graph) - package.empty):
        floor, name = package.floor_of(path)
        for imported in package.graph[path] - package.empty:
            below, other = package.floor_of(imported)
            if name != other and below >= floor:
                upward.append(f"{path} imports {imported}")
    assert upward == []


def test_a_rule_gets_what_it_needs_as_arguments():
    """A rule imports few names of the package: what it asks of a file, it asks its arguments."""
    names = {}
    for file in sorted(CODEMODS.source.glob("rules/*/[!_]*.py")):
        nodes = ast.walk(ast.parse(file.read_bytes()))
        # A module of the same folder is a part of the rule.
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level > 1]
        names[file.name] = [alias.name for node in imports for alias in node.names]
    assert len(names) > 15
    assert all("Rule" in imported for imported in names.values())
    assert {file: found for file, found in names.items() if len(found) > MOST_NAMES} == {}


@EVERY_PACKAGE
def test_no_circle_of_imports(package):
    edges = {path: those - {path} for path, those in package.graph.items()}
    remaining = dict(edges)
    while True:
        leaves = [path for path, those in remaining.items() if not those & set(remaining)]
        if not leaves:
            break
        for path in leaves:
            del remaining[path]
    assert not remaining, "a circle of imports goes through these"
