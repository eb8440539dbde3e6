"""Reads a record, which may be anything: it is refused before it takes much time or memory."""

import dataclasses
import gzip
import io
import json
import os
import stat
import sys
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, TextIO

from tf_lossscale._records.format import (
    COLUMNS,
    FORMATS,
    Gap,
    OptimizerRecord,
    RunHeader,
    ScaleParameters,
    count_of,
    fields_from,
    number,
    printable,
    settings_from,
)
from tf_lossscale._types import Json, JsonObject


class RecordError(ValueError):
    """A file is not a record that can be compared; the message is one sentence for the user."""


@dataclasses.dataclass
class Record:
    """A record in memory, with notes for the user about the file."""

    path: str
    """The file, as it can be printed."""
    header: RunHeader
    optimizers: List[OptimizerRecord]
    notes: List[str]
    ended: bool = False
    """Whether the run ended by itself."""


_GZIP = b"\x1f\x8b"
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_LONGEST_LINE = 2**20
_DESCRIPTIONS = 2**20
"""How long the lines may be together that describe optimizers: some 10,000 variables."""
_LONG_LINE = 4096
_LONGEST_NUMBER = 400
_EXPANSION, _EXPANDED = 100, 10 * 2**20
"""A compressed file may expand to so many times its size, or to so many bytes."""


def read_record(path: str) -> Record:
    """Reads the record at `path`, which may be compressed with gzip.

    An incomplete last line, for example after a crash, is ignored and noted.

    Raises:
      RecordError: the file does not exist, is not a record, was written by a later version, has a
        line that cannot be read, or is so large or so strange that nobody recorded it.
    """
    name = printable(path, 200)
    try:
        # Otherwise the opening of a pipe waits for somebody who writes to it.
        flags = (getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_BINARY"))
        handle = os.open(path, sum(flags))
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RecordError(f"{name} is not a regular file; write the record to one first.")
            is_compressed = file.read(2) == _GZIP
            file.seek(0)
            content: Any = gzip.GzipFile(fileobj=file) if is_compressed else file
            size = max(_EXPANDED, _EXPANSION * os.fstat(handle).st_size)
            # Programs on Windows put a byte order mark first.
            with io.TextIOWrapper(content, encoding="utf-8-sig") as text:
                return _read(name, text, size if is_compressed else sys.maxsize)
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordError(f"{name} cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise RecordError(f"{name} is not a record: it is not UTF-8 text.") from None


def _read(path: str, file: TextIO, allowed: int) -> Record:
    """Reads a record line by line; raises RecordError for a line that no recording writes.

    Only the last line may be incomplete: the process was killed while it wrote. That is a note.
    """
    notes: List[str] = []
    lines = _lines(path, file, allowed, notes)
    content = _Content(Record(path, _header(path, next(lines, "")), [], notes))
    for count, line in enumerate(lines, 2):
        try:
            content.add(line)
        except _UNREADABLE as error:
            if not line.endswith("\n") and len(line) < _LONGEST_LINE:
                notes.append(f"{path} ends within line {count}, which is left out.")
                break
            raise RecordError(f"{path}, line {count}: {_reason(error)}.") from None
    record = content.record
    record.optimizers = [run for run in _in_order(content.places) if run.steps]
    if not record.optimizers:
        raise RecordError(f"{path} has no step.")
    return record


class _Content:
    """A record that is read line by line, without its first line.

    Attributes:
      record: what was read, without the optimizers.
      places: the optimizers by their numbers.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.places: Dict[Any, OptimizerRecord] = {}
        self._steps = self._described = 0

    def add(self, line: str) -> None:
        """Adds a line; raises an error of `_UNREADABLE`."""
        values = _parsed(line)
        if self.record.ended:
            raise ValueError("it follows the end line: two runs in one file?")
        # The test for a step is first: nearly all lines are steps.
        if "step" in values:
            self._steps += 1
            _add_step(self.places[values["optimizer"]], values)
        elif "gap" in values:
            _add_gap(self.places[values["optimizer"]], *values["gap"])
        elif "norms" in values:
            _add_norms(self.places[values["optimizer"]], values["norms"])
        elif "end" in values:
            self._end(values["end"], values.get("unscaled"))
        else:
            self._described += len(line)
            _add_optimizer(self.places, values, self._described)

    def _end(self, value: Json, unscaled: Json) -> None:
        if count_of(value, "end") != self._steps:
            raise ValueError(f"the end of {value} steps follows {self._steps} steps")
        for key in unscaled or ():
            self.places[key].scales_no_loss = True
        self.record.ended = True


def _in_order(places: Dict[Any, OptimizerRecord]) -> List[OptimizerRecord]:
    """Returns the optimizers by their numbers.

    An optimizer whose first step is skipped can have its line after a later optimizer's line.
    """
    if all(isinstance(key, int) for key in places):
        return [places[key] for key in sorted(places)]
    return list(places.values())


def _lines(path: str, file: TextIO, allowed: int, notes: List[str]) -> Iterator[str]:
    try:
        for line in iter(lambda: file.readline(_LONGEST_LINE), ""):
            allowed -= len(line)
            if allowed < 0:
                raise OSError(f"it expands to more than {_EXPANSION} times its size")
            yield line
    except EOFError:
        notes.append(f"{path} ends early: the end of the compressed file is missing.")


def _parsed(line: str) -> Json:
    if len(line) < _LONG_LINE:
        return json.loads(line)
    if len(line) >= _LONGEST_LINE:
        raise ValueError("it is too long for a line of a record")
    return json.loads(line, parse_int=_short_int)


def _short_int(digits: str) -> int:
    # The time that `int` takes grows with the square of the length.
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError("a number has too many digits")
    return int(digits)


def _reason(error: Exception) -> str:
    if isinstance(error, (json.JSONDecodeError, RecursionError)):
        return "not a JSON object"
    if isinstance(error, KeyError):
        missing = printable(repr(error.args[0]), 40)
        return f"{missing} is missing, or names an optimizer that no line describes"
    return printable(str(error), 200)


def _header(path: str, line: str) -> RunHeader:
    """Reads the line that describes the run; raises RecordError if it does not."""
    if not line.strip():
        raise RecordError(
            f"{path} is empty. A record begins with the line that describes the run, which is "
            "written when a loss-scale optimizer makes its first step."
        )
    try:
        values = _parsed(line)
        version = values["tf_lossscale_record"]
    except _UNREADABLE:
        raise RecordError(
            f"{path} is not a record of tf-lossscale: its first line does not describe a run. "
            "Records are written by `tf-lossscale record FILE SCRIPT`."
        ) from None
    if version not in FORMATS:
        raise RecordError(
            f"{path} has format {printable(repr(version), 40)}, and this version of tf-lossscale "
            f"reads format {FORMATS[0]} to {FORMATS[-1]}: compare it with the version that wrote "
            "it, or a later one."
        )
    try:
        return RunHeader(**fields_from(RunHeader, values))
    except _UNREADABLE as error:
        raise RecordError(f"{path}, line 1: {_reason(error)}.") from None


def _add_optimizer(places: Dict[object, OptimizerRecord], values: Json, described: int) -> None:
    """Adds the optimizer that a line describes; checks all values, which may be hostile.

    Raises KeyError, TypeError or ValueError if they are not as a recording writes them.
    """
    key = values["optimizer"]
    if key in places:
        raise ValueError(f"optimizer {key!r} is described twice")
    if described > _DESCRIPTIONS:
        raise ValueError("the descriptions of optimizers are too long for a record")
    places[key] = OptimizerRecord(
        cls=printable(values["class"]),
        scale=ScaleParameters(**fields_from(ScaleParameters, dict(values["scale"]))),
        names=[printable(name) for name, _ in values["variables"]],
        shapes=[[count_of(size, "size") for size in shape] for _, shape in values["variables"]],
        initial_weights=values.get("initial_weights"),
        settings=settings_from(values.get("settings", {})),
        computed=_of_each_variable(values, "computed", _dtype),
        slots=_word(values, "slots", ("fresh", "trained")),
        unscaled_by=_word(values, "unscaled_by", ("program", "step")),
    )


def _of_each_variable(values: Json, key: str, read: Callable[[Json], Any]) -> Optional[List[Any]]:
    if values.get(key) is None:
        return None
    if len(values[key]) != len(values["variables"]):
        raise ValueError(f"{key} has not one value for each variable")
    return [read(value) for value in values[key]]


def _dtype(value: Json) -> Optional[str]:
    return None if value is None else printable(value, 20)


def _word(values: Json, key: str, words: Sequence[str]) -> Optional[str]:
    value = values.get(key)
    if value is not None and value not in words:
        raise ValueError(f"{key} is none of {', '.join(words)}")
    return None if value is None else str(value)


def _add_norms(record: OptimizerRecord, norms: Json) -> None:
    if record.norms is not None:
        raise ValueError("the norms of this optimizer are given twice")
    if len(norms) != len(record.names):
        raise ValueError("norms has not one value for each variable")
    record.norms = [number(norm) for norm in norms]


def _add_gap(record: OptimizerRecord, first: Json, end: Json) -> None:
    gap = Gap(count_of(first, "step"), count_of(end, "step"))
    if record.gaps and gap.first < record.gaps[-1].end:
        raise ValueError(f"the gap from {gap.first} on follows that up to {record.gaps[-1].end}")
    record.gaps.append(gap)


def _add_step(record: OptimizerRecord, values: JsonObject) -> None:
    step = count_of(values["step"], "step")
    last = record.steps[-1] if record.steps else step - 1
    if step <= last:
        raise ValueError(f"step {step} follows step {last}: two runs in one file?")
    if step != last + 1 and (not record.gaps or record.gaps[-1].end != step):
        record.gaps.append(Gap(last + 1, step))
    record.add(step, **{column.name: column.read(values.get(column.key)) for column in COLUMNS})
