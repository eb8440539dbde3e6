"""Forks the child process of the command, instead of starting it for each of many files.

Files of the real classes, which harm no process, are read in that of the tests. For others, a
server imports the libraries once and forks for each request, so that a test of a hundred files does
not wait for a hundred imports of TensorFlow. What runs in the fork is the code of the command, with
its limits.
"""

import json
import os
import subprocess
import sys
import time

from tf_lossscale._checkpoint import isolated
from tf_lossscale._checkpoint.locate import Place

__all__ = ["Here", "Subprocess", "serve"]

_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import forked; forked.serve()"
_server = []


def _run(command, timeout, env, **_):
    """Runs the request of a command for `isolated` in a fork of the server."""
    if not _server:
        program = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)]
        _server.append(
            subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env,
                universal_newlines=True,
            )
        )
    server = _server[0]
    server.stdin.write(json.dumps([command[-1], timeout, os.getcwd()]) + "\n")
    server.stdin.flush()
    status, answer = json.loads(server.stdout.readline())
    if status is None:
        raise subprocess.TimeoutExpired(command, timeout)
    return subprocess.CompletedProcess(command, status, answer.encode("latin-1"))


class Subprocess:
    """Takes the place of the module `subprocess` in `isolated`."""

    run = staticmethod(_run)
    DEVNULL = subprocess.DEVNULL
    PIPE = subprocess.PIPE
    TimeoutExpired = subprocess.TimeoutExpired


def _run_here(command, **_):
    """Runs the request of a command for `isolated` in this process."""
    request = json.loads(command[-1])
    place = Place(*request["place"])
    values = isolated._describe(place, request, isolated._library(place))
    answer = isolated._READY + isolated._dumped(place, values).encode("ascii")
    return subprocess.CompletedProcess(command, 0, answer)


class Here(Subprocess):
    """Likewise, but without a fork and its limits."""

    run = staticmethod(_run_here)


def serve():
    """Answers requests until the test process ends."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    import tf_lossscale._checkpoint.tensorflow_files  # noqa: F401 - once for all forks
    from tf_lossscale._checkpoint import keras_files

    keras_files.import_hdf5()
    for line in requests:
        text, timeout, folder = json.loads(line)
        os.chdir(folder)
        answers.write(json.dumps(_forked(text, timeout)) + "\n")
        answers.flush()


def _forked(text, timeout):
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.close(read)
        try:
            isolated.child(text)
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    end = time.time() + timeout
    while time.time() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            return code, answer.decode("latin-1")
        time.sleep(0.001)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return None, ""
