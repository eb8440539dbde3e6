"""The file of a recording: one for each process, written from time to time and at exit."""

import os
import sys
import threading
from typing import Any, List, Optional, Sequence

from tf_lossscale._recorder.file_lock import hold, release
from tf_lossscale._recording.record import RunHeader, ScaleParameters
from tf_lossscale._recording.writing import RecordWriter

__all__ = ["RecordFile", "path_for_child"]

_LINES = 200
"""The number of lines after which they are written to the file."""


def path_for_child(path: str) -> str:
    """Returns the path of the record of another process than the one that was asked to record."""
    root, extension = os.path.splitext(path)
    return f"{root}.{os.getpid()}{extension}"


class RecordFile:
    """Collects the lines of a record, and appends them to its file.

    The header is written with the first optimizer, because a recording may begin before TensorFlow
    is imported. A forked child process does not record, and says so with its first step.

    Args:
      path: the file, which is replaced.
      lazy: whether the file is created only with the first line.
      held: the descriptor of the file, if this process has locked it already.

    Raises:
      OSError: the file cannot be written.
      RecordingError: another process records to it.
    """

    def __init__(self, path: str, lazy: bool = False, held: Optional[int] = None) -> None:
        self.path = os.path.abspath(path)  # the program can change the working directory
        self.steps = 0
        self.is_closed = False
        self._lines: List[str] = []
        self._writer: Optional[RecordWriter] = None
        self._process = os.getpid()
        self.is_lazy = lazy
        self._exists = not lazy
        self._failed = False
        self._lock = threading.RLock()
        self._held = held
        if not lazy:
            if held is None:
                self._held = hold(path)
            with open(path, "w", encoding="utf-8"):
                pass

    def write(self, line: str) -> None:
        """Adds a line; called by the writer."""
        self._lines.append(line)
        if len(self._lines) >= _LINES:
            self.flush()

    def add_optimizer(
        self,
        header: RunHeader,
        cls: str,
        scale: ScaleParameters,
        names: Sequence[str],
        shapes: Sequence[Sequence[int]],
        initial_weights: Optional[str],
    ) -> int:
        """Adds the description of an optimizer, after that of the run if it is the first one."""
        with self._lock:
            if self._writer is None:
                self._writer = RecordWriter(self, header)  # type: ignore[arg-type]
            return self._writer.add_optimizer(cls, scale, names, shapes, initial_weights)

    def add_step(self, optimizer: int, step: int, **values: Any) -> None:
        """Adds a step."""
        with self._lock:
            if not self.is_of_this_process and not self._failed:
                self._failed = True
                print(
                    f"tf-lossscale: the steps of process {os.getpid()} are not recorded, because "
                    "it was forked from one that records.",
                    file=sys.stderr,
                    flush=True,
                )
            if self._writer is not None:
                self.steps += 1
                self._writer.add_step(optimizer, step, **values)

    def add_gap(self, optimizer: int, first: int, end: int) -> None:
        """Adds that some steps are missing."""
        with self._lock:
            if self._writer is not None:
                self._writer.add_gap(optimizer, first, end)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process was not forked from the one that opened the file."""
        return self._process == os.getpid()

    def close(self) -> None:
        """Writes the last lines; later steps are ignored."""
        self.flush()
        self.is_closed = True
        if self._held is not None:
            release(self._held)

    def flush(self) -> None:
        """Appends the lines so far to the file; a full disk does not stop the training."""
        with self._lock:
            lines, self._lines = self._lines, []
            if not lines or not self.is_of_this_process or self._failed:
                return
            try:
                with open(self.path, "a" if self._exists else "w", encoding="utf-8") as file:
                    file.writelines(lines)
            except OSError as error:
                self._failed = True  # a record with missing lines would be read as a wrong one
                reason = error.strerror or error
                print(
                    f"tf-lossscale: the record ends here: {self.path} cannot be written: {reason}.",
                    file=sys.stderr,
                )
            self._exists = True
