"""One replica with a batch of 4n reaches the weights of four replicas with n each, step by step."""

import os

import numpy as np
import pytest
from processes import run_program

NAMES = ["scaled adam"]
if os.environ.get("TFLS_TEST_SIZE") == "long":
    NAMES += ["sgd", "momentum", "adam"]
PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "batches.py")


@pytest.fixture(scope="module", params=["graph", "function"])
def histories(request):
    return run_program(PROGRAM, request.param, *NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_over_the_replicas_is_the_mean_over_the_batch(histories, name):
    whole, split = (np.array(histories[name][each]) for each in ("whole", "split"))
    assert whole.shape == split.shape == (6, 10 * 4 + 4 * 3 + 3)
    assert np.abs(np.diff(whole, axis=0)).max(axis=1).min() > 1e-3  # each step changes something
    np.testing.assert_allclose(split, whole, rtol=1e-4, atol=1e-5)
