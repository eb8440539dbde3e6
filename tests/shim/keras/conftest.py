"""Runs the tests of this folder eagerly, also on TensorFlow 1.15."""

from typing import Any, Iterator

import processes
import pytest
import recorded


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    with recorded.eagerly():
        yield


@pytest.fixture(scope="session")
def in_a_process() -> Any:
    """What `programs/experimental.py` gave."""
    return processes.run_program("keras/programs/experimental.py", timeout=600, keras=True)
