"""16-bit gradients, several dtypes, and dense beside sparse ones, in one step on four devices."""

import os

import pytest
from processes import run_program

PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "dtypes.py")
WHOLE = [10.0] * 4
CROSSED = [4.0, 6.0, 4.0, 6.0]


@pytest.fixture(scope="module", params=["graph", "function"])
def steps(request):
    return run_program(PROGRAM, request.param)


@pytest.mark.parametrize("case", ["plain", "whole", "crossed"])
def test_each_gradient_is_summed_in_its_dtype(steps, case):
    sums = CROSSED if case == "crossed" else WHOLE
    assert len(steps[case]) == 15
    for key, found in steps[case].items():
        name = key.split()[1]
        expected = {
            "a": [[total] for total in sums],
            "b": [[2 * total] for total in sums],
            "large": [[total] for total in sums],
            "table": [[0.0, 6 * total] for total in sums],
            "unused": [[0.0]] * 4,
        }[name]
        assert found == expected, key
