"""`TF_USE_LEGACY_KERAS` and imports of `tf_keras`."""

import json

import pytest
from tf_lossscale_codemods.project.legacy_keras import in_notebook, in_python, in_text

NAME = "TF_USE_LEGACY_KERAS"


def found(evidence):
    return [(one.line, one.keras) for one in evidence]


@pytest.mark.parametrize(
    ("source", "keras"),
    [
        (f'os.environ["{NAME}"] = "1"', 2),
        (f"os.environ['{NAME}'] = 'True'", 2),
        (f'os.environ["{NAME}"]="0"', 3),
        (f'os.environ.setdefault("{NAME}", "true")', 2),
        (f'os.putenv("{NAME}", "1")', 2),
        (f'monkeypatch.setenv("{NAME}", "1")', 2),
        (f'os.environ.update({{"{NAME}": "1"}})', 2),
        (f'env = dict(os.environ, {NAME}="1")', 2),
        ("import tf_keras", 2),
        ("import os, tf_keras as keras", 2),
        ("import tf_keras.layers", 2),
        ("from tf_keras.mixed_precision import Policy", 2),
        ("if new:\n    import tf_keras", 2),
        ("try:\n    from tf_keras import layers\nexcept ImportError:\n    pass", 2),
        ("import os; import tf_keras", 2),
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
    ],
)
def test_python(source, keras):
    lines = [one.keras for one in in_python("a.py", b"x = 1\n" + source.encode() + b"\n")]
    assert lines == ([] if keras is None else [keras])


def test_lines_count_and_what_cannot_be_read_ends_the_search():
    source = f'import a\n\nos.environ["{NAME}"] = "1"\nimport tf_keras\n(((\nimport tf_keras\n'
    assert found(in_python("a.py", source.encode()))[:2] == [(3, 2), (4, 2)]
    assert found(in_python("a.py", b"print 'x'\nimport tf_keras\n")) == [(2, 2)]
    for data in (b"\xff\xfe", b"# coding: nonsense\nimport tf_keras\n", b"\0import tf_keras"):
        assert found(in_python("a.py", data)) == []


@pytest.mark.parametrize(
    ("line", "keras"),
    [
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
    ],
)
def test_text(line, keras):
    expected = [] if keras is None else [(2, keras)]
    assert found(in_text("Dockerfile", f"# first\n{line}\n".encode())) == expected


def notebook(*sources):
    cells = [{"cell_type": "code", "source": source} for source in sources]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "x"}, *cells]}).encode()


def test_notebooks():
    data = notebook(["import os\n", f"os.environ['{NAME}'] = '1'"], f"%env {NAME}=1\n!pip x", "y")
    assert found(in_notebook("a.ipynb", data)) == [(2, 2), (1, 2)]
    assert found(in_notebook("a.ipynb", notebook("!x\nimport tf_keras", "%%bash\nls"))) == [(2, 2)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"cells": 1}',
        b'{"cells": [1]}',
        b'{"cells": [{"cell_type": "code"}]}',
        b"[" * 100_000,
        b'{"cells": [{"cell_type": "code", "source": [1]}]}',
        b"\xff",
    ],
)
def test_what_is_no_notebook_decides_nothing(data):
    assert found(in_notebook("a.ipynb", data)) == []
