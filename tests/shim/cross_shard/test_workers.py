"""Real worker processes over gRPC on loopback."""

import os

import numpy as np
from processes import start_workers, wait_for_workers

PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "worker.py")
STEPS = 4


def check_sums(results):
    numbers = np.arange(1, len(results) + 1)
    for index, result in enumerate(results):
        for found in result["sums"]:
            assert found[:3] == [10 * numbers.sum(), numbers.sum(), index + 1]


def check_training(results):
    first = results[0]["trained"]
    assert all(each["trained"] == first for each in results)
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
