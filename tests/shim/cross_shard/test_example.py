"""The example in BERT's style runs in one process, on four devices and on two workers."""

import os

import pytest
from processes import REPOSITORY, run_program, start_workers, wait_for_workers

EXAMPLE = os.path.join(REPOSITORY, "examples", "bert_style.py")


@pytest.fixture(scope="module")
def alone():
    return run_program(EXAMPLE, "--use_tpu")


def check(result, alone):
    assert result["first"] == pytest.approx(0.6931, abs=1e-3)
    assert result["last"] < 0.3
    # All replicas see the same batch: the clipped gradients are summed, which Adam hardly feels.
    assert result["weight"] == pytest.approx(alone["weight"], rel=0.05)


def test_one_process_is_as_without_the_optimizer(alone):
    check(alone, alone)
    assert run_program(EXAMPLE) == alone


def test_four_devices(alone):
    check(run_program(EXAMPLE, "--use_tpu", "--devices", "4"), alone)


def test_two_workers(alone):
    first, second = wait_for_workers(start_workers(EXAMPLE, 2, "--use_tpu"))
    assert first == second
    check(first, alone)
