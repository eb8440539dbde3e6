"""Real worker processes over gRPC on loopback."""

import os

import numpy as np
import pytest
from processes import start_workers, wait_for_workers

PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "worker.py")
GRAPH_PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "graph_worker.py")
STEPS = 4


def run(count):
    return wait_for_workers(start_workers(PROGRAM, count, str(STEPS)))


@pytest.fixture(scope="module")
def two():
    return run(2)


def check_sums(results):
    numbers = np.arange(1, len(results) + 1)
    for index, result in enumerate(results):
        for found in result["sums"]:
            assert found == [numbers.sum(), index + 1, 10 * numbers.sum()]


def test_two_workers(two):
    check_sums(two)
    first, second = (each["trained"] for each in two)
    assert first == second
    assert len(first) == STEPS
    assert first[0] != [1.0, 1.0]
    assert first[1] == first[0]  # the overflow on the last worker
    assert first[2] != first[1]


def test_subgroups_of_four_workers():
    results = run(4)
    check_sums([dict(each, sums=[found[:3] for found in each["sums"]]) for each in results])
    for index, result in enumerate(results):
        for found in result["sums"]:
            assert found[3:] == [[3, 3, 7, 7][index], [4, 6, 4, 6][index]]
        assert result["trained"] == results[0]["trained"]
    assert results[0]["trained"][1] == results[0]["trained"][0]


def test_two_workers_with_sessions(two):
    results = wait_for_workers(start_workers(GRAPH_PROGRAM, 2, str(STEPS)))
    check_sums(results)
    assert results[0]["trained"] == results[1]["trained"]
    np.testing.assert_allclose(results[0]["trained"], two[0]["trained"], rtol=1e-6)
