"""Real worker processes over gRPC on loopback; the example in BERT's style."""

import os

import numpy as np
import pytest
from processes import REPOSITORY, run_program, start_workers, wait_for_workers

PROGRAM = "cross_shard/programs/worker.py"
STEPS = 4


def check_sums(results):
    numbers = np.arange(1, len(results) + 1)
    for index, result in enumerate(results):
        for found in result["sums"]:
            assert found[:3] == [10 * numbers.sum(), numbers.sum(), index + 1]


def check_training(results):
    first = results[0]["trained"]
    assert all(result["trained"] == first for result in results)
    assert len(first) == STEPS
    assert first[0] != [1.0, 1.0]
    assert first[1] == first[0]  # the overflow on the last worker
    assert first[2] != first[1]


def test_four_workers_and_their_subgroups():
    results = wait_for_workers(start_workers(PROGRAM, 4, str(STEPS), "function"))
    check_training(results)
    check_sums(results)
    for index, result in enumerate(results):
        for found in result["sums"]:
            assert found[3:] == [[3, 3, 7, 7][index], [4, 6, 4, 6][index]]


def test_two_workers_with_sessions():
    results = wait_for_workers(start_workers(PROGRAM, 2, str(STEPS), "session"))
    check_sums(results)
    check_training(results)
    for result in results:
        assert result["loops"] == [[5 * (10 + 1) * 3.0] * 4] * 2  # rounds, factors, sum of 1 and 2


EXAMPLE = os.path.join(REPOSITORY, "examples", "bert_style.py")


@pytest.fixture(scope="module")
def alone():
    return run_program(EXAMPLE, "--use_tpu")


def check_example(result, alone):
    assert result["first"] == pytest.approx(0.6931, abs=1e-3)
    assert result["last"] < 0.3
    # All replicas see the same batch: the clipped gradients are summed, which Adam hardly feels.
    assert result["weight"] == pytest.approx(alone["weight"], rel=0.05)


def test_the_example_in_one_process_is_as_without_the_optimizer(alone):
    check_example(alone, alone)
    assert run_program(EXAMPLE) == alone


def test_the_example_on_four_devices(alone):
    check_example(run_program(EXAMPLE, "--use_tpu", "--devices", "4"), alone)


def test_the_example_on_two_workers(alone):
    first, second = wait_for_workers(start_workers(EXAMPLE, 2, "--use_tpu"))
    assert first == second
    check_example(first, alone)
