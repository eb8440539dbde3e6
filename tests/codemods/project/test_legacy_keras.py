"""`TF_USE_LEGACY_KERAS` and imports of `tf_keras`."""

import json

import pytest
from tf_lossscale_codemods.project.evidence import legacy_keras_in

NAME = "TF_USE_LEGACY_KERAS"


def found(path, text):
    return [(mention.line, mention.keras) for mention in legacy_keras_in(path, text)]


PYTHON = [
    (f'os.environ["{NAME}"] = "1"', 2),
    (f"os.environ['{NAME}'] = 'True'", 2),
    (f'os.environ["{NAME}"]="0"', 3),
    (f'os.environ.setdefault("{NAME}", "true")', 2),
    (f'os.putenv("{NAME}", "1")', 2),
    (f'monkeypatch.setenv("{NAME}", "1")', 2),
    (f'os.environ.update({{"{NAME}": "1"}})', 2),
    (f'env = dict(os.environ, {NAME}="1")', 2),
    ("import tf_keras", 2),
    ("import tf_keras.layers", 2),
    ("from tf_keras.mixed_precision import Policy", 2),
    ("    from tf_keras import layers  # newer", 2),
    (f'os.environ.get("{NAME}", "1")', None),
    (f'os.getenv("{NAME}", "1")', None),
    (f'os.environ["{NAME}"] == "1"', None),
    (f'os.environ["{NAME}"] = "yes"', None),
    (f'os.environ["{NAME}"] = value', None),
    (f'# os.environ["{NAME}"] = "1"', None),
    (f'"""os.environ["{NAME}"] = "1"\nimport tf_keras\n"""', None),
    ("# import tf_keras", None),
    ("import keras as tf_keras", None),
    ("from tensorflow import keras as tf_keras", None),
    ("from .tf_keras import x", None),
    ("from project import tf_keras", None),
    ("tf_keras.layers", None),
    ("import tf_keras_vis", None),
]
TEXT = [
    (f"export {NAME}=1", 2),
    (f"{NAME}=true python train.py", 2),
    (f"{NAME}='1'", 2),
    (f"ENV {NAME} 1", 2),
    (f"ENV A=b {NAME}=1", 2),
    (f"      {NAME}: '1'", 2),
    (f"  - {NAME}=1", 2),
    (f"{NAME} = 1", 2),
    (f"{NAME}=0", 3),
    (f"# {NAME}=1", None),
    (f"run  # {NAME}=1", None),
    (f'[ "${NAME}" = "1" ]', None),
    (f"echo ${{{NAME}}}=1", None),
    (f"MY_{NAME}=1", None),
    (f"{NAME}=", None),
    (f"unset {NAME}", None),
    (f"x{'x' * 3000} {NAME}=1", None),
]


@pytest.mark.parametrize(
    ("path", "line", "keras"),
    [("a.py", *row) for row in PYTHON] + [("Dockerfile", *row) for row in TEXT],
)
def test_lines(path, line, keras):
    assert found(path, f"# first\n{line}\n") == ([] if keras is None else [(2, keras)])


def test_what_cannot_be_parsed_counts():
    assert found("a.py", "print 'x'\nimport tf_keras\n(((\n\0") == [(2, 2)]


@pytest.mark.parametrize("indent", [None, 1])
def test_the_lines_of_notebooks_are_those_of_the_file(indent):
    source = ["import os\n", f"os.environ['{NAME}'] = '1'\n", f'x["{NAME}"] = "0"']
    cells = [
        {"cell_type": "code", "source": source},
        {"cell_type": "code", "source": f"%env {NAME}=1"},
        {"cell_type": "code", "source": "!x\nimport tf_keras\n"},
        {"cell_type": "markdown", "source": "do not import tf_keras"},
    ]
    text = json.dumps({"cells": cells}, indent=indent)
    lines = [line for line, _ in found("a.ipynb", text)]
    assert sorted(keras for _, keras in found("a.ipynb", text)) == [2, 2, 2, 3]
    assert lines == ([1] * 4 if indent is None else sorted(lines))
    shown = text.split("\n")
    assert all(NAME in shown[line - 1] or "tf_keras" in shown[line - 1] for line in lines)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        '"""' + "'" * 400_000,
        '"' * 400_001,
        (NAME + " " * 1900 + "\n") * 400,
        "\\n" * 900 + "import",
    ],
    ids=range(4),
)
def test_hostile_text_is_read_in_bounded_time(text):
    for name in ("a.py", "a.ipynb", "run.sh"):
        assert found(name, text) == []
