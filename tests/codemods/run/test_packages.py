"""Random packages: one way for each group of symbols, no second edit, and no order that matters.

`make test` migrates a few packages, `make test-long` a thousand; what the migrated packages compute
is compared by `tests/shim/programs/test_several_files.py`.
"""

import ast
import collections
import json
import os
import re

import pytest
from execution.leftovers import LEGACY, bindings_of, path_of
from programs.packages import package

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
SEEDS = range(1000 if LONG else 16)
PART = 250
"""Packages in one run."""
PARTS = [SEEDS[start : start + PART] for start in range(0, len(SEEDS), PART)]
TARGETS = {"shim": ["--to", "shim"], "2": ["--keras", "2"], "3": ["--keras", "3"]}
GROUPS = {
    # `from_loss_scale` of the shim makes an instance of the final class of the program.
    "keras": re.compile(r"\.keras\.mixed_precision\.(?:experimental\.)?LossScaleOptimizer"),
    "policies": re.compile(
        r"\.keras\.mixed_precision\.(?:experimental\.)?(?:Policy|global_policy|set_\w*policy)"
    ),
    "v1": re.compile(r"\.(?:FixedLossScale|DynamicLossScale|LossScale|enable_mixed_\w+)$"),
    "cross-shard": re.compile(r"\.tpu\."),
}
SILENCED = "# lossscale: ignore"
OPTIMIZER_V2 = "optimizer_v2"
"""A private module without a symbol; tests for its class are conditions."""
EXPECTED = re.compile(r"# expect (LS\d+)( below)?")


def names_of(source):
    """The dotted paths that a source names, each with its line."""
    tree = ast.parse(source)
    bound = bindings_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            yield path_of(node, bound) or "", node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def ways(sources) -> dict:
    """The modules that the symbols of each group come from."""
    found = {group: set() for group in GROUPS}
    for source in sources:
        if SILENCED in source:
            continue  # what comes from a silenced import cannot be distinguished from other names
        for path, _ in names_of(source):
            for group, pattern in GROUPS.items():
                if pattern.search(path):
                    found[group].add(path.rpartition(".")[0])
    return found


class Run:
    """The packages of a part, each in a directory of its own."""

    def __init__(self, command_line, seeds, options):
        self.command_line = command_line
        self.options = options
        self.sources = {seed: package(seed).files for seed in seeds}
        for seed, files in self.sources.items():
            for name, source in files.items():
                command_line.path(f"{seed}/{name}").write_bytes(source.encode())

    def migrate(self, *options):
        ran = self.command_line.run("migrate", *options, *self.options, "--report", "json")
        assert ran.status in (0, 1), ran.err
        return ran.out

    def written(self):
        """The findings by file and line, and the files."""
        report = json.loads(self.migrate("--write", "--allow-dirty"))
        assert not report["errors"]
        found = collections.defaultdict(list)
        for finding in report["findings"]:
            found[finding["path"], finding["line"]].append(finding)
        return found, self.command_line.bytes_on_disk()

    def after(self, files, seed):
        """The Python sources of a package after the run."""
        return {
            name: files[os.path.join(str(seed), name)].decode()
            for name in self.sources[seed]
            if name.endswith(".py")
        }


@pytest.mark.parametrize(
    "target", ["shim", *(pytest.param(target, marks=pytest.mark.slow) for target in "23")]
)
@pytest.mark.parametrize("seeds", PARTS, ids=str)
def test_packages_go_one_way(command_line, seeds, target):
    run = Run(command_line, seeds, TARGETS[target])
    forward = run.migrate("--check", "--jobs", "1", *map(str, seeds))
    backward = run.migrate("--check", "--jobs", "2", *map(str, reversed(seeds)))
    assert forward == backward
    findings, files = run.written()
    again, files_again = run.written()
    wrong = []
    for seed in seeds:
        after = run.after(files, seed)
        wrong += [f"{seed}: {problem}" for problem in two_ways(after.values())]
        wrong += [f"{seed}: {problem}" for problem in unexpected(run.sources[seed], seed, findings)]
        wrong += [f"{seed}: {problem}" for problem in unreported(after, seed, again)]
    wrong += [f"{name} changes again" for name in files if files[name] != files_again[name]]
    wrong += [
        f"{place} again" for place in again if any(finding["applied"] for finding in again[place])
    ]
    assert not wrong, "\n".join(wrong)


def two_ways(sources):
    """The groups of symbols that go more than one way."""
    for group, modules in ways(sources).items():
        roots = {module.partition(".")[0] for module in modules}
        if len(roots) > 1:
            yield f"{group}: {sorted(modules)}"


def unexpected(sources, seed, findings):
    """The lines that want a finding, and get none there or right below."""
    for name, source in sources.items():
        for number, line in enumerate(source.splitlines(), 1):
            wanted = EXPECTED.search(line)
            if wanted is None:
                continue
            path = os.path.join(str(seed), name)
            last = source.count("\n") if wanted[2] else number + 1
            lines = range(number, last + 1)
            near = [finding for line in lines for finding in findings.get((path, line), [])]
            if not any(
                finding["code"].startswith(wanted[1]) and not finding["applied"] for finding in near
            ):
                yield f"{name}:{number} has no {wanted[1]}: {line}"


def unreported(sources, seed, findings):
    """The legacy names that are left without a finding."""
    for name, source in sources.items():
        for path, line in names_of(source) if SILENCED not in source else ():
            place = os.path.join(str(seed), name), line
            if OPTIMIZER_V2 not in path and LEGACY.fullmatch(path) and place not in findings:
                yield f"{name}:{line} is left without a finding: {path}"
