"""Every command ends with one line and status 2 where its output cannot be written."""

import os
import subprocess
import sys

import pytest
from processes import REPOSITORY

CODE = """
import sys
sys.modules['tensorflow'] = None
from tf_lossscale._checkpoint import command, isolated
command.locate, isolated.read = (lambda path: None), (lambda place: None)
command._as_text = lambda contents: 'x' * 100_000
from tf_lossscale._cli.main import main
sys.exit(main())
"""
"""The command, without TensorFlow, and with a checkpoint of which there is much to print."""

COMMANDS = [
    ["--help"],
    ["--version"],
    ["doctor"],
    ["doctor", "--help"],
    ["run", "--help"],
    ["compare", "--help"],
    ["checkpoint", "--help"],
    ["checkpoint", "inspect", "x"],
]


def run(argv, redirection):
    command = 'exec "$@" ' + redirection
    return subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-c", CODE, *argv],
        env=dict(os.environ, PYTHONPATH=REPOSITORY),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no such device")
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_full_disk_behind_stdout(monkeypatch, argv, unbuffered):
    if unbuffered:
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    done = run(argv, "> /dev/full")
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[-1]) == (2, "tf-lossscale: error: no space left on device")
    assert len(lines) == 1


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_a_closed_stdout(argv):
    done = run(argv, ">&-")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "stdout is closed" in done.stderr
