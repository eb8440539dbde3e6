"""How `python tests/clients` compares results."""

import os
import runpy

import pytest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
CLIENTS = runpy.run_path(PROGRAM)


@pytest.mark.parametrize(
    ("original", "ours", "verdict"),
    [
        ([[1.0], [2.0]], [[1.0], [2.0 + 1e-9]], "equal"),
        ([float("nan")], [float("nan")], "equal"),
        ([1.0], [1.001], "1.0 and 1.001"),
        ([1.0], [float("nan")], "1.0 and nan"),
        ([1.0], [1.0, 2.0], "1 numbers, ours 2"),
        ("TypeError: one", "ValueError: another", "both raise"),
        ("TypeError: one", [1.0], "only TensorFlow's raises"),
        ([1.0], "TypeError: no", "ours raises TypeError: no"),
        ([["E: a"], ["E: a"]], [[1.0], [1.0]], "only TensorFlow's raises"),
    ],
)
def test_verdicts(original, ours, verdict):
    assert CLIENTS["compare"](original, ours) == verdict


def test_each_client_has_its_program():
    here = os.path.dirname(PROGRAM)
    for client in CLIENTS["CLIENTS"].values():
        assert os.path.isfile(os.path.join(here, client.program))
