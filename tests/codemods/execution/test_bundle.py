"""The programs are migrated as they must be, and the committed bundles are current.

`make test` looks at a part of the programs, `make test-long` at all. What the migrated programs
compute is proved by `tests/shim/programs`, on every TensorFlow.
"""

import os

import pytest
from tf_lossscale_codemods.model import Options
from two_steps import both_ways, left, meaning, names_to_migrate_on_shim
from verbs import transform_once as transform

from .bundle import BUNDLES, read
from .leftovers import leftovers
from .migration import STAGES, complaints, migrated, migrated_anew

LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
LINES = {name: read(name) for name in BUNDLES}
EVERY = {"bundle": 16, "guards": 10, "files": 10, "packages": 10}
"""Of each bundle, `make test` migrates one program in so many."""
PROGRAMS = LINES["bundle"][:: 1 if LONG else EVERY["bundle"]]
# The shim's cross-shard optimizer stays: TensorFlow's needs a TPU.
TWO_STEPS = [
    program for program in PROGRAMS[:: 1 if LONG else 2] if program["family"] != "cross_shard"
]
MODULE_THAT_STAYS = "tensorflow.train.experimental"
"""A module that every TensorFlow has; only some of its names are legacy."""


def name_of(line):
    return line["name"]


@pytest.mark.parametrize("bundle", BUNDLES)
def test_bundle_is_what_the_rules_make_today(bundle):
    lines = LINES[bundle][:: 1 if LONG else EVERY[bundle]]
    pairs = zip(lines, migrated_anew(bundle, lines))
    stale = [line["name"] for line, today in pairs if line != today]
    assert not stale, f"run `make programs`: {len(stale)} programs differ, the first is {stale[0]}"


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_program_is_migrated_as_it_must_be(program):
    for stage, expected in program["expects"].items():
        source, after = program["before"], migrated(program["before"], stage).source
        assert complaints(source, stage, expected) == [], f"{stage}\n{source}\n{after}"
        compile(after, program["name"], "exec")


@pytest.mark.parametrize("keras", [2, 3])
@pytest.mark.parametrize("program", TWO_STEPS, ids=name_of)
def test_two_steps_end_where_one_does(program, keras):
    ways = both_ways(program["before"].encode(), Options(keras=keras))
    if b"tfls.keras.mixed_precision.LossScaleOptimizer" not in ways.shim.source:
        assert meaning(ways.second.source) == meaning(ways.direct.source)
    assert not left(ways.second) - left(ways.direct)
    if names_to_migrate_on_shim(ways.second.source):
        assert ways.second.findings, "left on the shim without a word"


@pytest.mark.sampled(4, each="program")
@pytest.mark.parametrize("program", LINES["guards"], ids=name_of)
@pytest.mark.parametrize("stage", ["shim", "final2", "final3", "unsafe2"])
def test_branches_of_a_guard_are_renamed(program, stage):
    """Every branch is, and each program has an up-to-date one, so no branch is left to a person."""
    options, source = STAGES[stage], program["before"]
    result = transform(source.encode(), options)
    assert result.error is None
    after = result.source.decode()
    assert leftovers(after) == []
    if "import_module" in source.partition("SGD(0.5)")[2]:
        assert any(finding.is_left for finding in result.findings)
    else:
        assert after != source
    notes = [finding for finding in result.findings if finding.code == "LS908"]
    assert not any(note.is_left for note in notes)
    if not program["is_guard"]:
        assert not notes
    again = transform(result.source, options)
    assert again.source == result.source
    assert left(again) == left(result)


@pytest.mark.parametrize("stage", ["shim", "final2", "final3"])
def test_every_legacy_name_of_several_files_is_rewritten_or_reported(stage):
    rewritten = 0
    for line in LINES["files"]:
        keeps_guards = line["name"].startswith("guards")  # an old branch stays, and is no work left
        if not line["left"][stage] and not keeps_guards:
            found = leftovers("\n".join(line["after"][stage].values()))
            assert set(found) <= {MODULE_THAT_STAYS}, line["name"]
            rewritten += 1
    assert rewritten >= len(LINES["files"]) // 5
