"""Runs the tests of the folders that differ from the main branch, if they need no TensorFlow.

    python tests/changed.py [BASE]     # BASE is `main`; changes that are not committed count

Run by `make check`. `make test` runs everything.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterable, List, Set, Tuple

ROOT = Path(__file__).resolve().parents[1]

WITH_TENSORFLOW = (
    "tests/claims/test_guides.py",
    "tests/claims/test_python_blocks.py",
    "tests/claims/test_troubleshooting.py",
    "tests/codemods/rules/test_upgrade_v2.py",
    "tests/package/test_reference.py",
)
SLOW = (
    "tests/claims/test_exports.py::test_mypy_sees_every_public_name_and_only_those",
    "tests/claims/test_commands.py::test_the_inspection_that_is_shown_is_what_is_printed",
    "tests/claims/test_commands.py::test_the_json_of_an_inspection_has_the_keys_that_are_shown",
)
"""`make types` has just run mypy; an inspection starts TensorFlow."""

ALWAYS = ("tests/claims", "tests/package")
"""What docs, comments and the layout claim can be wrong after any change."""

RECORDS = tuple(
    f"tests/shim/recording/test_{name}.py"
    for name in ("collected_runs", "compare", "reading", "scale_rules", "show")
)
TESTS: Dict[str, Tuple[str, ...]] = {
    "tf_lossscale/_process.py": ("tests/codemods/cli", "tests/shim/cli/test_failing_output.py"),
    "tf_lossscale/_cli/": ("tests/shim/cli/test_failing_output.py",),
    "tf_lossscale/_records/": RECORDS,
    "tf_lossscale/_compare/": RECORDS,
    "codemods/model.py": ("tests/codemods/engine", "tests/codemods/reports"),
}
"""The tests of what has no test folder of its name."""


def changed(base: str) -> List[str]:
    """The paths that differ from `base`, new ones included."""

    def lines(*command: str) -> List[str]:
        done = subprocess.run(
            ["git", *command], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout.splitlines()

    (start,) = lines("merge-base", base, "HEAD")
    return lines("diff", "--name-only", start) + lines("ls-files", "--others", "--exclude-standard")


def tests_of(path: str) -> Iterable[str]:
    """The test files and folders for one changed path, with or without TensorFlow."""
    for start, those in TESTS.items():
        if path.startswith(start):
            yield from those
            return
    top, _, rest = path.partition("/")
    if top == "codemods":
        yield "tests/codemods/" + rest.partition("/")[0]
    elif top == "tf_lossscale":
        yield "tests/shim/" + rest.partition("/")[0].lstrip("_")
    elif top == "tests":
        yield path if os.path.basename(path).startswith("test_") else os.path.dirname(path)


def selected(paths: Iterable[str]) -> Tuple[Set[str], Set[str]]:
    """The tests to run, and the folders whose tests need TensorFlow."""
    found = {test for path in paths for test in tests_of(path) if (ROOT / test).exists()}
    run = {
        test
        for test in found
        if test.startswith(("tests/codemods/", "tests/claims", "tests/package")) or test in RECORDS
    }
    run |= {test for tests in TESTS.values() for test in tests if test in found}
    return run.union(ALWAYS), {test for test in found - run if test.startswith("tests/shim")}


def main(base: str = "main") -> int:
    """Returns the exit status of pytest."""
    run, other = selected(changed(base))
    left_out = [f"--ignore={folder}" for folder in WITH_TENSORFLOW]
    left_out += [f"--deselect={name}" for name in SLOW]
    print("tests:", *sorted(run), flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    status = subprocess.run([*command, *sorted(run), *left_out], cwd=ROOT, check=False).returncode
    if other:
        print("not run, as they need TensorFlow:", *sorted(other))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
