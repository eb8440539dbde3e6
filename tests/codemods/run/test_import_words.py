"""The words and the paths in import statements, found without a parse."""

import os
from typing import List
from unittest.mock import Mock

import pytest
from several_files import migrate
from tf_lossscale_codemods.run.programs import Programs
from tf_lossscale_codemods.run.words import Words, imports_of

IMPORTS = {
    "import models": {("models", "")},
    "import a.models.b, models as m": {("a.models", ""), ("models", "")},
    "from models import wrap": {("models", "wrap")},
    "from a import models": {("a.models", "")},
    "from a import one, models, two  # noqa": {("a.models", "")},
    "from a import one, \\\n    models": {("a.models", "")},
    "from a.models import (\n    one,  # the first\n    models\n    as m,\n)": {
        ("a.models", "one"),
        ("a.models", "models"),
        ("a.models.models", ""),
    },
    "from a.models.b import c": {("a.models", "b")},
    "from . import models": {(".models", "")},
    "from ..a import b, models as m": {("..a.models", "")},
    "from .models import *": {(".models", "*")},
    "def f():\n    from x.models import y": {("x.models", "y")},
    "import numpy\nimport x.models\nmodels = 3": {("x.models", "")},
    "import numpy as models": set(),
    "import models_of_mine": set(),
    "models = 3": set(),
    "# import models": set(),
}
PACKAGE = {
    "from . import layer": {(".", "layer")},
    "from .. import layer, models": {("..", "layer"), ("..", "models"), ("..models", "")},
    "from ..other import layer": set(),
    "from models import layer": {("models", "layer")},
}
UNCERTAIN = [
    'importlib.import_module("models")',
    "import a; import models",
    "if old: import models",
    'with mock.patch("models.wrap"):',
]


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        *(("a/models.py", *row) for row in IMPORTS.items()),
        *(("a/models/__init__.py", *row) for row in PACKAGE.items()),
        *(("a/models.py", source, None) for source in UNCERTAIN),
    ],
)
def test_what_is_imported_of_a_module(module, source, found):
    """None where it is no plain import."""
    assert imports_of(module, source.encode()) == found


@pytest.mark.parametrize("source", [one for one in IMPORTS if IMPORTS[one]] + UNCERTAIN)
def test_the_importers_of_a_module_have_its_name_in_an_import(source):
    words = Words()
    importer, module = os.path.join("p", "test_use.py"), os.path.join("p", "models.py")
    words.add(importer, source.encode())
    assert [file for file, _ in words.importers(module)] == [importer]


def test_what_files_import_is_known_without_reading_them_again(monkeypatch):
    files = [os.path.join(os.sep, "p", f"m{number}.py") for number in range(300)]
    words = Words()
    for number, file in enumerate(files):
        words.add(file, b"import m%d\n" % (number + 1))
    read: List[str] = []
    programs = Programs(files, words, lambda file: read.append(file) or b"")
    looked = Mock(side_effect=imports_of)
    monkeypatch.setattr("tf_lossscale_codemods.run.programs.imports_of", looked)
    assert programs.split(files[-5:]) == [sorted(files[-5:])]
    assert (read, looked.call_count) == ([], len(files) - 1)  # each import once


@pytest.mark.parametrize("head", ["from old.models import mp", "from old import models as m"])
def test_a_module_of_the_same_name_in_another_package(command_line, head):
    """Only files that can import the module itself are read; the others keep their meaning."""
    name = head.split()[-1]
    use = f"{head}\n\npolicy = {'m.mp' if name == 'm' else 'mp'}.Policy('float32')\n"
    legacy = "from tensorflow.keras.mixed_precision import experimental as mp\n"
    files = {
        "old_use.py": use,
        "new_use.py": use.replace("old", "new"),
        "old/__init__.py": "",
        "old/models.py": legacy,
        "new/__init__.py": "",
        "new/models.py": "from tensorflow.keras import mixed_precision as mp\n",
    }
    for directory in ("old", "new"):
        command_line.path(directory).mkdir()
    done = migrate(command_line, files)
    assert done.sources["new_use.py"] == files["new_use.py"]
    assert done.sources["old/models.py"] == legacy.replace("tensorflow", "tf_lossscale")
    assert done.status == 0
