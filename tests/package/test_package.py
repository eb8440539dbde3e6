"""What holds of the repository as a whole."""

import ast
import os
import resource
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(ROOT, "tf_lossscale")


def modules(folder):
    for directory, _, files in os.walk(folder):
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(directory, name)


@pytest.mark.parametrize("path", modules(PACKAGE), ids=lambda path: os.path.relpath(path, PACKAGE))
def test_the_shim_parses_as_python_3_7_and_has_docstrings(path):
    with open(path) as source:
        tree = ast.parse(source.read(), feature_version=(3, 7))
    assert ast.get_docstring(tree), "no docstring"


def test_only_versions_compares_versions_or_imports_private_modules():
    offenders = []
    for path in modules(PACKAGE):
        if os.path.basename(os.path.dirname(path)) == "_versions":
            continue
        with open(path) as source:
            tree = ast.parse(source.read())
        for node in ast.walk(tree):
            where = "{}:{}".format(os.path.relpath(path, ROOT), getattr(node, "lineno", 0))
            if isinstance(node, ast.Compare):
                text = ast.dump(node)
                if "TF_VERSION" in text or "__version__" in text:
                    offenders.append(where + " compares versions")
            modules_named = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in modules_named:
                if name.startswith(("tensorflow", "keras", "tf_keras")):
                    offenders.append(where + " imports " + name)
    assert not offenders, "belongs in _versions:\n" + "\n".join(offenders)


def test_help_comes_at_once_and_without_tensorflow():
    command = [sys.executable, "-X", "importtime", "-m", "tf_lossscale._cli.main", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "migrate" in done.stdout
    loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert not {"tensorflow", "numpy", "libcst"} & loaded
    fastest = min(
        _seconds([sys.executable, "-m", "tf_lossscale._cli.main", "--help"]) for _ in range(5)
    )
    assert fastest < 0.3, f"tf-lossscale --help took {fastest:.2f} s"


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
