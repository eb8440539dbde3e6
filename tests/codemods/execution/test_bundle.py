"""The programs are migrated as their grammars say, and the committed bundles are current.

`make test` looks at a part of the programs, `make test-long` at all and at more. What the migrated
programs compute is proved by `tests/shim/programs`, on every TensorFlow.
"""

import collections
import os

import pytest
from tf_lossscale_codemods.model import Options
from two_steps import both_ways, left, meaning, names_to_migrate_on_shim
from verbs import transform_once as transform

from .bundle import (
    COUNT,
    FILES,
    GUARDS,
    SHARES,
    bundled,
    bundled_files,
    bundled_guards,
    programs,
    read_bundle,
)
from .file_programs import file_programs
from .guard_programs import guard_programs
from .leftovers import leftovers
from .migration import STAGES, complaints, migrated

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
EVERY = 1 if LONG else 8
PROGRAMS = list(programs(COUNT))
CASES = (list(programs(10 * COUNT)) if LONG else PROGRAMS)[::EVERY]
TWO_STEPS = [one for one in PROGRAMS[:: 1 if LONG else 17] if one.family != "cross_shard"]
"""The shim's cross-shard optimizer stays: TensorFlow's needs a TPU."""
MODULE_THAT_STAYS = "tensorflow.train.experimental"
"""A module that every TensorFlow has; only some of its names are legacy."""
BUNDLES = {
    "bundle": (PROGRAMS, lambda: map(bundled, PROGRAMS[::EVERY])),
    "guards": (guard_programs(GUARDS), lambda: bundled_guards(1 if LONG else 5)),
    "files": (file_programs(FILES), lambda: bundled_files(FILES if LONG else FILES // 5)),
}
"""The programs of each bundle, and some of its lines as the rules make them today."""


@pytest.mark.parametrize("bundle", BUNDLES)
def test_bundle_is_what_the_rules_make_today(bundle):
    whole, today = BUNDLES[bundle]
    written = {line["name"]: line for line in read_bundle(bundle)}
    assert sorted(written) == sorted(program.name for program in whole)
    stale = sorted(line["name"] for line in today() if line != written[line["name"]])
    assert not stale, f"run `make programs`: {len(stale)} programs differ, the first is {stale[0]}"


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.name)
def test_program_is_migrated_as_it_must_be(program):
    for stage in program.expects:
        result = migrated(program, stage)
        assert complaints(program, stage, result) == [], (
            f"{stage}\n{program.source}\n{result.source}"
        )
        compile(result.source, program.name, "exec")


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("program", TWO_STEPS, ids=lambda program: program.name)
def test_two_steps_end_where_one_does(program, keras):
    ways = both_ways(program.source.encode(), Options(keras=keras))
    if b"tfls.keras.mixed_precision.LossScaleOptimizer" not in ways.shim.source:
        assert meaning(ways.second.source) == meaning(ways.direct.source)
    assert not left(ways.second) - left(ways.direct)
    if names_to_migrate_on_shim(ways.second.source):
        assert ways.second.findings, "left on the shim without a word"


def test_enough_programs_of_every_family():
    families = collections.Counter(line["family"] for line in read_bundle("bundle"))
    assert sum(families.values()) >= 300
    assert len(families) == len(SHARES)
    assert min(families.values()) >= 15


@pytest.mark.parametrize(
    "program", guard_programs(7 if LONG else 499), ids=lambda program: program.name
)
@pytest.mark.parametrize("stage", ["shim", "final2", "final3", "unsafe2"])
def test_guard_is_left_or_renamed_as_a_whole(program, stage):
    """And reported, however it is written."""
    options = STAGES[stage]
    result = transform(program.source.encode(), options)
    assert result.error is None
    after = result.source.decode()
    stays = all(line in after for line in program.legacy)
    reported = [one for one in result.findings if one.code == "LS908"]
    if program.is_left:
        assert stays
        assert stage == "final3" or after == program.source
        assert {one.code for one in result.findings if one.applied} <= {"LS401"}
        places = [program.source.split("\n")[one.line - 1] for one in reported]
        assert len(places) == program.source.count(program.legacy[0])
        assert all(program.legacy[0] in place for place in places)
    if program.is_guard and leftovers(after):
        assert stays
        assert reported or any(one.is_left for one in result.findings)
    if not program.is_guard:
        assert not reported
    again = transform(result.source, options)
    assert again.source == result.source
    assert left(again) == left(result)


@pytest.mark.parametrize("stage", ["shim", "final2", "final3"])
def test_every_legacy_name_of_several_files_is_rewritten_or_reported(stage):
    rewritten = 0
    for line in read_bundle("files"):
        keeps_guards = line["name"].startswith("guards")  # an old branch stays, and is no work left
        if not line["left"][stage] and not keeps_guards:
            found = leftovers("\n".join(line["after"][stage].values()))
            assert set(found) <= {MODULE_THAT_STAYS}, line["name"]
            rewritten += 1
    assert rewritten >= FILES // 5


def test_programs_have_several_files_and_are_always_the_same():
    first, second = list(file_programs(60)), list(file_programs(60))
    assert first == second
    assert all(2 <= len(program.files) <= 9 for program in first)
    assert len({program.family for program in first}) >= 6
