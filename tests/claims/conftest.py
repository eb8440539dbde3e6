"""Reads checkpoints without a child process."""

import importlib

import pytest
from documents import ROOT

from tf_lossscale._checkpoint_command import isolated


@pytest.fixture
def read_here(monkeypatch):
    """In this process; `tests/shim/checkpoint` tests the child process that users get."""
    monkeypatch.syspath_prepend(str(ROOT / "tests/shim/checkpoint"))
    monkeypatch.setattr(isolated, "subprocess", importlib.import_module("forked").Here)
