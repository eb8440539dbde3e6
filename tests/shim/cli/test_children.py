"""What `tf-lossscale run` does to the Python processes that a script starts.

Those of its own environment have the legacy paths. Any other is as it would be without `run`.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List

import pytest
from processes import REPOSITORY

pytestmark = pytest.mark.by_file

SHOW = """\
import json, os, sys
os.environ.pop("_", None)
print(json.dumps([sys.path, sorted(sys.modules), dict(os.environ), [str(type(f)) for f in
    sys.meta_path], sorted(sys.path_importer_cache), len(sys.argv)], sort_keys=True))
"""
CHILD_OF = """\
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))
"""


def output(command: List[str], **variables: str) -> str:
    """Returns what a command prints, without the variables of this test run in its way."""
    done = subprocess.run(
        command,
        env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", **variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "sitecustomize" not in done.stderr  # Python reports an error in it there
    return done.stdout


def below_run(*command: str, **variables: str) -> str:
    """Returns what a command prints as the child of a script under `run`."""
    runner = (
        f"import sys; sys.path.insert(0, {REPOSITORY!r}); from tf_lossscale._cli.main import main; "
        "sys.exit(main())"
    )
    return output([sys.executable, "-c", runner, "run", "-c", CHILD_OF, *command], **variables)


@pytest.fixture(autouse=True)
def no_path(monkeypatch: pytest.MonkeyPatch):
    """The package is then on nobody's path, as when `run` is called in a checkout."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture(scope="module")
def other_environment(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("other") / "env")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", folder],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return os.path.join(folder, "bin", "python")


@pytest.mark.parametrize("path", ["", "/a", "/a:", ":/a:/b"])
def test_another_environment_is_left_as_it_was(other_environment: str, path: str):
    variables: Dict[str, str] = {"PYTHONPATH": path} if path else {}
    alone = output([other_environment, "-c", SHOW], **variables)
    assert below_run(other_environment, "-c", SHOW, **variables) == alone
    # The next process also runs in the other environment, and the one after it in ours again.
    again = below_run(other_environment, "-c", CHILD_OF, other_environment, "-c", SHOW, **variables)
    assert again == alone


def other_pythons() -> List[str]:
    """The Pythons of other versions that start on this machine: there may be none."""
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    paths = [shutil.which(name) for name in ("python2.7", "python3.6", "python3.9", "python3.12")]
    paths += glob.glob(os.path.join(pyenv, "versions", "[23].[67].*", "bin", "python"))
    found = []
    for path in filter(None, paths):
        ask = [path, "-c", "import sys; sys.stdout.write(sys.prefix)"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout not in (sys.prefix, sys.base_prefix):
            found.append(path)
    return found


def test_other_versions_of_python_are_left_as_they_were():
    for python in other_pythons():
        assert below_run(python, "-c", SHOW) == output([python, "-c", SHOW]), python


def test_python_2_can_read_the_module():
    """What is new since Python 2.7 and would be a SyntaxError there, by the tree."""
    import ast

    path = os.path.join(REPOSITORY, "tf_lossscale", "_cli", "child", "sitecustomize.py")
    with open(path) as file:
        text = file.read()
    new = (ast.AnnAssign, ast.JoinedStr, ast.AsyncFunctionDef, ast.Nonlocal, ast.Starred)
    assert text.isascii()
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, new), ast.dump(node)
        if isinstance(node, ast.FunctionDef):
            arguments = node.args.args + node.args.kwonlyargs
            assert node.returns is None, node.name
            assert not [argument for argument in arguments if argument.annotation], node.name
            assert not node.args.kwonlyargs, node.name


def test_a_child_of_the_same_environment_has_the_names_and_an_unchanged_path():
    alone = json.loads(output([sys.executable, "-c", SHOW]))
    in_child = json.loads(below_run(sys.executable, "-c", SHOW))
    assert in_child[0] == alone[0]  # sys.path
    assert in_child[1] == alone[1]  # sys.modules
    # The finder in `sys.meta_path` waits for the first import of TensorFlow, as in the test of
    # several threads, whose program uses the names.
    assert len(in_child[3]) == len(alone[3]) + 1


@pytest.mark.parametrize("how", ["-S", "-I", "-E", "PYTHONPATH", "TF_LOSSSCALE_INSTALL"])
def test_a_child_without_what_it_needs_is_as_without_run(how: str):
    """With one of these options, or without the variable."""
    code = "import sys; print(len(sys.meta_path))"
    if how.startswith("-"):
        found = below_run(sys.executable, how, "-c", code)
    else:
        start = "import os, subprocess, sys; del os.environ[sys.argv[1]]; "
        start += "sys.exit(subprocess.call([sys.executable, '-c', sys.argv[2]]))"
        found = below_run(sys.executable, "-c", start, how, code)
    options = [how] if how.startswith("-") else []
    assert found == output([sys.executable, *options, "-c", code])
    assert below_run(sys.executable, "-c", code) != output([sys.executable, "-c", code])


def test_the_sitecustomize_of_the_user_runs(tmp_path: Any, other_environment: str):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.was_here = __file__\n")
    code = "import sitecustomize, sys; print(sys.was_here, sitecustomize.__file__)"
    for python in (sys.executable, other_environment):
        said = below_run(python, "-c", code, PYTHONPATH=str(tmp_path)).split()
        assert said == [str(tmp_path / "sitecustomize.py")] * 2


def test_uninstalling_ends_it_before_tensorflow_is_imported():
    code = (
        "import importlib.util, sys, tf_lossscale; tf_lossscale.uninstall()\n"
        "print([type(each).__name__ for each in sys.meta_path if not isinstance(each, type)])\n"
        "print(type(importlib.util.find_spec('tensorflow').loader).__module__)\n"
    )
    said = below_run(sys.executable, "-W", "ignore", "-c", code).splitlines()
    assert "_InstallAtFirstImport" not in said[0]
    assert said[1].startswith("_frozen_importlib")


@pytest.mark.slow
def test_first_imports_from_several_threads_do_not_wait_for_ever():
    program = os.path.join(REPOSITORY, "tests", "shim", "cli", "programs", "threads.py")
    said = below_run(sys.executable, "-W", "ignore", program, "2")
    assert json.loads(said.splitlines()[-1]) == {}
