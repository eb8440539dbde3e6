"""The contents of a record of a training run; `docs/compare.md` explains its file format.

The classes and columns below are the only list of what a record can hold: each one names what reads
its value from JSON, and raises ValueError.
"""

import dataclasses
import json
import math
from dataclasses import field
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from tf_lossscale._process import escaped

FORMAT = 2
"""The number of the format."""

_RULES = ("dynamic", "exponential", "keras3", "fixed", "unknown")
_LAST_COUNT = 2**53
"""Larger numbers count nothing, and floats do not hold them."""
_SETTINGS = 100
"""More settings than an optimizer has."""
Setting = Optional[Union[bool, float]]


def number(value: Any) -> Optional[float]:
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


def _parameter(value: Any) -> Optional[float]:
    if value is None:
        raise ValueError("is null")
    return number(value)


def _flag(value: Any) -> Optional[bool]:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"{_shown(value)} is neither true nor false nor null")


def count_of(value: Any, name: str = "") -> int:
    """Converts a JSON value to a whole number, which messages call `name`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not -_LAST_COUNT <= value <= _LAST_COUNT:
        raise ValueError(f"{name} {_shown(value)} is not a whole number in range".lstrip())
    return int(value)


def _rule(value: Any) -> str:
    if value not in _RULES:
        raise ValueError(f"{_shown(value)} is none of {', '.join(_RULES)}")
    return str(value)


def _shown(value: Any) -> str:
    # Not `repr` of the whole value: a long number takes long to print, and Python may refuse to.
    is_huge = isinstance(value, int) and abs(value) >= 2**128
    return "(huge)" if is_huge else printable(repr(value), 40)


def printable(value: Any, length: int = 100) -> str:
    """Returns text that can be printed, and shortened."""
    text = str(value)
    if len(text) > length:
        text = text[: length // 2] + "..." + text[-(length // 2 - 3) :]
    return escaped(text)


def settings_from(value: Any) -> Dict[str, Setting]:
    """Converts a JSON object to settings of an optimizer by their names."""
    if not isinstance(value, dict) or len(value) > _SETTINGS:
        raise ValueError("settings are not an object of a few numbers")
    return {
        printable(name, 40): each if isinstance(each, bool) else number(each)
        for name, each in value.items()
    }


_Read = Callable[[Any], Any]


def _optional(read: _Read) -> _Read:
    return lambda value: None if value is None else read(value)


_count_or_none = _optional(count_of)
_text = _optional(lambda value: printable(value, 40))
_texts = _optional(lambda value: [printable(each, 40) for each in list(value)[:20]])


@dataclasses.dataclass
class RunHeader:
    """The first line of a record: versions, and what else can change the last bits of numbers.

    None means unknown. The devices are their types, such as `["CPU"]`; `xla` is whether a step was
    compiled by XLA.
    """

    tensorflow: Optional[str] = field(default=None, metadata={"read": _text})
    keras: Optional[str] = field(default=None, metadata={"read": _text})
    python: Optional[str] = field(default=None, metadata={"read": _text})
    devices: Optional[List[str]] = field(default=None, metadata={"read": _texts})
    replicas: Optional[int] = field(default=None, metadata={"read": _count_or_none})
    xla: Optional[bool] = field(default=None, metadata={"read": _flag})


@dataclasses.dataclass
class ScaleParameters:
    """How a loss scale is updated, and the scale and counts before the first step.

    The scale grows after `growth_steps` finite steps, and shrinks after `shrink_steps` others. The
    rule is `"unknown"` for a class with its own.
    """

    rule: str = field(default="unknown", metadata={"read": _rule})
    initial_scale: Optional[float] = field(default=None, metadata={"read": number})
    growth_steps: int = field(default=2000, metadata={"read": count_of})
    growth_factor: float = field(default=2.0, metadata={"read": _parameter})
    shrink_steps: int = field(default=1, metadata={"read": count_of})
    shrink_factor: float = field(default=0.5, metadata={"read": _parameter})
    good_steps: int = field(default=0, metadata={"read": count_of})
    bad_steps: int = field(default=0, metadata={"read": count_of})


def fields_from(cls: Any, values: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the values of those fields of a class of this module that a JSON object has."""
    found = {}
    for each in dataclasses.fields(cls):
        if each.name in values:
            try:
                found[each.name] = each.metadata["read"](values[each.name])
            except ValueError as error:
                raise ValueError(f"{each.name} {error}") from None
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
)


@dataclasses.dataclass
class OptimizerRecord:
    """The steps of one optimizer, as columns of equal length; None means unknown.

    The `steps` are numbers, which increase. `scales` are those that the steps used, before their
    update, and `finite` is what the class determined.
    """

    cls: str = "unknown"
    scale: ScaleParameters = field(default_factory=ScaleParameters)
    names: List[str] = field(default_factory=list)
    shapes: List[List[int]] = field(default_factory=list)
    initial_weights: Optional[str] = None
    settings: Dict[str, Setting] = field(default_factory=dict)
    steps: List[int] = field(default_factory=list)
    loss: List[Optional[float]] = field(default_factory=list)
    scales: List[Optional[float]] = field(default_factory=list)
    finite: List[Optional[bool]] = field(default_factory=list)
    applied: List[Optional[bool]] = field(default_factory=list)
    norm: List[Optional[float]] = field(default_factory=list)
    bad: List[Optional[int]] = field(default_factory=list)
    gaps: List[Gap] = field(default_factory=list)

    def add(self, step: int, **values: Any) -> None:
        """Appends a step; values that are not given are unknown."""
        self.steps.append(step)
        for column in COLUMNS:
            getattr(self, column.name).append(values.get(column.name))


def dump(line: Dict[str, Any]) -> str:
    return json.dumps(_to_json(line), allow_nan=False) + "\n"


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _to_json(each) for key, each in value.items()}
    return value
