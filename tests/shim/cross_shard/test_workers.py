"""Real worker processes over gRPC on loopback."""

import os
import time

import numpy as np
import pytest
import tensorflow as tf
from processes import start_workers, wait_for_workers

PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "worker.py")
GRAPH_PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "graph_worker.py")
STEPS = 4
# Seconds within which the others must have noticed that a worker is gone.
NOTICED = 150


def run(count, directory, *args):
    return wait_for_workers(start_workers(PROGRAM, count, str(STEPS), str(directory), *args))


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return run(2, tmp_path_factory.mktemp("unbroken"))


def check_sums(results):
    numbers = np.arange(1, len(results) + 1)
    for index, result in enumerate(results):
        for found in result["sums"]:
            assert found == [numbers.sum(), index + 1, 10 * numbers.sum()]


def test_two_workers(unbroken):
    check_sums(unbroken)
    first, second = (each["trained"] for each in unbroken)
    assert first == second
    assert len(first) == STEPS
    assert first[0] != [1.0, 1.0]
    assert first[1] == first[0]  # the overflow on the last worker
    assert first[2] != first[1]


def test_three_workers(tmp_path):
    results = run(3, tmp_path)
    check_sums(results)
    assert results[0]["trained"] == results[1]["trained"] == results[2]["trained"]
    assert results[0]["trained"][1] == results[0]["trained"][0]


def test_subgroups_of_four_workers(tmp_path):
    for index, result in enumerate(run(4, tmp_path)):
        for found in result["sums"]:
            assert found == [10, index + 1, 100, [3, 3, 7, 7][index], [4, 6, 4, 6][index]]


def test_two_workers_with_sessions(unbroken):
    results = wait_for_workers(start_workers(GRAPH_PROGRAM, 2, str(STEPS)))
    check_sums(results)
    assert results[0]["trained"] == results[1]["trained"]
    np.testing.assert_allclose(results[0]["trained"], unbroken[0]["trained"], rtol=1e-6)


@pytest.mark.skipif(
    tuple(map(int, tf.__version__.split(".")[:2])) < (2, 5),
    reason="before TensorFlow 2.4 strategies do not look whether the other workers are alive, and "
    "2.4 itself fails to restore slots under the strategy (docs/cross-shard.md, Limits)",
)
def test_a_killed_worker_ends_the_others_and_a_restart_goes_on_where_they_were(unbroken, tmp_path):
    workers = start_workers(PROGRAM, 2, str(STEPS), str(tmp_path), "3")
    start = time.time()
    assert workers[1].wait(timeout=NOTICED) != 0
    try:
        _, errors = workers[0].communicate(timeout=NOTICED)
    finally:
        workers[0].kill()
        workers[1].communicate()
    assert time.time() - start < NOTICED
    assert workers[0].returncode != 0
    assert "Error" in errors.strip().splitlines()[-1] or "task:1" in errors, errors[-2000:]
    restarted = run(2, tmp_path)
    assert restarted[0]["trained"] == unbroken[0]["trained"][3:]
    assert restarted[1]["trained"] == unbroken[1]["trained"][3:]
