"""The contents of a record of a training run; `docs/compare.md` explains its file format.

The classes and columns below are the only list of what a record can hold: each one names what reads
its value from JSON, and raises ValueError.
"""

import dataclasses
import json
from dataclasses import field
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from tf_lossscale._json import jsonable
from tf_lossscale._process import escaped
from tf_lossscale._types import Class, Json, JsonObject

FORMAT = 3
"""The number of the format that is written."""
FORMATS = (2, FORMAT)
"""Those that are read; records of format 2 have fewer fields, and mean the same by them."""

_RULES = ("dynamic", "exponential", "keras3", "fixed", "unknown")
_LAST_COUNT = 2**53
"""Larger numbers count nothing, and floats do not hold them."""
_SETTINGS = 100
"""More settings than an optimizer has."""
_NAMES = 200
"""More names than the shim has."""
_SHOWN_NAMES = 2
"""How many of them a sentence names."""
Setting = Optional[Union[bool, float]]


def number(value: Json) -> Optional[float]:
    """Converts a JSON value to a number; infinities are strings, as JSON has none."""
    if value is None:
        return None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number and value not in ("inf", "-inf", "nan"):
        raise ValueError(f"{_shown(value)} is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a number is too large for a float") from None


def _parameter(value: Json) -> Optional[float]:
    if value is None:
        raise ValueError("is null")
    return number(value)


def _flag(value: Json) -> Optional[bool]:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"{_shown(value)} is neither true nor false nor null")


def count_of(value: Json, name: str = "") -> int:
    """Converts a JSON value to a whole number, which messages call `name`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not -_LAST_COUNT <= value <= _LAST_COUNT:
        raise ValueError(f"{name} {_shown(value)} is not a whole number in range".lstrip())
    return int(value)


def _rule(value: Json) -> str:
    if value not in _RULES:
        raise ValueError(f"{_shown(value)} is none of {', '.join(_RULES)}")
    return str(value)


def _shown(value: Json) -> str:
    # Not `repr` of the whole value: a long number takes long to print, and Python may refuse to.
    is_huge = isinstance(value, int) and abs(value) >= 2**128
    return "(huge)" if is_huge else printable(repr(value), 40)


def printable(value: Json, length: int = 100) -> str:
    """Returns text that can be printed, and shortened."""
    text = str(value)
    if len(text) > length:
        text = text[: length // 2] + "..." + text[-(length // 2 - 3) :]
    return escaped(text)


def settings_from(value: Json) -> Dict[str, Setting]:
    """Converts a JSON object to settings of an optimizer by their names."""
    if not isinstance(value, dict) or len(value) > _SETTINGS:
        raise ValueError("settings are not an object of a few numbers")
    return {
        printable(name, 40): setting if isinstance(setting, bool) else number(setting)
        for name, setting in value.items()
    }


_Read = Callable[[Json], Any]


def _optional(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


_count_or_none = _optional(count_of)
_text = _optional(lambda value: printable(value, 40))
_texts = _optional(lambda value: [printable(text, 40) for text in list(value)[:20]])
_names = _optional(lambda value: [printable(name) for name in list(value)[:_NAMES]])
_numbers = _optional(lambda value: [number(item) for item in list(value)])


class Disturbance(NamedTuple):
    """How a run was disturbed, to measure how far rounding carries it away."""

    record: str
    """The `id` of the record of the same run without the disturbance."""
    number: int
    """The number of the disturbed run, from 1 on, which the random numbers depend on."""
    weights: float
    """Each initial weight was multiplied by 1 and this times a standard normal number."""
    scale: float
    """The initial loss scale was multiplied by this."""
    rate: float = 1.0
    """The learning rate was multiplied by this."""


def _disturbance(value: Json) -> Optional[Disturbance]:
    if value is None:
        return None
    weights, scale, rate = (
        _parameter(value.get(name, 1.0)) or 0.0 for name in ("weights", "scale", "rate")
    )
    of, count = printable(value["record"], 40), count_of(value["number"])
    return Disturbance(of, count, weights, scale, rate)


@dataclasses.dataclass
class RunHeader:
    """The first line of a record: how the run was made, and what can change its last bits.

    None means unknown. The devices are their types, such as `["CPU"]`; `xla` is whether a step was
    compiled by XLA. `supplied` and `replaced` are the names under `tensorflow` that the shim had
    put there, where TensorFlow has none or another one. `disturbed` is what `record --disturb` has
    changed in this run. The records of the disturbed runs refer to this record by `id`.
    """

    tensorflow: Optional[str] = field(default=None, metadata={"read": _text})
    keras: Optional[str] = field(default=None, metadata={"read": _text})
    python: Optional[str] = field(default=None, metadata={"read": _text})
    devices: Optional[List[str]] = field(default=None, metadata={"read": _texts})
    replicas: Optional[int] = field(default=None, metadata={"read": _count_or_none})
    xla: Optional[bool] = field(default=None, metadata={"read": _flag})
    id: Optional[str] = field(default=None, metadata={"read": _text})
    supplied: Optional[List[str]] = field(default=None, metadata={"read": _names})
    replaced: Optional[List[str]] = field(default=None, metadata={"read": _names})
    disturbed: Optional[Disturbance] = field(default=None, metadata={"read": _disturbance})


def names_of_changes(header: RunHeader) -> str:
    """Returns which names the shim had put under `tensorflow` in a run; nothing if none."""
    found = []
    for verb, names in (("replaced", header.replaced), ("supplied", header.supplied)):
        paths = [name for name in names or () if name.startswith("tf.")]
        if paths:
            found.append(f"{_some(paths)} {verb} by the shim")
    return " and ".join(found)


def main_change(header: RunHeader) -> str:
    """Returns the same in a few words: what was replaced, or how many names were supplied."""
    count = len(header.supplied or ())
    supplied = f"{count} name{'' if count == 1 else 's'} supplied by the shim"
    return names_of_changes(RunHeader(replaced=header.replaced)) or supplied


def _some(names: List[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


@dataclasses.dataclass
class ScaleParameters:
    """How a loss scale is updated, and the scale and counts before the first step.

    The scale grows after `growth_steps` finite steps, and shrinks after `shrink_steps` others, but
    not below `minimum_scale`; Keras 3's class has no minimum. The rule is `"unknown"` for a class
    with its own.
    """

    rule: str = field(default="unknown", metadata={"read": _rule})
    initial_scale: Optional[float] = field(default=None, metadata={"read": number})
    growth_steps: int = field(default=2000, metadata={"read": count_of})
    growth_factor: float = field(default=2.0, metadata={"read": _parameter})
    shrink_steps: int = field(default=1, metadata={"read": count_of})
    shrink_factor: float = field(default=0.5, metadata={"read": _parameter})
    minimum_scale: float = field(default=1.0, metadata={"read": _parameter})
    good_steps: int = field(default=0, metadata={"read": count_of})
    bad_steps: int = field(default=0, metadata={"read": count_of})


def fields_from(cls: Class, values: JsonObject) -> JsonObject:
    """Returns the values of those fields of a class of this module that a JSON object has."""
    found = {}
    for attribute in dataclasses.fields(cls):
        if attribute.name in values:
            try:
                found[attribute.name] = attribute.metadata["read"](values[attribute.name])
            except ValueError as error:
                raise ValueError(f"{attribute.name} {error}") from None
    return found


class Gap(NamedTuple):
    """Steps that were run but are not in the record, from `first` up to `end`, not included."""

    first: int
    end: int


class Column(NamedTuple):
    """A column of an `OptimizerRecord`, the key of its values in the file, and what reads them."""

    name: str
    key: str
    read: _Read


COLUMNS = (
    Column("loss", "loss", number),
    Column("scales", "scale", number),
    Column("finite", "finite", _flag),
    Column("applied", "applied", _flag),
    Column("norm", "norm", number),
    Column("bad", "bad", _count_or_none),
    Column("bad_count", "bad_count", _count_or_none),
    Column("unscaled_norm", "unscaled_norm", number),
    Column("rate", "rate", number),
    Column("replica_norms", "replica_norms", _numbers),
)
_ALWAYS_WRITTEN = ("loss", "scale", "finite", "applied", "norm", "bad")
"""The keys that each step has, even if the value is unknown."""


@dataclasses.dataclass
class OptimizerRecord:
    """The steps of one optimizer, as columns of equal length; None means unknown.

    The `steps` are numbers, which increase. `scales` are those that the steps used, before their
    update, and `finite` is what the class determined.

    `norm` is the norm of the gradients that the class passes to the inner optimizer.
    `unscaled_norm` is their norm where they were unscaled, before the program has clipped them.
    `replica_norms` has the norm of each replica's gradients, before they are added up. `rate` is
    the learning rate. `bad` is the number of the first variable whose gradient was not finite,
    before clipping if that is known, and `bad_count` is how many variables there were.

    For each variable, `norms` has the norm of its gradient in the first step, and `computed` the
    dtype that its gradient was computed in. `slots` is `"trained"` if the inner optimizer had
    slots with the values of earlier training before the first step, and `"fresh"` if not.
    `unscaled_by` is `"program"` if it unscales the gradients, and can change them afterwards, or
    `"step"` if it can only change them while they are scaled, as with Keras 3's `apply`.
    `scales_no_loss` is whether the end of the record says that no loss was scaled through it.
    """

    cls: str = "unknown"
    scale: ScaleParameters = field(default_factory=ScaleParameters)
    names: List[str] = field(default_factory=list)
    shapes: List[List[int]] = field(default_factory=list)
    initial_weights: Optional[str] = None
    settings: Dict[str, Setting] = field(default_factory=dict)
    computed: Optional[List[Optional[str]]] = None
    slots: Optional[str] = None
    unscaled_by: Optional[str] = None
    norms: Optional[List[Optional[float]]] = None
    steps: List[int] = field(default_factory=list)
    loss: List[Optional[float]] = field(default_factory=list)
    scales: List[Optional[float]] = field(default_factory=list)
    finite: List[Optional[bool]] = field(default_factory=list)
    applied: List[Optional[bool]] = field(default_factory=list)
    norm: List[Optional[float]] = field(default_factory=list)
    bad: List[Optional[int]] = field(default_factory=list)
    bad_count: List[Optional[int]] = field(default_factory=list)
    unscaled_norm: List[Optional[float]] = field(default_factory=list)
    rate: List[Optional[float]] = field(default_factory=list)
    replica_norms: List[Optional[List[Optional[float]]]] = field(default_factory=list)
    gaps: List[Gap] = field(default_factory=list)
    scales_no_loss: bool = False

    def add(self, step: int, **values: Json) -> None:
        """Appends a step; values that are not given are unknown."""
        self.steps.append(step)
        for column in COLUMNS:
            getattr(self, column.name).append(values.get(column.name))


DESCRIPTIONS = ("computed", "slots", "unscaled_by")
"""The attributes of an `OptimizerRecord` that its line has if they are known."""


def known(values: JsonObject) -> JsonObject:
    """Returns the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def line_of(values: JsonObject) -> JsonObject:
    """Returns the values of a step, by the names of their columns, as they stand in its line."""
    found = {column.key: values.get(column.name) for column in COLUMNS}
    return {
        key: value for key, value in found.items() if value is not None or key in _ALWAYS_WRITTEN
    }


def dump(line: JsonObject) -> str:
    return json.dumps(jsonable(line), allow_nan=False) + "\n"
