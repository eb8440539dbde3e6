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
from typing import Collection, Dict, Iterator, List, Tuple

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
    """What is wrong with a repository after its migration."""
    again, _ = migrate(folder, target)
    if again["summary"]["changed"]:
        yield "a second run changes files"
    reported = {(finding["path"], finding["line"]) for finding in again["findings"]}
    changed = {finding["path"] for finding in report["findings"] if finding["applied"]}
    failed = {error["path"] for error in report["errors"]}
    sources = dict(python_files(folder))
    functions = {name for source in sources.values() for name in functions_of_shim(source)}
    for shown, source in sources.items():
        if shown in failed:
            continue
        for line in legacy_lines(source, functions):
            if (shown, line) not in reported:
                yield f"{shown}:{line} has a legacy name that is not reported"
        if shown in changed:
            check_syntax(source, shown)


def python_files(folder: str) -> Iterator[Tuple[str, bytes]]:
    """The Python files below a folder, by their paths in it."""
    for directory, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(directory, name)
            if name.endswith(".py") and os.path.isfile(path):
                with open(path, "rb") as file:
                    yield os.path.relpath(path, folder), file.read()


def check_syntax(source: bytes, name: str):
    """Raises SyntaxError if a source does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(source, name, "exec")


def functions_of_shim(source: bytes) -> Iterator[str]:
    """The functions that return a module of the shim, as those of tensor2tensor's `contrib`."""
    for function in ast.walk(parsed(source) if b"tf_lossscale" in source else ast.Module([], [])):
        if not isinstance(function, ast.FunctionDef):
            continue
        bound = bindings_of(ast.Module(function.body, []))
        returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        paths = [path_of(value, bound) if value is not None else "" for value in returned]
        if paths and all((path or "").startswith("tf_lossscale.") for path in paths):
            yield function.name


def parsed(source: bytes) -> ast.Module:
    """The tree of a source; an empty one if Python cannot parse it."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def legacy_lines(source: bytes, functions: Collection[str] = ()) -> Iterator[int]:
    """Lines of code that name a legacy symbol past the shim, compat.v1 and the file's own names.

    What a name means is looked up in the file's imports, which can be far from its uses, as in
    Cerebras/modelzoo.

    Args:
      source: the source.
      functions: functions that return a module of the shim; what is read from it is the shim's.
    """
    if not any(name.encode() in source for name in LEGACY):
        return
    tree = parsed(source)
    bound = bindings_of(tree)
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    for node in nodes:
        if any(not CURRENT.match(path) for path in paths_of(node, bound, own, functions)):
            yield node.lineno


def paths_of(
    node: ast.AST, bound: Dict[str, str], own: Collection[str], functions: Collection[str]
) -> List[str]:
    """The paths that a node with a legacy name means; an empty one if that is not known."""
    if isinstance(node, ast.ImportFrom):
        names = [alias.name for alias in node.names]
        return [f"{node.module}.{name}" for name in names if name in LEGACY]
    if isinstance(node, ast.Attribute) and node.attr in LEGACY:
        call = node.value if isinstance(node.value, ast.Call) else None
        if getattr(getattr(call, "func", None), "attr", "") in functions:
            return []
        return [path_of(node, bound) or ""]
    if isinstance(node, ast.Name) and node.id in LEGACY and node.id not in own:
        return [bound.get(node.id, "")]
    return []


if __name__ == "__main__":
    sys.exit(main())
