"""Each folder of both packages imports only what its table in CONTRIBUTING.md lets it import."""

import ast
import functools
import pathlib
import re
from typing import Dict, Iterator, List, Set

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Package:
    """The source of a package, and its table.

    Args:
      folder: name of its folder, which is in the heading and in the head of the table, too.
      name: the name that it is imported by.
      may_be_absolute: whether its modules import each other by that name.
    """

    def __init__(self, folder: str, name: str, may_be_absolute: bool) -> None:
        self.folder = folder
        self.source = ROOT / folder
        self.name = name
        self.may_be_absolute = may_be_absolute

    def __repr__(self) -> str:
        return self.folder

    @functools.cached_property
    def table(self) -> Dict[str, Set[str]]:
        """Each row of the table: a folder or file, and what it may import. Names in file order."""
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        section = text.split(f"## The folders of `{self.folder}/`")[1].split("\n## ")[0]
        rows = [line.strip().strip("|").split("|") for line in section.splitlines() if "`" in line]
        found: Dict[str, Set[str]] = {}
        for cells in rows:
            if len(cells) == 3:
                for name in re.findall(r"`([^`]+)`", cells[0]):
                    found[name] = set(re.findall(r"`([^`]+)`", cells[2]))
        del found[f"{self.folder}/"]  # the head
        return found

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
        assert self.may_be_absolute or not is_own, f"{file} imports {module} by its full name"
        return is_own

    def path_of(self, parts: List[str]) -> str:
        """The file of a module or package; empty where there is none."""
        path = self.source.joinpath(*parts)
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.exists():
                return file.relative_to(self.source).as_posix()
        return ""


CODEMODS = Package("codemods", "tf_lossscale_codemods", may_be_absolute=False)
SHIM = Package("tf_lossscale", "tf_lossscale", may_be_absolute=True)

EVERY_PACKAGE = pytest.mark.parametrize("package", [CODEMODS, SHIM], ids=repr)
EVERY_ROW = pytest.mark.parametrize(
    ("package", "name"),
    [(package, name) for package in (CODEMODS, SHIM) for name in package.table],
)


def is_in(path: str, name: str) -> bool:
    return path.startswith(name) if name.endswith("/") else path == name


def test_the_graph_is_drawn_from_every_kind_of_import(tmp_path):
    for name in ("__init__.py", "a/__init__.py", "a/b.py", "c/__init__.py", "c/d.py", "e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "a" / "b.py").write_text(
        "from ..c import d\ndef late():\n    from .. import e\n    from .b import itself\n"
    )
    (tmp_path / "e.py").write_text(
        "from this import a\nimport this.a.b\nfrom this.c import d\nimport that.c\n"
        "def late():\n    importlib.import_module('this.e')\n    print('this.c')\n"
    )
    package = Package("unused", "this", may_be_absolute=True)
    package.source = tmp_path
    assert package.graph["a/b.py"] == {"c/d.py", "e.py", "a/b.py"}
    assert package.graph["e.py"] == {"a/__init__.py", "a/b.py", "c/d.py", "e.py"}
    assert package.empty == {"__init__.py", "a/__init__.py", "c/__init__.py"}
    (tmp_path / "e.py").write_text("import this.a\n")
    package = Package("unused", "this", may_be_absolute=False)
    package.source = tmp_path
    with pytest.raises(AssertionError, match="by its full name"):
        _ = package.graph


@EVERY_PACKAGE
def test_every_module_has_a_row(package):
    for path in set(package.graph) - package.empty:
        assert [name for name in package.table if is_in(path, name)], path


@EVERY_PACKAGE
def test_every_row_has_modules_and_names_rows_above_it(package):
    above: List[str] = []
    for name, allowed in package.table.items():
        assert (package.source / name).exists(), name
        for each in allowed:
            assert any(is_in(earlier, each) for earlier in above), (name, each)
        above.append(name)


@EVERY_ROW
def test_imports_only_what_its_row_allows(package, name):
    rows = package.table
    upward = [
        (path, each)
        for path, imported in package.graph.items()
        for each in imported - package.empty
        if is_in(path, name) and not any(is_in(each, one) for one in (name, *rows[name]))
    ]
    assert not upward


@EVERY_ROW
def test_what_its_row_allows_is_imported(package, name):
    graph = package.graph
    imported = {each for path, those in graph.items() if is_in(path, name) for each in those}
    for allowed in package.table[name]:
        assert any(is_in(each, allowed) for each in imported), (name, allowed)


@EVERY_PACKAGE
def test_no_module_imports_itself_by_way_of_others(package):
    edges = {path: {one for one in those if one != path} for path, those in package.graph.items()}
    left = dict(edges)
    while True:
        leaves = [path for path, those in left.items() if not those & set(left)]
        if not leaves:
            break
        for path in leaves:
            del left[path]
    assert not left, "a circle of imports goes through these"
