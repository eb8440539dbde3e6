"""What holds of the repository as a whole."""

import ast
import os
import pathlib
import resource
import subprocess
import sys

import pytest

ROOT = str(pathlib.Path(__file__).resolve().parents[2])
MODULES = sorted(pathlib.Path(ROOT, "tf_lossscale").rglob("*.py"))


def test_the_shim_parses_as_python_3_7_and_has_docstrings():
    for path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 7))
        assert ast.get_docstring(tree), path


def uses_of_versions(tree):
    """What only `_versions` may do: the line, and what it is."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or ""]
        elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
            named = [str(getattr(argument, "value", "")) for argument in node.args]
            named = [name for name in named if name != "tensorflow"]  # it waits for this import
        else:
            named = []
        for name in named:
            if name.split(".")[0] in ("tensorflow", "keras", "tf_keras"):
                yield line, "imports " + name
        if isinstance(node, ast.Compare) and "version_info" not in ast.dump(node):
            sides = [node.left, *node.comparators]
            if "__version__" in ast.dump(node) or any(is_version(side) for side in sides):
                yield line, "compares versions"
        reads = isinstance(node, ast.Attribute) and node.attr in ("startswith", "split")
        if reads and "__version__" in ast.dump(node):
            yield line, "reads a version"


def is_version(node):
    """Whether it is a tuple of numbers, such as `(2, 4)`."""
    numbers = [getattr(element, "value", None) for element in getattr(node, "elts", ())]
    return len(numbers) > 1 and all(isinstance(number, int) for number in numbers)


def test_only_versions_compares_versions_or_imports_private_modules():
    found = [
        f"{path.relative_to(ROOT)}:{line} {what}"
        for path in MODULES
        if path.parent.name != "_versions"
        for line, what in uses_of_versions(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found, "belongs in _versions:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "import tensorflow.python",
        "from keras.src import optimizers",
        "importlib.import_module('tf_keras.src')",
        "new = tf.__version__ >= '2.4'",
        "new = numbers >= (2, 4)",
        "new = (2, 4) <= numbers < (2, 9)",
        "new = keras.__version__.startswith('3')",
    ],
)
def test_a_use_of_versions_is_found(code):
    assert list(uses_of_versions(ast.parse(code)))


@pytest.mark.parametrize("of", [[], ["migrate"]], ids=str)
def test_help_comes_at_once_and_without_tensorflow(of):
    module = ["-m", "tf_lossscale._cli.main"]
    command = [sys.executable, "-X", "importtime", *module, *of, "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "migrate" in done.stdout
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not {"tensorflow", "numpy", "libcst"} & loaded
    fastest = min(_seconds([sys.executable, *module, *of, "--help"]) for _ in range(3))
    assert fastest < 0.6, f"tf-lossscale --help took {fastest:.2f} s"


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        (["migrate", "--to", "shim", "train.py"], 1, "+x = tfls.train.experimental.FixedLossScale"),
        (["compare", "run.jsonl", "run.jsonl"], 0, "bit-identical"),
        (["show", "run.jsonl"], 0, "32768 in all steps"),
    ],
)
def test_what_needs_no_tensorflow(words, status, shown, tmp_path):
    page = pathlib.Path(ROOT, "docs", "compare.md").read_text(encoding="utf-8")
    record = page.partition("```json\n")[2].partition("```")[0]
    (tmp_path / "run.jsonl").write_text(record)
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\n\nx = tf.train.experimental.FixedLossScale(8)\n"
    )
    start = "import sys; sys.modules['tensorflow'] = None; from tf_lossscale._cli.main import main"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}; sys.exit(main())", *words],
        env=dict(os.environ, PYTHONPATH=ROOT),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, "")
    assert shown in done.stdout


def _seconds(command):
    """Processor time, which does not depend on what else the machine does."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("kind", ["folder", "module"])
def test_what_is_called_tensorflow_and_is_not_gives_the_install_hint(tmp_path, kind):
    if kind == "folder":
        (tmp_path / "tensorflow").mkdir()
    else:
        (tmp_path / "tensorflow.py").write_text("")
    (tmp_path / "numpy.py").write_text("")  # it is not what this is about
    # Without the installed TensorFlow, which Python prefers to a folder without `__init__.py`.
    name = "tf_lossscale.keras.mixed_precision.LossScaleOptimizer"
    command = [sys.executable, "-S", "-c", f"import tf_lossscale; {name}"]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), ROOT]))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "ImportError: The `tensorflow` that is imported is not TensorFlow" in last
    assert str(tmp_path) in last
    assert "pip install" in last
