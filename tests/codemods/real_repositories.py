"""Tries the command on checkouts of real repositories: `python real_repositories.py FOLDER ...`.

Each is copied, migrated to every target, and checked: results compile, a second run changes
nothing, and each line of code that still uses a legacy symbol is in the report. Prints the table in
tests/codemods/README.md; exits with status 1 if a check fails.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Iterator, List, Tuple

from command_line import PROGRAM
from execution.leftovers import bindings_of, path_of

TARGETS = (["--to", "shim"], ["--keras", "2"], ["--keras", "3"], ["--keras", "auto"])
LEGACY = {
    "CrossShardOptimizer",
    "cross_replica_sum",
    "FixedLossScaleManager",
    "LossScaleManager",
    "ExponentialUpdateLossScaleManager",
    "FixedLossScale",
    "DynamicLossScale",
    "MixedPrecisionLossScaleOptimizer",
    "enable_mixed_precision_graph_rewrite",
}
CURRENT = re.compile(r"tf_lossscale\b|tensorflow\.compat\.v1\b")
"""The beginning of paths that every TensorFlow has."""
COUNTS = ("files", "changed", "safe", "unsafe", "manual", "failed")


def main() -> int:
    wrong = 0
    print("| repository | commit | target | " + " | ".join(COUNTS) + " | seconds |")
    print("|---|---|---|" + "---:|" * (len(COUNTS) + 1))
    for folder in sys.argv[1:]:
        command = ["git", "-C", folder, "log", "-1", "--format=%h, %cs"]
        head = subprocess.check_output(command, text=True).strip()
        name = os.path.basename(os.path.normpath(folder)).replace("+", "/")
        for target in TARGETS:
            with tempfile.TemporaryDirectory() as work:
                copy = os.path.join(work, "copy")
                shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
                report, seconds = migrate(copy, target)
                counts = " | ".join(str(report["summary"][count]) for count in COUNTS)
                chosen = f": {report['keras']['target']}" if "auto" in target else ""
                shown = f"`{' '.join(target)}`{chosen}"
                print(f"| {name} | {head} | {shown} | {counts} | {seconds:.1f} |")
                for problem in problems(copy, target, report):
                    wrong = 1
                    print(f"{name} {target}: {problem}", file=sys.stderr)
    return wrong


def migrate(folder: str, target: List[str]) -> Tuple[dict, float]:
    start = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "migrate", "--write", *target, "--report", "json", "."],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return json.loads(ran.stdout), time.perf_counter() - start


def problems(folder: str, target: List[str], report: dict) -> Iterator[str]:
    again, _ = migrate(folder, target)
    if again["summary"]["changed"]:
        yield "a second run changes files"
    reported = {(finding["path"], finding["line"]) for finding in again["findings"]}
    failed = {error["path"] for error in report["errors"]}
    for directory, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(directory, name)
            if name.endswith(".py") and os.path.isfile(path):
                shown = os.path.relpath(path, folder)
                with open(path, "rb") as file:
                    source = file.read()
                for line in legacy_lines(source):
                    if shown not in failed and (shown, line) not in reported:
                        yield f"{shown}:{line} has a legacy name that is not reported"
                changed = any(finding["path"] == shown for finding in report["findings"])
                if changed and shown not in failed and (shown, 1) not in reported:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        compile(source, shown, "exec")


def legacy_lines(source: bytes) -> Iterator[int]:
    """Lines of code that name a legacy symbol past the shim, compat.v1 and the file's own names.

    What a name means is looked up in the file's imports, which can be far from its uses, as in
    Cerebras/modelzoo.
    """
    if not any(name.encode() in source for name in LEGACY):
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    bound = bindings_of(tree)
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            paths = [f"{node.module}.{name}" for name in names if name in LEGACY]
        elif isinstance(node, ast.Attribute) and node.attr in LEGACY:
            paths = [path_of(node, bound) or ""]
        elif isinstance(node, ast.Name) and node.id in LEGACY - own:
            paths = [bound.get(node.id, "")]
        else:
            continue
        if any(not CURRENT.match(path) for path in paths):
            yield node.lineno


if __name__ == "__main__":
    sys.exit(main())
