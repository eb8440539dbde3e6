"""Modules of different test folders have different names.

pytest puts each folder that is not a package on the import path. A run of several folders would
import the first module of a name in place of all others.
"""

import collections
import pathlib
from typing import DefaultDict, Iterable, List

TESTS = pathlib.Path(__file__).resolve().parents[1]


def importable_names(folder: pathlib.Path) -> Iterable[str]:
    """The names that can be imported while `folder` is on the import path."""
    for path in folder.iterdir():
        if path.suffix == ".py" and path.name != "conftest.py":
            yield path.stem
        elif (path / "__init__.py").exists():
            yield path.name


def test_no_module_hides_another():
    with_tests = {test.parent for test in TESTS.rglob("test_*.py")}
    on_path = {
        folder if not (folder / "__init__.py").exists() else folder.parent for folder in with_tests
    }
    assert len(on_path) > 10
    folders: DefaultDict[str, List[str]] = collections.defaultdict(list)
    for folder in sorted(on_path):
        for name in importable_names(folder):
            folders[name].append(str(folder.relative_to(TESTS)))
    assert {
        name: folders_with_name
        for name, folders_with_name in folders.items()
        if len(folders_with_name) > 1
    } == {}
