"""Recording under a `MirroredStrategy`: one row for each step of all replicas, the run the same."""

import os

import numpy as np
import pytest
from processes import run_program

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "mirrored.py")
FIRST, FOURTH, FIFTH = 66**0.5, 45.5**0.5, 46**0.5
"""The norms of the summed gradients of the finite steps of the program."""


@pytest.fixture(scope="module", params=["session", "eager"])
def runs(request, tmp_path_factory):
    return run_program(PROGRAM, request.param, str(tmp_path_factory.mktemp("records")))


def test_each_step_of_all_replicas_is_one_row(runs):
    assert runs
    for name, run in runs.items():
        assert len(run["recorded"]) == len(run["seen"]) == 5, name
        for (loss, scale, applied), row in zip(run["seen"], run["recorded"]):
            np.testing.assert_allclose(row[0], loss, rtol=1e-6, err_msg=name)
            assert row[1:] == [scale, applied, applied], name
        assert run["replicas"] == 2, name
        assert run["weights are known"] is not name.startswith("session"), name


def test_the_training_does_not_change(runs):
    assert {name: run["changed"] for name, run in runs.items()} == {name: [] for name in runs}


def test_norm_and_first_bad_variable_are_those_of_the_summed_gradients(runs):
    for name, run in runs.items():
        if name.startswith("fit"):
            assert run["bad"][:3] == [None, 0, 0], name
            assert run["shapes"] == [[2, 3], [3], [3, 1], [1]], name
            continue
        assert run["bad"] == [None, 1, 0, None, None], name
        expected = [FIRST, None, None, FOURTH, FIFTH]
        assert [each is None for each in run["norm"]] == [each is None for each in expected], name
        for each, norm in zip(run["norm"], expected):
            assert norm is None or abs(each / norm - 1) < 1e-6, name
        assert run["shapes"] == [[2], [3, 2], []], name
