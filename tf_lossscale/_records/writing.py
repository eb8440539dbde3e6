"""The file of a recording: one for each process, locked, and written at least every second."""

import dataclasses
import itertools
import os
import sys
import threading
import time
from typing import Callable, Dict, List, Optional, Sequence

from tf_lossscale._records.destination import Destination, RecordingError
from tf_lossscale._records.format import (
    DESCRIPTIONS,
    FORMAT,
    Disturbance,
    OptimizerRecord,
    RunHeader,
    dump,
    known,
    line_of,
)
from tf_lossscale._records.summary import Summary, lines_at_the_end, lines_of_monitor
from tf_lossscale._types import Json, JsonObject

_LINES, _SECONDS = 200, 1.0  # after so many lines, or so long a time, lines are written


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

    def __exit__(self, *error: object) -> None:
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
    is imported. Nothing is written before the first step. A forked child process does not record,
    and says so with its first step.

    A lazy record belongs to a process that may make no step. Its file, which no other process
    has, is created with the first step. Each access by several threads or signal handlers goes
    through `guard`. `complaints` are what is missing or doubtful in the record, a sentence each.
    """

    verb, option = "record", "recording"  # in messages

    def __init__(
        self,
        destination: Destination,
        lazy: bool = False,
        disturbed: Optional[Disturbance] = None,
    ) -> None:
        self.disturbed = disturbed
        self.steps = 0
        self._summaries: Dict[int, Summary] = {}  # by the number of the optimizer
        self._numbers = itertools.count()
        self.complaints: List[str] = []
        self.guard = _Guard()
        self.is_closed = False
        self.may_be_empty = lazy  # whether no complaint is due without a step
        self._destination = destination
        self._lines: List[str] = []
        self._written = time.monotonic()
        self._process = os.getpid()
        self._has_begun = False  # whether a step was written
        self._failed = False

    @property
    def path(self) -> str:
        """The name of the record, which it has from its first step on."""
        return self._destination.path

    def write(self, line: JsonObject) -> None:
        self._lines.append(dump(line))
        is_due = len(self._lines) >= _LINES or time.monotonic() - self._written > _SECONDS
        if is_due:
            self.flush()

    @property
    def summaries(self) -> List[Summary]:
        """The summary of each optimizer, in the order of their numbers."""
        return [self._summaries[number] for number in sorted(self._summaries)]

    def reserve(self) -> int:
        """Returns the number of an optimizer that is added later."""
        return next(self._numbers)

    def add_optimizer(
        self, header: RunHeader, record: OptimizerRecord, number: Optional[int] = None
    ) -> int:
        """Adds an optimizer, without its steps; returns its number, which they refer to."""
        with self.guard:
            if not self._summaries:
                values = {**vars(header), "disturbed": header.disturbed or self.disturbed}
                self.write({"tf_lossscale_record": FORMAT, **known(values)})
            number = self.reserve() if number is None else number
            self._summaries[number] = Summary.begin(record)
            self.write(
                {
                    "optimizer": number,
                    "class": record.cls,
                    "scale": dataclasses.asdict(record.scale),
                    "variables": list(zip(record.names, record.shapes)),
                    "initial_weights": record.initial_weights,
                    "settings": record.settings,
                    **known({name: getattr(record, name) for name in DESCRIPTIONS}),
                }
            )
            return number

    def add_norms(self, optimizer: int, norms: Sequence[Optional[float]]) -> None:
        """Adds the norm of each variable's gradient in the first step."""
        with self.guard:
            self.write({"optimizer": optimizer, "norms": list(norms)})

    def add_step(self, optimizer: int, step: int, **values: Json) -> None:
        """Adds a step: values of `format.COLUMNS`, by their names; None means unknown."""
        if self.is_of_this_process:
            with self.guard:
                self.steps += 1
                self._summaries[optimizer].add(step, values)
                self.write({"optimizer": optimizer, "step": step, **line_of(values)})
                if not self._has_begun:
                    self._begin()
        # Without the guard, which another thread of the parent may have held when it was forked.
        elif not self._failed:
            self._failed = True
            notify(
                f"the steps of process {os.getpid()} are not {self.verb}ed, because it was forked "
                f"from one that {self.verb}s."
            )

    def _begin(self) -> None:
        """Writes the lines up to the first step, and gives the file its name."""
        destination, self._has_begun = self._destination, True
        try:
            if destination.descriptor is None:
                destination.use_free_name()
                destination = self._destination = Destination(destination.path)
                destination.hold()
            self.flush()
            destination.publish()
        except FileExistsError:
            taken = destination.path
            destination.use_free_name()
            notify(f"the record is {destination.path}, because {taken} was created meanwhile.")
            destination.publish()
        except (OSError, RecordingError) as error:
            self._fail(error)

    @property
    def is_of_this_process(self) -> bool:
        """Whether this process was not forked from the one that opened the file."""
        return self._process == os.getpid()

    def close(self, has_ended: bool) -> None:
        """Writes the last lines, and `has_ended`; leaves no file without a step."""
        if not self.is_of_this_process:
            return
        with self.guard:
            if self._has_begun:
                if has_ended and not self.is_closed:
                    self.write({"end": self.steps, **known({"unscaled": self._unscaled()})})
                self.flush()
            self.is_closed = True
            self._destination.discard()

    def _unscaled(self) -> Optional[List[int]]:
        """Returns the numbers of the optimizers that scaled no loss; None if there are none."""
        return [n for n in sorted(self._summaries) if self._summaries[n].scales_no_loss] or None

    def flush(self) -> None:
        """Appends the lines so far to the file; a full disk does not stop the training."""
        if not self.is_of_this_process or not self._has_begun:
            return
        with self.guard:
            lines, self._lines = self._lines, []
            self._written = time.monotonic()
            if not lines or self._failed:
                return
            try:
                with open(self._destination.current, "a", encoding="utf-8") as file:
                    file.writelines(lines)
            except OSError as error:
                self._fail(error)

    def without_steps(self, has_tensorflow: bool) -> str:
        """Returns the sentence for the end of a run that made no step."""
        if not has_tensorflow:
            return f"Nothing was recorded in {self.path}: the script did not import TensorFlow."
        return (
            f"No step was recorded in {self.path}: no loss-scale optimizer made one in a graph or "
            "function that was built after recording began."
        )

    def last_lines(self) -> List[str]:
        """Returns two lines about the steps for the end of the run."""
        return lines_at_the_end(self.path, self.summaries)

    def _fail(self, error: Exception) -> None:
        self._failed = True  # a record with missing lines would be read as a wrong one
        reason = getattr(error, "strerror", None) or error
        notify(f"the record ends here: {self.path} cannot be written: {reason}.")


class StepTally(RecordFile):
    """Counts steps as a record does, and writes no file: for `run --monitor`."""

    verb, option = "count", "--monitor"

    def __init__(self, may_be_empty: bool = False) -> None:
        super().__init__(Destination(os.devnull), lazy=may_be_empty)  # which is not opened
        self._prefix = f"process {os.getpid()}: " if may_be_empty else ""

    def write(self, line: JsonObject) -> None:
        """Writes nothing."""

    def _begin(self) -> None:
        self._has_begun = True

    def flush(self) -> None:
        """Writes nothing."""

    def close(self, has_ended: bool) -> None:
        """Ends the counting."""
        self.is_closed = True

    def without_steps(self, has_tensorflow: bool) -> str:
        """Returns the sentence for the end of a run that made no step."""
        if not has_tensorflow:
            return "No step was counted: the script did not import TensorFlow."
        return (
            "No step was counted: no loss-scale optimizer made one in a graph or function that was "
            "built after the script began."
        )

    def last_lines(self) -> List[str]:
        """Returns two lines about the steps for the end of the run."""
        return lines_of_monitor(self._prefix, self.summaries)


def notify(message: str) -> None:
    print(f"tf-lossscale: {message}", file=sys.stderr, flush=True)
