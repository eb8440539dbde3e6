"""Runs the core of the shim's tests on every supported TensorFlow and Keras, and prints a table.

Usage: python tests/versions [FOLDER] [NAME ...]. The environments are made in FOLDER (`.versions`);
NAME is that of a release in `tf_lossscale/_versions/releases.py`. A missing interpreter or package
is a failure.
"""

import configparser
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import List, Sequence

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tf_lossscale._versions.releases import (  # noqa: E402 - after the path is set
    CANDIDATES,
    RELEASES,
    Release,
)

HEADER = ("| TensorFlow | Keras | Python |", "|---|---|---|")


def table(releases: Sequence[Release]) -> List[str]:
    """Returns the rows for these releases; the README beside this file has all of them."""
    rows = []
    for release in releases:
        tensorflow = release.tensorflow.replace(".*", "")
        keras = "newest 3" if release.keras == "3.*" else release.keras.replace(".*", "")
        rows.append(f"| {tensorflow} | {keras} | {release.python} |")
    return rows


def core_tests() -> List[str]:
    """The paths of the core tests; tox runs them on some of the versions."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    return settings["core"]["tests"].split()


def environment(folder: Path, release: Release) -> Path:
    """The Python of an environment, which is made if it is not there."""
    place = folder / release.name
    if not (place / ".ready").exists():
        python = shutil.which("python" + release.python)
        if python is None:
            raise FileNotFoundError(f"python{release.python} is not installed")
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        install = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        pip = [str(ROOT / ".ci" / "retry"), *install]
        subprocess.run([*pip, "--upgrade", "pip"], check=True)
        tools = ["pytest", "pytest-timeout", "hypothesis", "absl-py"]
        subprocess.run([*pip, *tools, *release.requirements], check=True)
        if release.keras == "tf-keras":  # depends on `tensorflow`, the build with CUDA
            keras = f"tf-keras=={release.tensorflow}"
            subprocess.run([*pip, "--no-deps", keras], check=True)
        (place / ".ready").touch()
    return place / "bin" / "python"


def run(folder: Path, release: Release) -> str:
    """Runs the tests on one release; the result is pytest's last line, or what failed before."""
    try:
        python = environment(folder, release)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"failed: {error}"
    variables = dict(os.environ, CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    variables["TFLS_TEST_CASES"] = "all"
    if release.keras == "tf-keras":
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
    """Prints the rows in the order of the releases, each as soon as it is known."""
    folder = Path(arguments[0] if arguments else ROOT / ".versions").resolve()
    releases = RELEASES + CANDIDATES
    known = [release.name for release in releases]
    names = arguments[1:] or known
    if not set(names) <= set(known):
        print(f"The names are: {', '.join(known)}.", file=sys.stderr)
        return 2
    print(HEADER[0] + " core tests |\n" + HEADER[1] + "---|", flush=True)
    chosen = [release for release in releases if release.name in names]
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for release, result in zip(chosen, pool.map(lambda each: run(folder, each), chosen)):
            failed += result.startswith("failed")
            print(f"{table([release])[0]} {result} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
