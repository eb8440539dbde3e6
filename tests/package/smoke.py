"""Installs the wheel in a fresh environment and uses it as a stranger would.

The wheel is built from the sdist (so does `python -m build`), so one of them is installed.

    python tests/package/smoke.py DIRECTORY               # holds one wheel and one sdist
    python tests/package/smoke.py DIRECTORY PYTHON ...    # installs the wheel on each interpreter

Run by `make package` and `.ci/run`, outside the checkout, so that nothing is found by accident.
"""

import glob
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from typing import List

# Where the project is published, once it is: the page must link to it, and to nothing before.
HOME = runpy.run_path("tf_lossscale/_about.py")["HOME"]
ALLOWED_TOP_LEVEL = {"tf_lossscale", "tf_lossscale_codemods"}
LEGACY = """\
from tensorflow.contrib.mixed_precision import FixedLossScaleManager

manager = FixedLossScaleManager(128)
"""


def only(pattern: str) -> str:
    found = glob.glob(pattern)
    assert len(found) == 1, f"{pattern} matches {found}"
    return found[0]


def check_contents(wheel: str, sdist: str):
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == ALLOWED_TOP_LEVEL, f"the wheel puts {sorted(top)} into site-packages"
    for package in sorted(ALLOWED_TOP_LEVEL):
        assert package + "/py.typed" in names, package
    assert any(name.endswith("/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        files = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"setup.cfg", "setup.py", "pyproject.toml", "codemods/__init__.py"} <= files
    # Whoever packages the source runs its tests and builds its documentation.
    tracked = [
        path.as_posix()
        for top in ("tests", "docs", "examples")
        for path in pathlib.Path(top).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert len(tracked) > 500
    assert set(tracked) <= files, sorted(set(tracked) - files)[:5]
    assert {".ci/retry", "Makefile", "mkdocs.yml", "tox.ini"} <= files
    metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
    check_metadata(zipfile.ZipFile(wheel).read(metadata).decode())


def check_metadata(text: str):
    head, _, readme = text.partition("\n\n")
    fields = [line.split(": ", 1) for line in head.splitlines() if ": " in line]
    links = dict(value.split(", ", 1) for key, value in fields if key == "Project-URL")
    assert ({"Documentation", "Changelog", "Issues"} if HOME else set()) == set(links), links
    assert {"Author", "Keywords"} <= {key for key, _ in fields}
    for requirement in ("tensorflow<", "tf-keras<"):
        assert any(
            key == "Requires-Dist" and value.startswith(requirement) for key, value in fields
        )
    relative = re.findall(r"\]\((?!https://)[^)]*\)", readme)
    assert not relative, f"links that the package page cannot follow: {relative}"


class Environment:
    """A fresh virtual environment, and what is run in it, in its own folder.

    Args:
      folder: an empty folder.
      python: the interpreter to make it with.
    """

    def __init__(self, folder: str, python: str):
        self.folder = folder
        self._bin = os.path.join(folder, "venv", "bin")
        self._variables = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        }
        subprocess.run([python, "-m", "venv", os.path.join(folder, "venv")], check=True)

    def run(self, *command: str, status: int = 0) -> str:
        """Runs a command of the environment, which must end with `status`; returns its output."""
        done = subprocess.run(
            [os.path.join(self._bin, command[0]), *command[1:]],
            cwd=self.folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, (command, done.returncode, done.stdout)
        return done.stdout


def check_python(wheel: str, python: str):
    """The wheel can be installed on an interpreter, and the command shows its version."""
    version = os.path.basename(wheel).split("-")[1]
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(folder, python)
        environment.run("pip", "install", "--quiet", "--no-compile", wheel)
        assert environment.run("tf-lossscale", "--version") == f"tf-lossscale {version}\n"


def check_installed(wheel: str):
    """The wheel can be installed, and its commands work."""
    with tempfile.TemporaryDirectory() as folder:
        run = Environment(folder, sys.executable).run
        run("pip", "install", "--quiet", "--no-compile", wheel)
        run("python", "-c", "import tf_lossscale, sys; assert 'tensorflow' not in sys.modules")
        message = run(
            "python",
            "-c",
            "import tf_lossscale as tfls\n"
            "try: tfls.contrib.mixed_precision.LossScaleOptimizer\n"
            "except ImportError as error: print(error)",
        )
        assert "pip install" in message, message
        assert "migrate" in run("tf-lossscale", "--help")
        assert "LS101" in run("tf-lossscale", "rules")
        assert "LS102" in run("tf-lossscale", "explain", "LS102")
        script = os.path.join(folder, "train.py")
        with open(script, "w") as out:
            out.write(LEGACY)
        assert "+from tf_lossscale" in run("tf-lossscale", "migrate", script, status=1)
        run("tf-lossscale", "migrate", "--write", script)
        with open(script) as result:
            assert "tf_lossscale" in result.read()


def main(arguments: List[str]):
    folder, *pythons = arguments
    wheel = only(os.path.join(folder, "*.whl"))
    for python in pythons:
        check_python(os.path.abspath(wheel), python)
        print(f"installed with {python}: {os.path.basename(wheel)}")
    if pythons:
        return
    sdist = only(os.path.join(folder, "*.tar.gz"))
    check_contents(wheel, sdist)
    check_installed(os.path.abspath(wheel))
    print(f"installed and used: {os.path.basename(wheel)}")


if __name__ == "__main__":
    main(sys.argv[1:])
