"""Applies deliberate defects one by one, each in a copy of the tree: which are caught by a test?

    python tests/defects [--check] [WORD ...]     # those whose file or text has a WORD, or all

Prints a table of the defects and what the test of each (`table.py`) says. The exit status is 0 if
every defect is caught. `--check` only looks for the texts to replace, which takes no time.
"""

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List

from table import DEFECTS, Defect

ROOT = Path(__file__).resolve().parents[2]
COPIES = 2
LIMIT = 1200  # seconds, after which a test counts as failed
FAILED = 1  # pytest's exit status for failed tests; others mean that none was run
ERRORS = 2  # pytest's where a test module cannot be imported, which a defect may cause

CAUGHT, ESCAPED, GONE, BROKEN = "caught", "ESCAPED", "NOT ONCE THERE", "FAILS WITHOUT"


class Copy:
    """A copy of the tree, with both packages importable from it."""

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
        # Compiled files are chosen by the time and size of the source, which a defect may keep.
        self._variables = dict(
            os.environ,
            PYTHONPATH=str(packages),
            PYTHONDONTWRITEBYTECODE="1",
            TFLS_TEST_SIZE="small",
        )

    def status(self, test: str) -> int:
        """The exit status of pytest on a test."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", test]
        quiet = subprocess.DEVNULL
        try:
            return subprocess.run(
                command,
                cwd=self._tree,
                env=self._variables,
                stdout=quiet,
                stderr=quiet,
                check=False,
                timeout=LIMIT,
            ).returncode
        except subprocess.TimeoutExpired:
            return FAILED

    def verdict(self, defect: Defect) -> str:
        """What the test says about the tree with a defect, and at times about that without it."""
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
        return CAUGHT if status in (FAILED, ERRORS) and self._passes(defect.test) else BROKEN

    def _passes(self, test: str) -> bool:
        if test not in _passing:
            _passing[test] = self.status(test) == 0
        return _passing[test]


_passing: Dict[str, bool] = {}
"""Whether each test passes without a defect; one that does not proves nothing."""


def modules_with(defect: Defect) -> List[Path]:
    """The modules that have the text, once for each time they have it; relative paths."""
    found: List[Path] = []
    for file in sorted((ROOT / defect.folder).rglob("*.py")):
        count = file.read_text(encoding="utf-8").count(defect.text)
        found += [file.relative_to(ROOT)] * count
    return found


def row(defect: Defect, verdict: str, seconds: float = 0) -> str:
    """A line of the table."""
    text = " ".join(defect.text.split())
    text = text if len(text) <= 60 else text[:57] + "..."
    where = ", ".join(map(str, modules_with(defect))) or defect.folder
    return f"{verdict:<14} {seconds:5.1f} s  {where:<42} {text:<61} {defect.test}"


def run(defects: List[Defect]) -> List[str]:
    """Applies the defects, and prints a line for each; returns their verdicts."""
    copies: queue.Queue[Copy] = queue.Queue()

    def work(defect: Defect) -> str:
        copy, start = copies.get(), time.monotonic()
        verdict = copy.verdict(defect)
        copies.put(copy)
        print(row(defect, verdict, time.monotonic() - start), flush=True)
        return verdict

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(COPIES) as threads:
        for number in range(COPIES):
            copies.put(Copy(Path(folder, str(number))))
        return list(threads.map(work, defects))


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
    results = [] if only_check else run([defect for defect in chosen if defect not in gone])
    missed = len(gone) + sum(verdict != CAUGHT for verdict in results)
    print(f"{len(chosen)} defects; {missed} {'cannot be applied' if only_check else 'not caught'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
