"""Random programs are migrated as their grammar says, and the committed bundle is current.

`make test` looks at every eighth program of the bundle, `make test-long` at all and at more.
What the migrated programs compute is proved by `tests/shim/programs`, on every TensorFlow.
"""

import collections
import os

import pytest

from .bundle import BUNDLE, COUNT, SHARES, bundled, programs, read_bundle
from .migration import complaints, migrated

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
EVERY = 1 if LONG else 8
CASES = list(programs(10 * COUNT if LONG else COUNT))[::EVERY]


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
    all_programs = list(programs(COUNT))
    assert sorted(written) == sorted(program.name for program in all_programs)
    today = {program.name: bundled(program) for program in all_programs[::EVERY]}
    stale = sorted(name for name in today if today[name] != written[name])
    assert not stale, f"run `make programs`: {len(stale)} programs differ, the first is {stale[0]}"


def test_enough_programs_of_every_family():
    families = collections.Counter(line["family"] for line in read_bundle(BUNDLE))
    assert sum(families.values()) >= 300
    assert len(families) == len(SHARES)
    assert min(families.values()) >= 15
