"""`tf-lossscale record --disturb N`: records a script, and runs it N times more, disturbed.

Each run is a process of its own, which ends with this one.
"""

import os
import signal
import subprocess
import sys
from types import FrameType
from typing import Dict, List, NamedTuple, Optional

from tf_lossscale._cli.child import command_for
from tf_lossscale._recorder.request import VARIABLE, Request
from tf_lossscale._records import disturbed
from tf_lossscale._records.destination import Destination, RecordingError
from tf_lossscale._records.format import Disturbance
from tf_lossscale._records.reading import RecordError, read_record
from tf_lossscale._records.writing import notify

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Runs(NamedTuple):
    """The runs of a script."""

    path: str
    norm: bool
    overwrite: bool
    arguments: List[str]  # of `python`
    environment: Dict[str, str]
    before: Optional[str] = None  # a shell command, which runs before each of them

    def record(self, count: int) -> int:
        """Records the script, and `count` disturbed runs; returns the exit status."""
        paths = [disturbed.path_of(self.path, number) for number in range(1, count + 1)]
        try:
            for path in paths:  # refuse now what would be refused after hours
                Destination(path, self.overwrite).check()
            status = self._run(self.path, None)
            if status:
                return status
            record = read_record(self.path)
            size = disturbed.size_for(record.optimizers)
            for number, path in enumerate(paths, 1):
                notify(f"disturbed run {number} of {count}.")
                change = disturbed.disturbance(record.header.id, number, size)
                status = self._run(path, change)
                if status:
                    notify(f"the disturbed run {number} ended with status {status}: {path}.")
                    return 2
        except OSError as error:
            notify(f"{error.filename or self.path} cannot be written: {error.strerror or error}.")
            return 2
        except (RecordingError, RecordError) as error:
            notify(str(error))
            return 2
        self._remove_others(paths)
        return 0

    def _run(self, path: str, change: Optional[Disturbance]) -> int:
        """Runs the script once and records it; returns its exit status, or 2 if it did not run."""
        if self.before:
            status = subprocess.call(self.before, shell=True)
            if status:
                notify(f"the command before the script ended with status {status}.")
                return 2
        destination = Destination(path, self.overwrite)
        destination.hold()
        try:
            request = Request(destination.path, self.norm, self.overwrite, os.getpid())
            request = request._replace(
                descriptor=destination.descriptor, is_of_child=True, disturbed=change
            )
            environment = {**self.environment, VARIABLE: request.text()}
            return _wait_for(self.arguments, environment, destination.descriptor)
        finally:
            destination.discard()

    def _remove_others(self, paths: List[str]) -> None:
        """Removes the disturbed runs of the record that was overwritten, if there were more."""
        for path in disturbed.paths_of(self.path):
            if path not in paths:
                os.remove(path)


def _wait_for(arguments: List[str], environment: Dict[str, str], descriptor: Optional[int]) -> int:
    """Runs a script, passes signals on to it, and returns its exit status."""
    sys.stdout.flush()
    process = subprocess.Popen(
        command_for(arguments),
        env=environment,
        pass_fds=[] if descriptor is None else [descriptor],
    )
    received: List[int] = []

    def pass_on(number: int, frame: Optional[FrameType]) -> None:
        received.append(number)
        process.send_signal(number)

    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        os.kill(os.getpid(), received[-1])  # ends this process, as its parent expects
    return status if status >= 0 else 128 - status
