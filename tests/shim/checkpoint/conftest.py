"""Runs the command in this process, and its child process as a fork, or in this one as well."""

import os

import forked
import pytest

from tf_lossscale._checkpoint_command import isolated
from tf_lossscale._cli import main


@pytest.fixture
def real_child():
    """Starts the child process of the command as users do: a new Python."""


INTACT_FILES = (
    "test_convert_for_keras3",
    "test_convert_names",
    "test_convert_objects",
    "test_convert_powers",
    "test_inspect",
)


@pytest.fixture(autouse=True)
def _quick_child(request, monkeypatch):
    if request.module.__name__.rpartition(".")[2] in INTACT_FILES:
        monkeypatch.setattr(isolated, "subprocess", forked.Here)
    elif hasattr(os, "fork") and "real_child" not in request.fixturenames:
        monkeypatch.setattr(isolated, "subprocess", forked.Subprocess)


@pytest.fixture
def checkpoint(capsys):
    """Runs `tf-lossscale checkpoint ...`; returns the exit status, stdout and stderr."""

    def run(*arguments):
        status = main.main(["checkpoint", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def refused(checkpoint):
    """Runs the command, which ends with status 2 and one line that has the words."""

    def run(arguments, *words):
        status, out, err = checkpoint(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), (out, err)
        source = arguments[1:2] if arguments[0] == "inspect" else ()
        for word in (*source, *words):
            assert str(word) in err

    return run
