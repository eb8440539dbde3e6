"""Reads checkpoints without a child process, and builds the site of the documentation."""

import importlib

import pytest
from documents import ROOT

from tf_lossscale._checkpoint_command import isolated


@pytest.fixture
def read_here(monkeypatch):
    """In this process; `tests/shim/checkpoint` tests the child process that users get."""
    monkeypatch.syspath_prepend(str(ROOT / "tests/shim/checkpoint"))
    monkeypatch.setattr(isolated, "subprocess", importlib.import_module("forked").Here)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder with the site. `make docs` also checks the reference, which needs TensorFlow."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), hooks=["docs/site.py"]))
    return folder
