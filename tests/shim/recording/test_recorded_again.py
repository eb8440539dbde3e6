"""Records a part of `tests/data/records` again on this TensorFlow, and compares it."""

import functools
import os
import sys

import pytest
import tensorflow as tf
from recordings import Recording

from tf_lossscale._recording.comparing import Conditions, compare

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "data", "recorders"))

import various_programs  # noqa: E402 - after the path is set

NAME = "contrib_dense" if tf.__version__.startswith("1.") else "keras_dense"
MOMENTUM = 0.9 if NAME == "contrib_dense" else 0.5
STEPS = 30


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that records a run, and returns its steps."""
    folder = tmp_path_factory.mktemp("runs")
    various_programs.STEPS = STEPS

    @functools.lru_cache(maxsize=None)  # two tests compare each run
    def recorded(implementation, mistake):
        with Recording(folder / (implementation + "-" + mistake)) as recording:
            train = various_programs.STYLES[various_programs.PROGRAMS[NAME].style]
            train(NAME, mistake, implementation)
        return recording.record

    return recorded


@pytest.fixture(scope="module")
def original(run):
    return run("original", "none")


def test_our_class_does_what_the_original_does(original, run):
    found = compare(original, run("shim", "none"), Conditions(are_equal=True))
    assert found.sentence == f"Same: {STEPS} steps, bit-identical."
    assert not all(original.finite)


# The losses of contrib_dense differ too little in 30 steps to show that it is the rate, or, between
# versions, to tell the difference from rounding. No verdict passes.
MISTAKES = [
    ("rate", "learning_rate" if NAME == "keras_dense" else ""),
    ("momentum", f"momentum {MOMENTUM} and 0"),
    ("twice", "unscaled twice"),
    ("sum", "a sum over 4"),
    ("weights", "initial weights"),
]


@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize(("mistake", "cause"), MISTAKES)
def test_a_mistake_with_our_class_is_found_and_named(original, run, mistake, cause, is_equal):
    found = compare(original, run("shim", mistake), Conditions(are_equal=is_equal))
    assert found.verdict.value[1] == 1
    assert found.verdict.value[0] == "different" or not (cause or is_equal)
    assert cause in found.sentence
