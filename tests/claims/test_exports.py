"""Modules export what is public and nothing else, and type checkers see it as Python does."""

import ast
import contextlib
import operator
import pathlib
import re
import subprocess
import sys
from typing import List

import pytest
from documents import ROOT, files, name_of

import tf_lossscale
from tf_lossscale import _paths

MODULES = [
    name_of(each)
    for each in files(".py")
    if name_of(each).startswith(("tf_lossscale/", "codemods/"))
]
ENTRY_POINTS = ("__main__.py",)


def wrong_exports(source: str) -> List[str]:
    """What is wrong with `__all__` of a module; empty for one that is a docstring only."""
    tree = ast.parse(source)
    if len(tree.body) <= 1:
        return []
    exported, bound = None, set()
    for node in tree.body:
        for each in _bindings(node):
            bound.add(each)
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            exported = ast.literal_eval(node.value)
    if exported is None:
        # A namespace has what `attach` returns; the tests of the shim look at its names.
        return [] if "__all__" in bound else ["has no __all__"]
    wrong = [f"exports {name}, which it has not" for name in exported if name not in bound]
    private = (name for name in exported if name.startswith("_") and name != "__version__")
    wrong += [f"exports the private {name}" for name in private]
    wrong += ["exports a name twice"] if len(set(exported)) < len(exported) else []
    return wrong


def _bindings(node: ast.AST) -> List[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    found = [
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    for body in ("body", "orelse", "finalbody", "handlers"):
        for each in getattr(node, body, []):
            found += _bindings(each)
    return found


def test_a_module_exports_public_names_that_it_has():
    assert len(MODULES) > 100
    for module in MODULES:
        if not module.endswith(ENTRY_POINTS):
            assert wrong_exports((ROOT / module).read_text(encoding="utf-8")) == [], module


@pytest.mark.parametrize(
    "source",
    [
        '"""A module."""\nx = 1\n',
        '"""A module."""\n__all__ = ["y"]\nx = 1\n',
        '"""A module."""\n__all__ = ["_x"]\n_x = 1\n',
        '"""A module."""\n__all__ = ["x", "x"]\nx = 1\n',
    ],
)
def test_wrong_exports_are_found(source):
    assert wrong_exports(source)


def attributes(names: List[str]) -> str:
    """A program that reads each name as an attribute, and imports no more than the package."""
    return "".join(
        ["import tf_lossscale as tfls\n", *(f"reveal_type(tfls.{each})\n" for each in names)]
    )


def imports(names: List[str]) -> str:
    """A program that imports each name."""
    lines = []
    for number, name in enumerate(names):
        namespace, _, last = name.rpartition(".")
        if namespace not in _paths.VIEWS:  # these are attributes, not modules
            module = f"tf_lossscale.{namespace}".rstrip(".")
            lines.append(f"from {module} import {last} as y{number}\n")
    return "".join(lines)


def mypy(folder, *sources: str) -> str:
    """What mypy prints about programs, in their order."""
    paths = [folder / f"uses_{number}.py" for number, _ in enumerate(sources)]
    for path, source in zip(paths, sources):
        path.write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, paths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def public_names() -> List[str]:
    """Paths below `tfls` that hold a symbol, second names included."""
    found = []
    for namespace in [*_paths.NAMESPACES, *_paths.VIEWS]:
        with contextlib.suppress(AttributeError):  # only the drop-in has this second name
            operator.attrgetter(namespace)(tf_lossscale)
            symbols = _paths.NAMESPACES[_paths.VIEWS.get(namespace, namespace)]
            found += [f"{namespace}.{name}" for name in symbols]
    return found + [f"monitoring.{name}" for name in tf_lossscale.monitoring.__all__]


UNKNOWN = [
    "keras.mixed_precision.LossScaleManager",
    "tpu.LossScaleManager",
    "keras.experimental",
    "instal",
]


def private_imports(source: str, folder: pathlib.Path) -> List[str]:
    """Names that a module takes from another although they are private there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            above = folder.joinpath(*[".."] * (node.level - 1)) if node.level else ROOT
            module = above.joinpath(*(node.module or "").split("."))
            for name in [alias.name for alias in node.names]:
                # A private module is none of this: the whole package may use it.
                is_module = (module / name).is_dir() or (module / f"{name}.py").exists()
                if name.startswith("_") and not is_module:
                    found.append(name)
    return found


def test_a_module_takes_no_private_name_of_another():
    for module in MODULES:
        path = ROOT / module
        assert private_imports(path.read_text(encoding="utf-8"), path.parent) == [], module


def test_a_private_name_that_is_imported_is_found():
    source = "from tf_lossscale import _paths\nfrom tf_lossscale._paths import _by_namespace\n"
    assert private_imports(source, ROOT) == ["_by_namespace"]


def test_the_examples_of_both_packages_are_run():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.partition("\ndoctest:")[2].partition("\n\n")[0].replace("\\\n", " ")
    runs = [line for line in recipe.splitlines() if "--doctest-modules" in line]
    for package in ("tf_lossscale", "codemods"):
        assert any(re.search(rf" {package}( |$)", line) for line in runs), package


OF_KERAS = {"Policy", "get_layer_policy", "global_policy", "set_global_policy", "set_policy"}
"""The installed Keras's own, which has no types."""


def test_mypy_sees_every_public_name_and_only_those(tmp_path):
    names = public_names()
    assert len(names) > 60
    used = ["install", *names, *UNKNOWN]
    said = mypy(tmp_path, attributes(used), imports(used))
    for file in ("uses_0.py:", "uses_1.py:"):
        errors = [line for line in said.splitlines() if file in line and "error:" in line]
        assert len(errors) == len(UNKNOWN), said
        for error, name in zip(errors, UNKNOWN):
            assert f'"{name.rpartition(".")[2]}"' in error, said
    # Line by line, as in the program: after the import, `install`.
    kinds = dict(re.findall(r"uses_0.py:(\d+): note: Revealed type is \"(Any|def)", said))
    untyped = {name for number, name in enumerate(names, 3) if kinds.get(str(number)) == "Any"}
    assert {name.rpartition(".")[2] for name in untyped} <= OF_KERAS
