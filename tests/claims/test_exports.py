"""Type checkers see the public names as Python does, and modules keep their private names."""

import ast
import contextlib
import operator
import pathlib
import re
import subprocess
import sys
from typing import List

from documents import ROOT, files, name_of

import tf_lossscale
from tf_lossscale import _paths

MODULES = [
    name_of(file)
    for file in files(".py")
    if name_of(file).startswith(("tf_lossscale/", "codemods/"))
]


def test_modules_say_what_they_export():
    """Private modules need no list: their own names begin with an underscore."""
    public = [module for module in MODULES if "/_" not in module.replace("__init__.py", "")]
    assert len(public) > 100
    for module in public:
        source = (ROOT / module).read_text(encoding="utf-8")
        assert len(ast.parse(source).body) <= 1 or "__all__" in source, module


def attributes(names: List[str]) -> str:
    """A program that reads each name as an attribute, and imports no more than the package."""
    return "".join(
        ["import tf_lossscale as tfls\n", *(f"reveal_type(tfls.{name})\n" for name in names)]
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
    found += [f"checkpoints.{name}" for name in tf_lossscale.checkpoints.__all__]
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
