"""The contents of a record of a training run, and its file format: one JSON object per line.

The first line describes the run. A line that describes an optimizer precedes that optimizer's
first step; each further line is one step of one optimizer, or a gap. See `docs/compare.md`.
"""

import dataclasses
import json
import math
from typing import Any, Dict, List, Optional

__all__ = ["FORMAT", "Gap", "OptimizerRecord", "RunHeader", "ScaleParameters", "dump", "number"]

FORMAT = 1


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
    """

    tensorflow: Optional[str] = None
    keras: Optional[str] = None
    python: Optional[str] = None
    devices: Optional[List[str]] = None
    replicas: Optional[int] = None
    xla: Optional[bool] = None


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
    scale: ScaleParameters = dataclasses.field(default_factory=ScaleParameters)
    names: List[str] = dataclasses.field(default_factory=list)
    shapes: List[List[int]] = dataclasses.field(default_factory=list)
    initial_weights: Optional[str] = None
    steps: List[int] = dataclasses.field(default_factory=list)
    loss: List[Optional[float]] = dataclasses.field(default_factory=list)
    scales: List[Optional[float]] = dataclasses.field(default_factory=list)
    finite: List[Optional[bool]] = dataclasses.field(default_factory=list)
    applied: List[Optional[bool]] = dataclasses.field(default_factory=list)
    norm: List[Optional[float]] = dataclasses.field(default_factory=list)
    bad: List[Optional[int]] = dataclasses.field(default_factory=list)
    gaps: List[Gap] = dataclasses.field(default_factory=list)

    def add(self, step: int, **values: Any) -> None:
        """Appends a step; values that are not given are unknown."""
        self.steps.append(step)
        for name in ("loss", "scales", "finite", "applied", "norm", "bad"):
            getattr(self, name).append(values.get(name))


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
    raise ValueError(f"{value!r} is not a number")


def dump(line: Dict[str, Any]) -> str:
    """Returns a line of a record, with its line end."""
    return json.dumps(_to_json(line), allow_nan=False) + "\n"


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, dict):
        return {key: _to_json(each) for key, each in value.items()}
    return value
