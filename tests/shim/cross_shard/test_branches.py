"""Where a branch may stand around an optimizer's step, as docs/cross-shard.md says."""

import os

import pytest
from processes import run_program

PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "branches.py")
OPTIMIZERS = ("bare", "cross", "v1", "contrib")


@pytest.fixture(scope="module")
def found():
    return run_program(PROGRAM)


# Each replica's gradient is the weight, 1. The mean of the loss is taken by `minimize` alone.
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    "place", ["around traced", "around eager", "inside eager", "chosen traced", "chosen eager"]
)
def test_the_step_is_taken(found, optimizer, place):
    takes_mean = optimizer == "cross" and not place.startswith("chosen")
    assert found[f"{optimizer} {place}"] == [0.0 if takes_mean else -1.0] * 2


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_traced_branch_inside_a_replica_fails_as_with_the_bare_optimizer(found, optimizer):
    assert "merge_call" in found[f"{optimizer} inside traced"]


def test_a_sum_may_stand_in_a_traced_branch_inside_a_replica(found):
    assert found["sums"] == [4.0, 4.0]
