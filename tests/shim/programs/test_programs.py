"""Random legacy programs compute the same after their migration.

On TensorFlow 1.15 and 2.4 the unmigrated program runs in the same process and everything it prints
must be equal to the bit. Elsewhere the result of the original is the recorded one.
"""

import os
import re

import pytest
from processes import LONG

from programs.comparison import TOLERANCES, differences
from programs.execution import MAJOR_MINOR, execute
from programs.recorded import read_recorded
from programs.texts import key_of, read_programs

KERAS_3 = MAJOR_MINOR not in ("1.15", "2.3", "2.4", "2.8", "2.11", "2.15") and not os.environ.get(
    "TF_USE_LEGACY_KERAS"
)
STAGES = {
    # A program of graph mode runs wherever `compat.v1` does; what it is migrated to must be there.
    "graph": {
        "1.15": ["shim"],
        "2.3": ["shim"],
        "2.4": ["shim", "final2"],
    }.get(MAJOR_MINOR, ["shim", "final2", "final3", "unsafe2"]),
    "keras": {
        "1.15": [],
        "2.3": ["shim"],
    }.get(MAJOR_MINOR, ["shim", "final3", "unsafe3"] if KERAS_3 else ["shim", "final2"]),
}
EVERY = 1 if LONG else 35
EVERY_WITH_ORIGINAL = 1 if LONG else 3  # where the original runs beside it


def kind_of(program):
    return "keras" if program["family"] in ("keras", "traps") else "graph"


PROGRAMS = read_programs()
RECORDED = read_recorded()


def cases():
    for number, program in enumerate(PROGRAMS):
        stages = STAGES[kind_of(program)]
        original_here = program["original"] == MAJOR_MINOR
        seen = []  # stages often give the same program
        for stage in stages:
            if stage not in program["after"]:
                continue
            portable = not program["left"][stage]
            every = EVERY_WITH_ORIGINAL if original_here else EVERY
            migrated = program["after"][stage], program["ignores"].get(stage)
            if (original_here or portable) and number % every == 0 and migrated not in seen:
                seen.append(migrated)
                yield pytest.param(program, stage, id=program["name"] + "-" + stage)


@pytest.fixture(scope="module")
def expected_of():
    """What a program gives unmigrated: on its own TensorFlow it runs, once; else as recorded."""
    found = {}

    def expected(program):
        key = key_of(program["before"])
        if program["original"] != MAJOR_MINOR:
            return RECORDED[key]
        if key not in found:
            found[key] = execute(program["before"], program["name"])
        return found[key]

    return expected


CATCHES_A_REFUSAL = re.compile(
    r"try:\n +opt = .*DynamicLossScale\([\d., ]+, (?!2\.?0?\))[\d.]+\)\)\n *except ValueError"
)


@pytest.mark.parametrize(("program", "stage"), cases())
def test_same_after_migration(program, stage, expected_of):
    expected = expected_of(program)
    assert "error" not in expected
    after = program["after"][stage]
    actual = execute(after, program["name"] + "-" + stage)
    ignores = program["ignores"].get(stage, [])
    tolerance = 0.0 if program["original"] == MAJOR_MINOR else TOLERANCES[kind_of(program)]
    refused = CATCHES_A_REFUSAL.search(program["before"]) and expected.get("wrapped") is False
    if refused:
        assert actual["wrapped"] is True  # ours takes any multiplier (known difference K15)
        return
    wrong = differences(expected, actual, tolerance, ignores)
    assert not wrong, "{}\n\n{}\n\nbecame\n\n{}".format("\n".join(wrong), program["before"], after)


@pytest.mark.skipif(MAJOR_MINOR not in ("1.15", "2.3", "2.4"), reason="the originals are gone")
def test_recorded_results_are_what_the_originals_give():
    mine = [program for program in PROGRAMS if program["original"] == MAJOR_MINOR]
    assert mine
    for program in mine[::10]:
        again = execute(program["before"], program["name"])
        assert not differences(RECORDED[key_of(program["before"])], again, 0.0, [])


OLD_KERAS = [program for program in PROGRAMS if program["original"] == "2.3"]
if MAJOR_MINOR != "2.3":
    OLD_KERAS = OLD_KERAS[:: 1 if LONG else 8]
IMPORT = re.compile(
    r"^(\s*(?:from|import) )tensorflow(?:\.compat\.v2)?(?=.*(?:mixed_precision|train))"
)
NAME = re.compile(
    r"(?:\b(?:tf2?|tensorflow)(?:\.compat\.v2)?\.)"
    r"(?=(?:keras\.mixed_precision|mixed_precision|train)\.experimental)"
    r"|(?<![\w.])(?=keras\.mixed_precision)"
)


def renamed(source):
    """The program with the shim's names in the place of TensorFlow's, by their text alone."""
    lines = ["import tf_lossscale as tfls"]
    for line in source.splitlines():
        new = IMPORT.sub(r"\1tf_lossscale", line)
        lines.append(NAME.sub("tfls.", line) if new == line else new)
    return "\n".join(lines)


@pytest.mark.skipif(MAJOR_MINOR == "1.15", reason="the programs were written for TensorFlow 2")
@pytest.mark.parametrize("parentheses", [True, False], ids=["as written", "without parentheses"])
@pytest.mark.parametrize("program", OLD_KERAS, ids=[program["name"] for program in OLD_KERAS])
def test_renaming_alone_changes_nothing(program, parentheses, expected_of):
    here = program["original"] == MAJOR_MINOR
    source = renamed(program["before"])
    if not parentheses:
        source = source.replace(".loss_scale()", ".loss_scale")
    expected = expected_of(program)
    actual = execute(source, program["name"] + "-renamed")
    tolerance = 0.0 if here else TOLERANCES["keras"]
    wrong = differences(expected, actual, tolerance, [])
    assert not wrong, "\n".join(wrong) + "\n\n" + source


def test_programs_overflow_and_move_their_scale():
    """Nothing would be proved by programs in which nothing happens."""
    moved = [
        program
        for program in PROGRAMS
        if len(set(RECORDED[key_of(program["before"])].get("scales", []))) > 1
    ]
    assert len(moved) >= len(PROGRAMS) // 4


def test_a_difference_is_seen():
    one = {"scales": [2.0], "weights": [[1.0]]}
    assert not differences(one, {"scales": [2.0], "weights": [[1.0 + 1e-7]]}, 2e-6, [])
    assert differences(one, {"scales": [2.0], "weights": [[1.0 + 1e-7]]}, 0.0, [])
    assert differences(one, {"scales": [2.0], "weights": [[1.1]]}, 2e-6, [])
    assert differences(one, {"scales": [2.0 + 1e-7], "weights": [[1.0]]}, 2e-6, [])
    assert differences(one, {"weights": [[1.0]]}, 2e-6, [])
    assert differences(one, {"error": "ValueError"}, 2e-6, [])
