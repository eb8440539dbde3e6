"""Random packages: one way for each group of symbols, no second edit, and no order that matters.

`make test` migrates a few packages, `make test-long` a thousand.
"""

import ast
import json
import os
import re

import pytest
from execution.leftovers import imported, leftovers, path_of
from run.packages import package

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
SEEDS = range(1000 if LONG else 40)
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


def ways(sources) -> dict:
    """The modules that the symbols of each group come from."""
    found = {group: set() for group in GROUPS}
    for source in sources:
        tree = ast.parse(source)
        bound = imported(tree)
        paths = [path_of(node, bound) or "" for node in ast.walk(tree)]
        for group, pattern in GROUPS.items():
            named = [path for path in {*paths, *bound.values()} if pattern.search(path)]
            found[group] |= {path.rpartition(".")[0] for path in named}
    return found


@pytest.fixture
def packages(command_line):
    """The packages, each in a directory of its own."""
    for seed in SEEDS:
        for name, source in package(seed).items():
            command_line.path(f"{seed}/{name}").write_bytes(source.encode())
    return command_line


def migrated(packages, options) -> tuple:
    ran = packages.run("migrate", "--write", "--allow-dirty", *options, "--report", "json")
    assert ran.status in (0, 1), ran.err
    return json.loads(ran.out)["findings"], packages.bytes_on_disk()


@pytest.mark.parametrize("target", TARGETS)
def test_packages_go_one_way(packages, target):
    findings, files = migrated(packages, TARGETS[target])
    for seed in SEEDS:
        names = [os.path.join(str(seed), name) for name in package(seed)]
        sources = [files[name].decode() for name in names]
        for group, modules in ways(sources).items():
            roots = {module.partition(".")[0] for module in modules}
            kinds = {"experimental" in module for module in modules}
            assert len(roots) <= 1, (seed, group, modules)
            assert group != "keras" or len(kinds) <= 1, (seed, group, modules)
        left = [
            finding for finding in findings if finding["path"] in names and not finding["applied"]
        ]
        assert left or not any(map(leftovers, sources)), seed
    again, files_again = migrated(packages, TARGETS[target])
    assert files_again == files
    assert not any(finding["applied"] for finding in again)


@pytest.mark.parametrize("target", TARGETS)
def test_order_of_files_does_not_matter(packages, target):
    reports = []
    for paths in (sorted(map(str, SEEDS)), sorted(map(str, SEEDS), reverse=True)):
        options = ["--check", "--jobs", "1" if reports else "2", "--report", "json"]
        reports.append(packages.run("migrate", *options, *TARGETS[target], *paths).out)
    assert reports[0] == reports[1]
