"""Ours find the originals that they are built on, also where they stand in their places."""

import os

import pytest
from processes import run_program

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "replaced.py")


@pytest.mark.parametrize("when", ["before", "after"])
def test_originals_under_replaced_paths_are_found(when):
    found = run_program(PROGRAM, when)
    assert found["v1"] == ["tf_lossscale"]
    assert found["sums"] == 3
    for name in {"final", "experimental"} & set(found):
        packages = set(found[name])
        assert "tf_lossscale" in packages
        # The installed class is a base.
        assert packages & {"keras", "tf_keras", "tensorflow", "tensorflow_core"}, name
    assert "experimental" in found
