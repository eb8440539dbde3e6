"""The file of a recording: one for each process, locked, and written at least every second."""

import contextlib
import dataclasses
import os
import stat
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Set

from tf_lossscale._records.format import FORMAT, OptimizerRecord, RunHeader, dump

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_LINES, _SECONDS = 200, 1.0  # after so many lines, or so long a time, lines are written


class RecordingError(RuntimeError):
    """Training cannot be recorded; the message says why, and what can be done."""


_held: Set[int] = set()


def hold(path: str) -> int:
    """Opens the file of a record, and locks it, or raises OSError or RecordingError.

    The lock belongs to the open file, so it survives that `tf-lossscale run` becomes the script,
    and it ends with the process, however that ends. A file that exists is not changed.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    if fcntl is not None and stat.S_ISREG(os.fstat(descriptor).st_mode):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise RecordingError(
                f"Another process is recording to {path}. Each process needs a file of its own, "
                "such as run-0.jsonl and run-1.jsonl for two workers."
            ) from None
        except OSError:
            pass  # a file system without locks
    _held.add(descriptor)
    return descriptor


def hand_over(descriptor: int) -> Optional[int]:
    """Prepares the lock for the program that this process becomes with `exec`, and for `keep`."""
    if os.name == "nt":  # where that program is another process
        _release(descriptor)
        return None
    os.set_inheritable(descriptor, True)
    return descriptor


def keep(descriptor: int) -> None:
    """Takes over the lock of the program that this process was before `exec`."""
    os.set_inheritable(descriptor, False)
    _held.add(descriptor)


def _release(descriptor: Optional[int]) -> None:
    """Closes the file, and so ends the lock; does nothing in a forked process."""
    if descriptor is not None and descriptor in _held:
        _held.remove(descriptor)
        os.close(descriptor)


def _release_all() -> None:
    for descriptor in list(_held):
        _release(descriptor)


# A forked process does not record to the file, and can live longer than the one that does.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_release_all)


class _Guard:
    """A lock for blocks that a signal handler must not interrupt.

    Python runs a signal handler between two instructions of the main thread, which may be within
    such a block and would have to wait for itself.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._owner: Optional[int] = None
        self._depth = 0
        self._later: Optional[Callable[[], None]] = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()
        self._depth += 1

    def __exit__(self, *error: Any) -> None:
        self._depth -= 1
        later = None
        if not self._depth:
            self._owner = None
            later, self._later = self._later, None
        self._lock.release()
        if later is not None:
            later()

    def call_outside(self, function: Callable[[], None]) -> None:
        """Calls `function` now, or as soon as this thread has left the block that it is in."""
        if self._owner == threading.get_ident():
            self._later = function
        else:
            function()


class RecordFile:
    """Collects the lines of a record, and appends them to its file.

    The header is written with the first optimizer, because a recording may begin before TensorFlow
    is imported. A record without a step leaves no file. A forked child process does not record, and
    says so with its first step.

    An existing file is replaced. A lazy record creates its file only with the first line. `held` is
    the descriptor of the file if this process has locked it already. Each access by several threads
    or signal handlers goes through `guard`. `complaints` are what is missing or doubtful in the
    record, a sentence each. Raises the errors of `hold`.
    """

    def __init__(self, path: str, lazy: bool = False, held: Optional[int] = None) -> None:
        self.path = os.path.abspath(path)  # the program can change the working directory
        self.steps = 0
        self.complaints: List[str] = []
        self.guard = _Guard()
        self.is_closed = False
        self.may_be_empty = lazy  # whether no complaint is due without a step
        self._lines: List[str] = []
        self._written = time.monotonic()
        self._optimizers = 0
        self._process = os.getpid()
        self._exists = not lazy
        self._failed = False
        self._held = hold(path) if held is None and not lazy else held
        if not lazy:
            with open(path, "w", encoding="utf-8"):
                pass

    def write(self, line: Dict[str, Any]) -> None:
        self._lines.append(dump(line))
        if len(self._lines) >= _LINES or time.monotonic() - self._written > _SECONDS:
            self.flush()

    def add_optimizer(self, header: RunHeader, record: OptimizerRecord) -> int:
        """Adds an optimizer, without its steps; returns its number, which they refer to."""
        with self.guard:
            if not self._optimizers:
                self.write({"tf_lossscale_record": FORMAT, **dataclasses.asdict(header)})
            number = self._optimizers
            self._optimizers += 1
            self.write(
                {
                    "optimizer": number,
                    "class": record.cls,
                    "scale": dataclasses.asdict(record.scale),
                    "variables": list(zip(record.names, record.shapes)),
                    "initial_weights": record.initial_weights,
                    "settings": record.settings,
                }
            )
            return number

    def add_step(self, optimizer: int, step: int, **values: Any) -> None:
        """Adds a step: values of `record.COLUMNS`, by their keys; None means unknown."""
        if self.is_of_this_process:
            with self.guard:
                self.steps += 1
                self.write({"optimizer": optimizer, "step": step, **values})
        # Without the guard, which another thread of the parent may have held when it was forked.
        elif not self._failed:
            self._failed = True
            notify(
                f"the steps of process {os.getpid()} are not recorded, because it was forked from "
                "one that records."
            )

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process was not forked from the one that opened the file."""
        return self._process == os.getpid()

    def close(self, has_ended: bool) -> None:
        """Writes the last lines, and `has_ended`; removes a file without a step."""
        with self.guard:
            if has_ended and self._optimizers and not self.is_closed:
                self.write({"end": self.steps})
            self.flush()
            self.is_closed = True
            if self.is_of_this_process and self._exists and not self._optimizers:
                remove_record(self.path, only_empty=True)
            _release(self._held)

    def flush(self) -> None:
        """Appends the lines so far to the file; a full disk does not stop the training."""
        if not self.is_of_this_process:
            return
        with self.guard:
            lines, self._lines = self._lines, []
            self._written = time.monotonic()
            if not lines or self._failed:
                return
            try:
                with open(self.path, "a" if self._exists else "w", encoding="utf-8") as file:
                    file.writelines(lines)
            except OSError as error:
                self._failed = True  # a record with missing lines would be read as a wrong one
                reason = error.strerror or error
                notify(f"the record ends here: {self.path} cannot be written: {reason}.")
            self._exists = True


def notify(message: str) -> None:
    print(f"tf-lossscale: {message}", file=sys.stderr, flush=True)


def remove_record(path: str, only_empty: bool = False) -> None:
    """Removes the file of a record without a step; `only_empty` keeps it if it has any content."""
    with contextlib.suppress(OSError):  # an empty record cannot be compared either
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode) and not (only_empty and status.st_size):
            os.remove(path)
