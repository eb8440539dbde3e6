"""`TF_USE_LEGACY_KERAS` and imports of `tf_keras`; see also test_environment.py."""

import json

import pytest
from tf_lossscale_codemods.engine.notebook import code_cells
from tf_lossscale_codemods.project.evidence import legacy_keras_in, legacy_keras_in_cells

NAME = "TF_USE_LEGACY_KERAS"


def found(path, text):
    if path.endswith(".ipynb"):
        mentions = legacy_keras_in_cells(code_cells(text.encode()))
    else:
        mentions = legacy_keras_in(path, text)
    return [(mention.line, mention.keras) for mention in mentions]


IMPORTS = [
    ("import tf_keras", 2),
    ("import tf_keras.layers", 2),
    ("from tf_keras.mixed_precision import Policy", 2),
    ("    from tf_keras import layers  # newer", 2),
    ('"""\nimport tf_keras\n"""', None),
    ("x = 1; import tf_keras", 2),
    ("raise x from tf_keras", None),
    ("# import tf_keras", None),
    ("import keras as tf_keras", None),
    ("from tensorflow import keras as tf_keras", None),
    ("from .tf_keras import x", None),
    ("from project import tf_keras", None),
    ("tf_keras.layers", None),
    ("import tf_keras_vis", None),
]
MENTIONS = [
    'assert tf.keras is tf_keras, "run with {NAME}=1"',
    "assert is_legacy, ('first', 'run with {NAME}=1')",
    'if is_new: raise RuntimeError("{NAME}=1 is not set")',
    'raise RuntimeError({{"{NAME}": "1"}})',
    'print("hint: run with {NAME}=1")',
    'print("{NAME}=1 python train.py")',
    "print 'run with {NAME}=1'",
    'logging.info("{NAME}=1")',
    'logger.info("%s", {{"{NAME}": "1"}})',
    'warnings.warn("set {NAME}=1")',
    'sys.exit("{NAME}=1")',
    'sys.stderr.write("{NAME}=1")',
    "'{NAME}=1'",
    'r"""\\\n{NAME}=1"""',
    'help = "{NAME}=1"',
    'parser.add_argument("--legacy", help="sets {NAME}=1")',
    'subprocess.run(["echo", "run with {NAME}=1"])',
    '{NAME} = "1"',
    'def start({NAME}="1"): pass',
    'if env == {{"{NAME}": "1"}}: pass',
    'names = ["{NAME}", "1"]',
    '@pytest.mark.parametrize(("name", "value"), [("{NAME}", "1")])',
    'setattr(settings, "{NAME}", "1")',
    "x = 'open  # {NAME}=1",
    'raise ProcessError(env={{"{NAME}": "1"}})',
    'env = {{"{NAME}", "1"}}',
    'print(run(env={{"{NAME}": "1"}}))',
    'def start(env={{"{NAME}": "1"}}): pass',
    'find(env != {{"{NAME}": "1"}})',
]


@pytest.mark.parametrize(
    ("line", "keras"), IMPORTS + [(line.format(NAME=NAME), None) for line in MENTIONS]
)
def test_lines(line, keras):
    assert found("a.py", f"# first\n{line}\n") == ([] if keras is None else [(2, keras)])


def test_what_cannot_be_parsed_counts():
    assert found("a.py", "print 'x'\nimport tf_keras\n(((\n\0") == [(2, 2)]
    assert found("a.py", f"print 'x'\nos.environ['{NAME}'] = '1'\n(((\n\0") == [(2, 2)]


def test_a_statement_can_take_several_lines():
    source = f'"""Sets\r\n{NAME}=1."""\r\nos.environ.setdefault(\r\n    "{NAME}",\r\n    "1",\r\n)'
    assert found("a.py", source) == [(5, 2)]
    source = f'assert (\n    x\n), (\n    "{NAME}=1"\n)\nimport tf_keras'
    assert found("a.py", source) == [(6, 2)]


@pytest.mark.parametrize("path", ["<stdin>", "/x/<stdin>", "bin/train", "a.pyi", "a.pyw"])
def test_other_names_are_those_of_python_code(path):
    """A script without a suffix is checked if it is named, and so is stdin."""
    assert found(path, f'print("{NAME}=1")\n') == []
    assert sorted(found(path, f'os.environ["{NAME}"] = "1"\nimport tf_keras\n')) == [(1, 2), (2, 2)]


def test_only_code_cells_of_python_count():
    setting = f"os.environ['{NAME}'] = '1'\nimport tf_keras\n"
    output = {"output_type": "stream", "name": "stdout", "text": [f"{NAME}=1\n", setting]}
    cells = [
        {"cell_type": "markdown", "source": [f"{NAME}=1\n", setting]},
        {"cell_type": "raw", "source": setting},
        {"cell_type": "code", "source": "train()", "outputs": [output]},
    ]
    assert found("a.ipynb", json.dumps({"cells": cells}, indent=1)) == []
    code = {"cell_type": "code", "source": setting}
    metadata = {"kernelspec": {"language": "R"}}
    assert found("a.ipynb", json.dumps({"cells": [code], "metadata": metadata})) == []
    assert found("a.ipynb", json.dumps({"cells": [code]})) == [(1, 2), (1, 2)]
    assert found("a.ipynb", f"{setting}{{") == []


@pytest.mark.parametrize("indent", [None, 1])
def test_the_lines_of_notebooks_are_those_of_the_file(indent):
    source = ["import os\n", f"os.environ['{NAME}'] = '1'\n", f'os.environ["{NAME}"] = "0"']
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
        f"{'(' * 400_000}'{NAME}'",
        f"run('{';a=b' * 100_000}{NAME}=2'",
        f"f('{NAME}', 'x', " * 50_000,
        "'\\" * 300_000 + NAME,
        "[" + " " * 400_000 + NAME,
        "export" + " " * 400_000 + "!" + NAME,
        "\n" * 400_000 + NAME,
        "".join(f"<<a{i}\na{i}\n" for i in range(30_000)) + NAME,
        "<<a\n" * 100_000 + NAME,
        "-" * 200_000 + "- " * 100_000 + NAME,
        "bash -c 'bash -c " * 20_000 + NAME,
        f"{NAME}: {{{', ' * 200_000}",
        f"env:\n{'- ' * 200_000}{NAME}=2",
        "ENV A=1 \\\n" * 50_000 + f"{NAME}=2",
        '"""' + "\\" * 600_001 + NAME,
        f"a = {{{NAME!r}: 'x'}}; " * 10_000 + "os.environ.update(a); " * 30_000,
        "docker run " + "--env " * 100_000 + f"{NAME}=2",
        "cat > .env <<EOF\n" * 30_000 + NAME,
        "docker run --" + "a_" * 100_000 + f" {NAME}=2",
    ],
    ids=range(23),
)
def test_hostile_text_is_read_in_bounded_time(text):
    names = "a.py a.ipynb run.sh Dockerfile Makefile tox.ini pyproject.toml .env compose.yml"
    for name in names.split():
        assert found(name, text) == []
