"""Reads a record."""

import dataclasses
import gzip
import io
import json
import zlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tf_lossscale._recording.record import (
    COLUMNS,
    FORMAT,
    FORMATS,
    Gap,
    OptimizerRecord,
    RunHeader,
    ScaleParameters,
    count_of,
    number,
)

__all__ = ["Record", "RecordError", "read_record"]


class RecordError(ValueError):
    """A file is not a record that can be compared; the message is one sentence for the user."""


@dataclasses.dataclass
class Record:
    """A record in memory.

    Attributes:
      path: the file.
      header: the description of the run.
      optimizers: the steps of each optimizer, in the order of their first steps.
      notes: notes for the user about the file, such as an incomplete last line.
      ended: whether the run ended by itself; None in the first format, which does not say it.
    """

    path: str
    header: RunHeader
    optimizers: List[OptimizerRecord]
    notes: List[str]
    ended: Optional[bool] = None


_GZIP = b"\x1f\x8b"
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_RULES = ("dynamic", "exponential", "keras3", "fixed", "unknown")


def read_record(path: str) -> Record:
    """Reads the record at `path`, which may be compressed with gzip.

    An incomplete last line, for example after a crash, is ignored and noted.

    Raises:
      RecordError: the file does not exist, is not a record, was written by a later version, or has
        a line that cannot be read.
    """
    try:
        with open(path, "rb") as file:
            is_compressed = file.read(2) == _GZIP
            file.seek(0)
            content: Any = gzip.GzipFile(fileobj=file) if is_compressed else file
            # Programs on Windows put a byte order mark first.
            with io.TextIOWrapper(content, encoding="utf-8-sig") as text:
                return _read(path, text)
    except (OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordError(f"{path} cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path} is not a record: it is not UTF-8 text.") from None


def _read(path: str, file: Any) -> Record:
    notes: List[str] = []
    lines = _lines(path, file, notes)
    first = next(lines, "")
    if not first.strip():
        raise RecordError(
            f"{path} is empty. A record begins with the line that describes the run, which is "
            "written when a loss-scale optimizer makes its first step."
        )
    header, has_end = _header(path, first)
    record = Record(path, header, [], notes, False if has_end else None)
    steps = 0
    places: Dict[Any, OptimizerRecord] = {}
    for count, line in enumerate(lines, 2):
        try:
            values = json.loads(line)
            # The test for a step is first: nearly all lines are steps.
            if record.ended:
                raise ValueError("it follows the end line: two runs in one file?")
            if "step" in values:
                steps += 1
                _add_step(places[values["optimizer"]], values)
            elif "gap" in values:
                first, end = values["gap"]
                gap = Gap(count_of(first, "step"), count_of(end, "step"))
                places[values["optimizer"]].gaps.append(gap)
            elif "end" in values:
                record.ended = True
                if count_of(values["end"], "end") != steps:
                    raise ValueError(f"the end of {values['end']} steps follows {steps} steps")
            elif values["optimizer"] not in places:
                places[values["optimizer"]] = _optimizer(values)
                record.optimizers.append(places[values["optimizer"]])
            else:
                raise ValueError(f"optimizer {values['optimizer']!r} is described twice")
        except _UNREADABLE as error:
            if not line.endswith("\n"):
                record.notes.append(f"{path} ends within line {count}, which is left out.")
                break
            raise RecordError(f"{path}, line {count}: {_reason(error)}.") from None
    if not any(each.steps for each in record.optimizers):
        raise RecordError(f"{path} has no step.")
    record.optimizers = [each for each in record.optimizers if each.steps]
    return record


def _lines(path: str, file: Any, notes: List[str]) -> Iterator[str]:
    try:
        yield from file
    except EOFError:
        notes.append(f"{path} ends early: the end of the compressed file is missing.")


def _reason(error: Exception) -> str:
    if isinstance(error, (json.JSONDecodeError, RecursionError)):
        return "not a JSON object"
    if isinstance(error, KeyError):
        return f"{error.args[0]!r} is missing, or names an optimizer that no line describes"
    return str(error)


def _header(path: str, line: str) -> Tuple[RunHeader, bool]:
    try:
        values = json.loads(line)
        version = values["tf_lossscale_record"]
    except _UNREADABLE:
        raise RecordError(
            f"{path} is not a record of tf-lossscale: its first line does not describe a run. "
            "Records are written by `tf-lossscale run --record FILE`."
        ) from None
    if version not in FORMATS:
        raise RecordError(
            f"{path} has format {version!r}, and this version of tf-lossscale reads format "
            f"{FORMAT}: compare it with the version that wrote it, or a later one."
        )
    known = {field.name for field in dataclasses.fields(RunHeader)}
    header = RunHeader(**{key: value for key, value in values.items() if key in known})
    return header, version >= 2


def _optimizer(values: Dict[str, Any]) -> OptimizerRecord:
    return OptimizerRecord(
        cls=_printable(values["class"]),
        scale=_scale(dict(values["scale"])),
        names=[_printable(name) for name, _ in values["variables"]],
        shapes=[[count_of(size, "size") for size in shape] for _, shape in values["variables"]],
        initial_weights=values.get("initial_weights"),
    )


def _scale(values: Dict[str, Any]) -> ScaleParameters:
    found = {}
    for field in dataclasses.fields(ScaleParameters):
        if field.name not in values:
            continue
        value = values[field.name]
        if field.name == "rule":
            if value not in _RULES:
                raise ValueError(f"rule {value!r} is none of {', '.join(_RULES)}")
            found[field.name] = value
        elif field.name.endswith("_steps"):
            found[field.name] = count_of(value, field.name)
        elif value is not None or field.name == "initial_scale":
            found[field.name] = number(value)
        else:
            raise ValueError(f"{field.name} is null")
    return ScaleParameters(**found)


def _printable(value: Any) -> str:
    """Returns text without control characters, which a terminal would obey."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(value))


def _add_step(record: OptimizerRecord, values: Dict[str, Any]) -> None:
    step = count_of(values["step"], "step")
    if record.steps and step <= record.steps[-1]:
        raise ValueError(f"step {step} follows step {record.steps[-1]}: two runs in one file?")
    jumps = bool(record.steps) and step != record.steps[-1] + 1
    if jumps and (not record.gaps or record.gaps[-1].end != step):
        record.gaps.append(Gap(record.steps[-1] + 1, step))
    record.steps.append(step)
    for column in COLUMNS:
        getattr(record, column.name).append(column.read(values.get(column.key)))
