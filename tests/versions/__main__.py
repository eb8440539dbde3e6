"""Runs the core of the shim's tests on every supported TensorFlow and Keras, and prints a table.

Usage: python tests/versions [FOLDER] [NAME ...]. The environments are made in FOLDER (`.versions`).
A missing interpreter or package is a failure.
"""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
OLD_PROTOBUF = ("protobuf<3.21",)
OLD_NUMPY = ("numpy<2",)
HEADER = ("| TensorFlow | Keras | Python |", "|---|---|---|")


class Version(NamedTuple):
    """One TensorFlow with one Keras: the Python it runs on, and what has to be installed."""

    tensorflow: str
    keras: str
    """`2`, `3.3.3` or the like, or `tf-keras`."""
    python: str
    requirements: List[str]

    @property
    def name(self) -> str:
        """Names the environment: `tf2.15`, `tf2.16-keras3.3`, `tf2.21-tf-keras`."""
        short = "tf" + ".".join(self.tensorflow.split(".")[:2])
        if self.keras == "2":
            return short
        keras = self.keras if self.keras == "tf-keras" else "keras" + self.keras
        return short + "-" + ".".join(keras.replace(".*", "").split(".")[:2])


def _keras_2(release: str, python: str, *more: str) -> Version:
    return Version(release, "2", python, ["tensorflow-cpu==" + release, *more])


def _keras_3(tensorflow: str, keras: str, python: str) -> Version:
    pins = [f"tensorflow-cpu=={tensorflow}", f"keras=={keras}"]
    return Version(tensorflow, keras, python, pins)


VERSIONS = [
    Version("1.15.5", "2", "3.7", ["tensorflow==1.15.5", "protobuf<3.21", "numpy<1.19", "h5py<3"]),
    _keras_2("2.3.4", "3.8", *OLD_PROTOBUF),
    _keras_2("2.4.4", "3.8", *OLD_PROTOBUF),
    _keras_2("2.5.3", "3.9", *OLD_PROTOBUF),
    _keras_2("2.6.5", "3.9", "keras==2.6.0", *OLD_PROTOBUF),
    _keras_2("2.7.4", "3.9", *OLD_PROTOBUF, *OLD_NUMPY),
    _keras_2("2.8.4", "3.9", *OLD_PROTOBUF, *OLD_NUMPY),
    _keras_2("2.9.3", "3.10", *OLD_NUMPY),
    _keras_2("2.10.1", "3.10", *OLD_NUMPY),
    _keras_2("2.11.1", "3.10", *OLD_NUMPY),
    _keras_2("2.12.1", "3.11", *OLD_NUMPY),
    _keras_2("2.13.1", "3.11", *OLD_NUMPY),
    _keras_2("2.14.1", "3.11", *OLD_NUMPY),
    _keras_2("2.15.1", "3.11"),
    _keras_3("2.16.1", "3.0.5", "3.11"),
    _keras_3("2.16.2", "3.3.3", "3.12"),
    _keras_3("2.17.*", "3.4.1", "3.12"),
    _keras_3("2.18.*", "3.6.0", "3.12"),
    _keras_3("2.19.*", "3.8.0", "3.12"),
    _keras_3("2.20.*", "3.12.*", "3.13"),
    _keras_3("2.21.*", "3.*", "3.12"),
    Version("2.21.*", "tf-keras", "3.13", ["tensorflow-cpu==2.21.*", "tf-keras==2.21.*"]),
]


def table(versions: List[Version]) -> List[str]:
    """Returns the rows for these versions; docs/which-keras.md has the table of all of them."""
    rows = []
    for version in versions:
        tensorflow = version.tensorflow.replace(".*", "")
        keras = "newest 3" if version.keras == "3.*" else version.keras.replace(".*", "")
        rows.append(f"| {tensorflow} | {keras} | {version.python} |")
    return rows


def core_tests() -> List[str]:
    """The paths of the core tests; tox runs them on some of the versions."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    return settings["core"]["tests"].split()


def environment(folder: Path, version: Version) -> Path:
    """The Python of an environment, which is made if it is not there."""
    place = folder / version.name
    if not (place / ".ready").exists():
        python = shutil.which("python" + version.python)
        if python is None:
            raise FileNotFoundError(f"python{version.python} is not installed")
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--upgrade", "pip"], check=True)
        tools = ["pytest", "pytest-timeout", "hypothesis", "absl-py"]
        subprocess.run([*pip, *tools, *version.requirements], check=True)
        (place / ".ready").touch()
    return place / "bin" / "python"


def run(folder: Path, version: Version) -> str:
    """Runs the tests on one version; the result is pytest's last line, or what failed before."""
    try:
        python = environment(folder, version)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"failed: {error}"
    variables = dict(os.environ, CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    if version.keras == "tf-keras":
        variables["TF_USE_LEGACY_KERAS"] = "1"
    command = [str(python), "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *core_tests()], cwd=ROOT, env=variables, capture_output=True, text=True
    )
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0:
        print(done.stdout[-3000:], done.stderr[-1000:], file=sys.stderr)
        return "failed: " + last
    return re.sub(r" in .*", "", last)


def main(arguments: List[str]) -> int:
    """Prints a row for each version as soon as it is known."""
    folder = Path(arguments[0] if arguments else ROOT / ".versions").resolve()
    names = arguments[1:] or [version.name for version in VERSIONS]
    print(HEADER[0] + " core tests |\n" + HEADER[1] + "---|", flush=True)
    failed = 0
    for version in VERSIONS:
        if version.name in names:
            result = run(folder, version)
            failed += result.startswith("failed")
            print(f"{table([version])[0]} {result} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
