"""The contents of a record of a training run, and its file format: one JSON object per line.

The first line describes the run. A line that describes an optimizer precedes that optimizer's
first step; each further line is one step of one optimizer, or a gap. The last line says that the
run ended there, and was not cut off. See `docs/compare.md`.
"""

import dataclasses
import json
import math
from dataclasses import field
from typing import Any, Callable, Dict, List, NamedTuple, Optional

__all__ = [
    "COLUMNS",
    "FORMAT",
    "FORMATS",
    "Gap",
    "OptimizerRecord",
    "RunHeader",
    "ScaleParameters",
    "count_of",
    "dump",
    "number",
]

FORMAT = 2
FORMATS = (1, 2)
"""The formats that can be read. The first one has no end line."""


@dataclasses.dataclass
class RunHeader:
    """The first line of a record.

    Attributes:
      tensorflow: version of TensorFlow.
      keras: version of the Keras in use; None without Keras.
      python: version of Python.
      devices: types of the devices, such as `["CPU"]`.
      replicas: number of replicas.
      xla: whether a step was compiled by XLA; None if unknown.
      precision: in which precision the program computes, such as `"mixed_float16"`.
    """

    tensorflow: Optional[str] = None
    keras: Optional[str] = None
    python: Optional[str] = None
    devices: Optional[List[str]] = None
    replicas: Optional[int] = None
    xla: Optional[bool] = None
    precision: Optional[str] = None


@dataclasses.dataclass
class ScaleParameters:
    """How a loss scale is updated.

    Attributes:
      rule: `"dynamic"` (v1 and Keras 2), `"exponential"` (contrib), `"keras3"`, `"fixed"`, or
        `"unknown"` for a class with its own update rule.
      initial_scale: the scale before the first step.
      growth_steps: finite steps after which the scale grows.
      growth_factor: factor of growth.
      shrink_steps: non-finite steps after which the scale shrinks.
      shrink_factor: factor of decrease.
      good_steps: finite steps already counted before the first step.
      bad_steps: non-finite steps already counted before the first step.
    """

    rule: str = "unknown"
    initial_scale: Optional[float] = None
    growth_steps: int = 2000
    growth_factor: float = 2.0
    shrink_steps: int = 1
    shrink_factor: float = 0.5
    good_steps: int = 0
    bad_steps: int = 0


_TEXT = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def number(value: Any) -> Optional[float]:
    """Converts a JSON value to a number; infinities are strings, as JSON has none.

    Raises:
      ValueError: the value is not a number.
    """
    if value is None:
        return None
    if isinstance(value, str) and value in _TEXT:
        return _TEXT[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError("a number is too large for a float") from None
    raise ValueError(f"{_shortened(value)} is not a number")


def _flag(value: Any) -> Optional[bool]:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f"{_shortened(value)} is neither true nor false nor null")


_LAST_COUNT = 2**53
"""Larger numbers count nothing, and floats do not hold them."""


def count_of(value: Any, name: str) -> int:
    """Converts a JSON value to a whole number.

    Raises:
      ValueError: the value is not a whole number, or a huge one.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not -_LAST_COUNT <= value <= _LAST_COUNT:
        raise ValueError(f"{name} {_shortened(value)} is not a whole number in range")
    return int(value)


def _variable(value: Any) -> Optional[int]:
    return None if value is None else count_of(value, "variable")


def _shortened(value: Any) -> str:
    # Not `repr` of the whole value: a long number takes long to print, and Python may refuse to.
    return repr(value)[:40] if not isinstance(value, int) or abs(value) < 2**128 else "(huge)"


def _step(key: str, read: Callable[[Any], Any]) -> Dict[str, Any]:
    return {"key": key, "read": read}


@dataclasses.dataclass
class Gap:
    """Steps that were run but are not in the record.

    Attributes:
      first: number of the first missing step.
      end: number of the first step after the gap.
    """

    first: int
    end: int


@dataclasses.dataclass
class OptimizerRecord:
    """The steps of one optimizer, as columns of equal length; None means unknown.

    Each line with `_step` is a field of a step: its key in the file, and what reads its value.

    Attributes:
      cls: name of the loss-scale class.
      scale: how its loss scale is updated.
      names: names of its variables.
      shapes: their shapes.
      initial_weights: hash of their values before the first step.
      steps: numbers of the recorded steps, increasing.
      loss: losses, unscaled.
      scales: loss scales that the steps used, before their update.
      finite: whether all gradients were finite, as determined by the class.
      applied: whether the variables were updated.
      norm: norms of the unscaled gradients.
      bad: numbers of the first variables with a non-finite gradient.
      gaps: steps that are missing.
    """

    cls: str = "unknown"
    scale: ScaleParameters = field(default_factory=ScaleParameters)
    names: List[str] = field(default_factory=list)
    shapes: List[List[int]] = field(default_factory=list)
    initial_weights: Optional[str] = None
    steps: List[int] = field(default_factory=list)
    loss: List[Optional[float]] = field(default_factory=list, metadata=_step("loss", number))
    scales: List[Optional[float]] = field(default_factory=list, metadata=_step("scale", number))
    finite: List[Optional[bool]] = field(default_factory=list, metadata=_step("finite", _flag))
    applied: List[Optional[bool]] = field(default_factory=list, metadata=_step("applied", _flag))
    norm: List[Optional[float]] = field(default_factory=list, metadata=_step("norm", number))
    bad: List[Optional[int]] = field(default_factory=list, metadata=_step("bad", _variable))
    gaps: List[Gap] = field(default_factory=list)

    def add(self, step: int, **values: Any) -> None:
        """Appends a step; values that are not given are unknown."""
        self.steps.append(step)
        for column in COLUMNS:
            getattr(self, column.name).append(values.get(column.name))


class Column(NamedTuple):
    """A field of a step.

    Attributes:
      name: of the attribute of `OptimizerRecord`.
      key: in the file.
      read: converts a JSON value; raises ValueError.
    """

    name: str
    key: str
    read: Callable[[Any], Any]


COLUMNS = [
    Column(each.name, **each.metadata)
    for each in dataclasses.fields(OptimizerRecord)
    if each.metadata
]


def dump(line: Dict[str, Any]) -> str:
    """Returns a line of a record, with its line end."""
    return json.dumps(_to_json(line), allow_nan=False) + "\n"


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: _to_json(each) for key, each in value.items()}
    return value
