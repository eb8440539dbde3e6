"""Applies deliberate defects one by one, each in a copy of the tree: which are caught by a test?

    python tests/defects [--check] [WORD ...]     # those whose file or text has a WORD, or all

Prints a table of the defects and what the test of each (`table.py`) says. The exit status is 0 if
every defect is caught. `--check` applies none: it looks for the texts to replace, and for modules
without a defect.

Two processes work, each with a copy of its own. They run each test in a fork that has imported
TensorFlow already, which takes longer than most tests of the table.
"""

import ast
import contextlib
import functools
import importlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import pytest
from table import COMPLETE, DEFECTS, WITHOUT_DEFECT, Defect

ROOT = Path(__file__).resolve().parents[2]
COPIES = 2
LIMIT = 1200  # seconds, after which a test counts as failed
FAILED = 1  # pytest's exit status for failed tests; others mean that none was run
ERRORS = 2  # pytest's where a test module cannot be imported, which a defect may cause

CAUGHT, ESCAPED, GONE, BROKEN = "caught", "ESCAPED", "NOT ONCE THERE", "FAILS WITHOUT"

FORK = multiprocessing.get_context("fork")


class Copy:
    """A copy of the tree, from which this process and its children import both packages."""

    def __init__(self, folder: Path):
        self._tree = folder / "tree"
        done = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        for name in filter(None, done.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self._tree / name)
        packages = folder / "packages"
        packages.mkdir()
        (packages / "tf_lossscale").symlink_to(self._tree / "tf_lossscale")
        (packages / "tf_lossscale_codemods").symlink_to(self._tree / "codemods")
        sys.path[0] = str(packages)
        # Compiled files are chosen by the time and size of the source, which a defect may keep.
        sys.dont_write_bytecode = True
        os.environ.update(
            PYTHONPATH=str(packages),
            PYTHONDONTWRITEBYTECODE="1",
            TFLS_TEST_SIZE="small",
            OPENBLAS_NUM_THREADS="1",  # NumPy's threads would not survive a fork
        )

    def status(self, test: str) -> int:
        """The exit status of pytest on a test."""
        process = FORK.Process(target=self._run, args=(test,))
        process.start()
        process.join(LIMIT)
        status = process.exitcode
        _kill_group(process.pid)
        process.join()
        return FAILED if status is None else status

    def _run(self, test: str) -> None:
        """Runs pytest on a test in this process, a fork, and ends it."""
        os.setsid()
        os.chdir(self._tree)
        status = pytest.main(["-x", "-q", "-p", "no:cacheprovider", test])
        os._exit(status)  # whatever the test has left running

    def verdict(self, defect: Defect) -> str:
        """What the test says about the tree with a defect."""
        (module,) = modules_with(defect)
        file = self._tree / module
        original = file.read_text(encoding="utf-8")
        file.write_text(original.replace(defect.text, defect.replacement), encoding="utf-8")
        try:
            status = self.status(defect.test)
        finally:
            file.write_text(original, encoding="utf-8")
        if status == 0:
            return ESCAPED
        return CAUGHT if status in (FAILED, ERRORS) else BROKEN


_own: Optional[Copy] = None
"""The copy of this process, one of the two that apply defects."""


def _make_copy(folder: str) -> None:
    """Sets this process up for tests: quiet, with a copy, and with what takes long to import."""
    global _own
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)
    _own = Copy(Path(tempfile.mkdtemp(dir=folder)))
    for name in ("hypothesis", "libcst", "tensorflow"):
        importlib.import_module(name)


def _kill_group(pid: Optional[int]) -> None:
    """Kills what is left of a test and of the processes that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid or 0, signal.SIGKILL)


def verdicts(test: str, defects: List[Defect]) -> List[Tuple[Defect, str, float]]:
    """What a test says about its defects, and after how many seconds.

    A test that does not pass without a defect proves nothing.
    """
    assert _own is not None
    found = []
    for defect in defects:
        start = time.monotonic()
        verdict = _own.verdict(defect)
        found.append((defect, verdict, time.monotonic() - start))
    is_proof = _own.status(test) == 0
    return [
        (defect, verdict if is_proof or verdict != CAUGHT else BROKEN, seconds)
        for defect, verdict, seconds in found
    ]


@functools.lru_cache(maxsize=None)
def sources(place: str) -> Dict[Path, str]:
    """The text of each module of a folder, or of one module, by its relative path."""
    path = ROOT / place
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return {file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in files}


def modules_with(defect: Defect) -> List[Path]:
    """The modules that have the text, once for each time they have it."""
    found: List[Path] = []
    for module, source in sources(defect.place).items():
        found += [module] * source.count(defect.text)
    return found


def unproven_modules() -> Iterator[str]:
    """Yields what is wrong with the modules of the packages in which each must have a defect."""
    with_defect = {str(module) for defect in DEFECTS for module in modules_with(defect)}
    needed = {
        str(module)
        for package in COMPLETE
        for module, source in sources(package).items()
        if ast.parse(source).body[1:]  # more than a docstring
    }
    for module in sorted(needed - with_defect - set(WITHOUT_DEFECT)):
        yield f"{module} has no defect: add one to table.py, or the reason why there is none"
    for module in sorted(set(WITHOUT_DEFECT) - (needed - with_defect)):
        yield f"{module} needs no exception in table.py: it has a defect, or is gone"


def row(defect: Defect, verdict: str, seconds: float = 0) -> str:
    """A line of the table."""
    text = " ".join(defect.text.split())
    text = text if len(text) <= 60 else text[:57] + "..."
    where = ", ".join(map(str, modules_with(defect))) or defect.place
    return f"{verdict:<14} {seconds:5.1f} s  {where:<42} {text:<61} {defect.test}"


def run(defects: List[Defect]) -> List[str]:
    """Applies the defects, and prints a line for each; returns their verdicts."""
    by_test: Dict[str, List[Defect]] = {}
    for defect in defects:
        by_test.setdefault(defect.test, []).append(defect)
    found = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(
        COPIES, FORK, _make_copy, (folder,)
    ) as processes:
        jobs = [processes.submit(verdicts, *job) for job in by_test.items()]
        for job in as_completed(jobs):
            for defect, verdict, seconds in job.result():
                print(row(defect, verdict, seconds), flush=True)
                found.append(verdict)
    return found


def main(arguments: List[str]) -> int:
    """Returns the exit status."""
    only_check = "--check" in arguments
    words = [word for word in arguments if word != "--check"]
    chosen = [
        defect
        for defect in DEFECTS
        if not words or any(word in f"{modules_with(defect)} {defect.text}" for word in words)
    ]
    gone = [
        defect
        for defect in chosen
        if len(modules_with(defect)) != 1 or not (ROOT / defect.test.partition("::")[0]).exists()
    ]
    for defect in gone:
        print(row(defect, GONE))
    if only_check:
        unproven = list(unproven_modules())
        print(*unproven, f"{len(chosen)} defects; {len(gone)} cannot be applied", sep="\n")
        return 1 if gone or unproven else 0
    results = run([defect for defect in chosen if defect not in gone])
    missed = len(gone) + sum(verdict != CAUGHT for verdict in results)
    print(f"{len(chosen)} defects; {missed} not caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
