"""Forks the child process of the command, instead of starting it for each of many files.

Files of the real classes, which harm no process, are read in that of the tests. Others are read in
forks of a process that has imported the libraries, so that a test of a hundred files does not wait
for a hundred imports of TensorFlow. What runs in a fork is the code of the command, with its
limits.
"""

import json
import subprocess

import processes

from tf_lossscale._checkpoint.locate import Place
from tf_lossscale._checkpoint_command import isolated


class Subprocess:
    """Takes the place of the module `subprocess` in `isolated`."""

    DEVNULL = subprocess.DEVNULL
    PIPE = subprocess.PIPE
    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def run(command, timeout, env, **_):
        """Runs the request of a command for `isolated` in a fork."""
        process = processes.start_program("checkpoint/child.py", [command[-2]], env, preload="h5py")
        try:
            answer, _ = process.communicate(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(command, process.returncode, answer.encode("latin-1"))


class Here(Subprocess):
    """Likewise, but without a fork and its limits."""

    @staticmethod
    def run(command, **_):
        """Runs the request of a command for `isolated` in this process."""
        request = json.loads(command[-2])
        place = Place(*request["place"])
        values = isolated._describe(place, request, isolated._library(place))
        answer = isolated._READY + isolated._dumped(place, values).encode("ascii")
        return subprocess.CompletedProcess(command, 0, answer)
