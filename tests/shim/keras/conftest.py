"""Runs the tests of this folder eagerly, also on TensorFlow 1.15."""

from typing import Iterator

import pytest
import recorded


@pytest.fixture(autouse=True)
def _eager() -> Iterator[None]:
    with recorded.eagerly():
        yield
