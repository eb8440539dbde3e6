"""Every random program is migrated as its grammar says, and the committed bundle is current.

What the migrated programs compute is proved by `tests/shim/programs`, on every TensorFlow.
"""

import collections
import os

import pytest

from .bundle import BUNDLE, COUNT, SHARES, bundled, programs, read_bundle
from .migration import complaints, migrated

SIZES = {"small": COUNT, "long": 10 * COUNT}
CASES = list(programs(SIZES[os.environ.get("TFLS_TEST_SIZE", "small")]))


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.name)
def test_program_is_migrated_as_it_must_be(program):
    for stage in program.expects:
        result = migrated(program, stage)
        assert complaints(program, stage, result) == [], (
            f"{stage}\n{program.source}\n{result.source}"
        )
        compile(result.source, program.name, "exec")


def test_bundle_is_what_the_rules_make_today():
    written = {line["name"]: line for line in read_bundle(BUNDLE)}
    today = {program.name: bundled(program) for program in programs(COUNT)}
    assert sorted(written) == sorted(today)
    stale = sorted(name for name in today if today[name] != written[name])
    assert not stale, f"run `make programs`: {len(stale)} programs differ, the first is {stale[0]}"


def test_enough_programs_of_every_family():
    families = collections.Counter(line["family"] for line in read_bundle(BUNDLE))
    assert sum(families.values()) >= 300
    assert len(families) == len(SHARES)
    assert min(families.values()) >= 15
