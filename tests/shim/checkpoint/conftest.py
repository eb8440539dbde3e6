"""Runs the command in this process, as the other tests of the command do."""

import os
import sys

import pytest

from tf_lossscale._cli import main

# `recorded` lists the installed optimizers; the Keras tests need it too.
sys.path.append(os.path.join(os.path.dirname(os.path.dirname(__file__)), "keras"))


@pytest.fixture
def checkpoint(capsys):
    """Runs `tf-lossscale checkpoint ...`; returns the exit status, stdout and stderr."""

    def run(*arguments):
        status = main.main(["checkpoint", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run
