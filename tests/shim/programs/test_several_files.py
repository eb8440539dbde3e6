"""Programs of several files compute the same after their migration, or something is reported.

Only programs of which the command reports nothing are executed: a finding, or an edit that needs
`--unsafe`, leaves the result to a person.
"""

import pytest

from programs.comparison import close
from programs.execution import MAJOR_MINOR, execute_files
from programs.recorded import read_recorded
from programs.test_programs import EVERY, KERAS_3
from programs.texts import key_of_files, read_programs

GRAPH = ("contrib", "cross-shard", "rewrite", "v1")
if MAJOR_MINOR in ("1.15", "2.3"):
    STAGES = ["shim"]
elif KERAS_3:
    STAGES = ["shim", "final3", "unsafe3"]
else:
    STAGES = ["shim", "final2", "final3", "unsafe2"]
HERE = MAJOR_MINOR
if MAJOR_MINOR not in ("1.15", "2.3", "2.4", "2.8", "2.11", "2.15"):
    HERE = "k3" if KERAS_3 else "k2"

PROGRAMS = [*read_programs("files"), *read_programs("packages")]
RECORDED = dict(read_recorded("files-"), **read_recorded("packages-"))


def expected_of(program):
    return RECORDED[key_of_files(program["files"])]


def runs_here(program):
    if "error" in expected_of(program):
        return False  # `test_most_programs_run` counts them
    if program["family"] in GRAPH:
        return True
    if MAJOR_MINOR == "1.15":
        return False
    # The shim has no policies of the final API.
    return MAJOR_MINOR != "2.3" or "2.3" in program["originals"]


def is_reported(program, stage):
    return bool(program["left"][stage] or program["unsafe"][stage])


def is_refused(program, stage, actual):
    """Whether TensorFlow refuses a program that needs no edit, or the shim says what to write."""
    unchanged = program["after"][stage] == program["files"]
    return "error" in actual and (unchanged or "tf_lossscale." in actual["error"])


def comparable(program, result):
    """A result without what the installed Keras makes otherwise, with any optimizer.

    `fit` of Keras 3 replaces the loss that a `train_step` returns by that of its own metric, which
    such a step does not update.
    """
    if not KERAS_3 or "history.history" not in program["files"]["main.py"]:
        return result
    return {key: value for key, value in result.items() if key != "losses"}


def migrated_cases():
    for program in filter(runs_here, PROGRAMS):
        seen = []
        for stage in STAGES:
            after = program["after"][stage]
            if is_reported(program, stage) or after in seen:
                continue
            seen.append(after)
            name = "{}-{}".format(program["name"], stage)
            yield pytest.param(program, stage, id=name)


ORIGINALS = [
    program for program in PROGRAMS if runs_here(program) and HERE in program["originals"]
][::EVERY]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("program", "stage"), migrated_cases())
def test_same_after_migration(program, stage, tmp_path):
    actual = execute_files(program["after"][stage], str(tmp_path))
    if is_refused(program, stage, actual):
        return
    pair = [comparable(program, result) for result in (actual, expected_of(program))]
    assert close(*pair), "{} became {}\n{}".format(
        expected_of(program), actual, program["after"][stage]
    )


@pytest.mark.skipif(MAJOR_MINOR == "2.11", reason="no program has it as its original")
def test_originals_compute_what_was_recorded(tmp_path):
    assert ORIGINALS
    for number, program in enumerate(ORIGINALS):
        folder = tmp_path / str(number)
        folder.mkdir()
        actual = execute_files(program["files"], str(folder))
        assert close(actual, expected_of(program)), program["name"]


def test_most_programs_run():
    failed = [program["name"] for program in PROGRAMS if "error" in expected_of(program)]
    assert len(failed) <= len(PROGRAMS) // 10, failed


def test_a_difference_is_seen():
    one = {"scales": [2.0], "weights": [[1.0], 2.0], "wrapped": True}
    assert close(one, {"scales": [2.0], "weights": [[1.0 + 1e-6], 2.0], "wrapped": True})
    assert not close(one, {"scales": [2.0], "weights": [[1.1], 2.0], "wrapped": True})
    assert not close(one, {"scales": [2.0], "weights": [[1.0], 2.0], "wrapped": False})
    assert not close(one, {"scales": [2.0], "weights": [[1.0]], "wrapped": True})
    assert not close(one, {"error": "ValueError"})
