"""Every command ends with one line and status 2 where its output cannot be written."""

import os
import subprocess
import sys

import pytest
from processes import REPOSITORY, run_python

pytestmark = pytest.mark.by_file

CODE = """
import sys
sys.modules['tensorflow'] = None
from tf_lossscale._checkpoint_command import command, isolated
command.locate.locate = lambda path: None
isolated.answer = lambda place, **_: {'states': 1, 'lines': ['x' * 100_000]}
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


LACKING = """
import os, platform, sys
from tf_lossscale._cli.main import main

def fail(*args):
    raise {error}

os.execv = platform.python_version = fail
sys.exit(main())
"""

CAUSES = {
    "MemoryError()": "out of memory",
    "OSError(12, 'Cannot allocate memory')": "cannot allocate memory",
}


@pytest.mark.parametrize("error", CAUSES)
@pytest.mark.parametrize("argv", [["doctor"], ["run", "-c", "pass"]], ids=" ".join)
def test_a_lack_of_memory(argv, error):
    done = run_python("-c", LACKING.replace("{error}", error), *argv)
    assert done.returncode == 2
    assert done.stderr == f"tf-lossscale: error: {CAUSES[error]}\n"


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "> /dev/full"])
def test_run_leaves_the_streams_to_the_script(redirection):
    if "full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("the system has no such device")
    done = run(["run", "-c", "import sys; sys.exit(3 if sys.stdin else 4)"], redirection)
    assert done.returncode == 3
    assert done.stderr == ""
