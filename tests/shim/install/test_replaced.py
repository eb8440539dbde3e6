"""Ours find the originals that they are built on, also where they stand in their places."""

import os

import pytest
import tensorflow as tf
from processes import run_alone, run_program

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PROGRAM = os.path.join(PROGRAMS, "replaced.py")
TF = tuple(int(part) for part in tf.__version__.split(".")[:2])


@pytest.mark.parametrize("when", ["before", "after"])
def test_originals_under_replaced_paths_are_found(when):
    found = (run_alone if when == "before" else run_program)(PROGRAM, when)
    assert found["v1"] == ["tf_lossscale"]
    assert found["sums"] == 3
    for name in {"final", "experimental"} & set(found):
        packages = set(found[name])
        assert "tf_lossscale" in packages
        # The installed class is a base.
        assert packages & {"keras", "tf_keras", "tensorflow", "tensorflow_core"}, name
    assert "experimental" in found


@pytest.mark.skipif(TF < (2, 4), reason="the final class came with TensorFlow 2.4")
def test_the_final_class_is_ours_where_it_is_first_named_after_training():
    ours = "tf_lossscale._keras.final"
    assert run_alone(os.path.join(PROGRAMS, "named_late.py")) == {
        "tf.keras": ours,
        "from tensorflow.keras": ours,
        "tf.compat.v2.keras": ours,
        "instance": True,
    }
