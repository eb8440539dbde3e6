"""Records a part of `tests/data/records` again on this TensorFlow, and compares it."""

import os
import sys

import pytest
import tensorflow as tf

from tf_lossscale._recording.comparing import compare
from tf_lossscale._recording.reading import read_record

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "data", "recorders"))

from trained_runs import Case, record  # noqa: E402 - after the path is set

STYLE = "session" if tf.__version__.startswith("1.") else "loop"
STEPS = 30


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that records a run, and returns its steps."""
    folder = tmp_path_factory.mktemp("runs")

    def recorded(implementation, mistake):
        path = str(folder / (implementation + "-" + mistake))
        record(path, STYLE, implementation, Case("dense", mistake, STEPS))
        (found,) = read_record(path).optimizers
        return found

    return recorded


@pytest.fixture(scope="module")
def original(run):
    return run("original", "none")


def test_our_class_does_what_the_original_does(original, run):
    found = compare(original, run("shim", "none"))
    assert found.sentence == f"Same: {STEPS} steps, bit-identical."
    assert not all(original.finite)


MISTAKES = [
    ("rate", "learning rate"),
    ("twice", "unscaled twice"),
    ("weights", "initial weights"),
    ("unscaled_loss", "loss that is not scaled"),
]


@pytest.mark.parametrize(("mistake", "cause"), MISTAKES)
def test_a_mistake_with_our_class_is_found_and_named(original, run, mistake, cause):
    found = compare(original, run("shim", mistake))
    assert found.verdict.value[0] == "different"
    assert cause in found.sentence
