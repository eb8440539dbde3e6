"""How `python tests/clients` compares results."""

import importlib.util
import os

import pytest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
spec = importlib.util.spec_from_file_location("client_comparison", PROGRAM)
clients = importlib.util.module_from_spec(spec)
spec.loader.exec_module(clients)


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
    assert clients.compare(original, ours) == verdict


def test_each_client_has_its_program():
    here = os.path.dirname(PROGRAM)
    for client in clients.CLIENTS.values():
        assert os.path.isfile(os.path.join(here, client.program))
