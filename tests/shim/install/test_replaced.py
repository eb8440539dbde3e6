"""Ours find the originals that they are built on, also where they stand in their places."""

import os

import pytest
from processes import run_alone, run_program
from support import TF_VERSION as TF

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PROGRAM = os.path.join(PROGRAMS, "replaced.py")


@pytest.fixture(scope="module")
def installed_before():
    return run_alone(PROGRAM, "before")


@pytest.mark.parametrize("when", ["before", "after"])
def test_originals_under_replaced_paths_are_found(when, installed_before):
    found = installed_before if when == "before" else run_program(PROGRAM, when)
    assert found["v1"] == ["tf_lossscale"]
    assert found["sums"] == 3
    for name in {"final", "experimental"} & set(found):
        packages = set(found[name])
        assert "tf_lossscale" in packages
        # The installed class is a base.
        assert packages & {"keras", "tf_keras", "tensorflow", "tensorflow_core"}, name
    assert "experimental" in found


@pytest.mark.skipif(TF < (2, 4), reason="the final class came with TensorFlow 2.4")
def test_the_final_class_is_ours_where_it_is_first_named_after_training(installed_before):
    ours = "tf_lossscale._keras.final"
    assert installed_before["named late"] == {
        "tf.keras": ours,
        "from tensorflow.keras": ours,
        "tf.compat.v2.keras": ours,
        "instance": True,
    }
