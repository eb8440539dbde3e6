"""Aligns the steps of two runs, and measures how much their numbers differ."""

import dataclasses
import math
from typing import List, Optional, Sequence, Tuple

from tf_lossscale._recording.record import OptimizerRecord

__all__ = ["Aligned", "align", "largest", "relative_error", "smoothed"]


@dataclasses.dataclass
class Aligned:
    """Two runs of one optimizer.

    Attributes:
      old: the first run.
      new: the second run.
      pairs: for each common step, its position in the columns of each run.
      part: where the runs diverge: the position in `pairs` of the first step that only one run
        skips, or where rounding errors have grown large; the length of `pairs` if there is none.
      drifts: whether the latter is the case.
    """

    old: OptimizerRecord
    new: OptimizerRecord
    pairs: List[Tuple[int, int]]
    part: int
    drifts: bool = False

    def step(self, index: int) -> int:
        """Returns the number of a common step."""
        return self.old.steps[self.pairs[index][0]]

    def column(self, name: str, first: int = 0, end: Optional[int] = None) -> "Sequence[Tuple]":
        """Returns the values of both runs in the common steps from `first` up to `end`."""
        old, new = getattr(self.old, name), getattr(self.new, name)
        return [(old[i], new[j]) for i, j in self.pairs[first:end]]


def align(old: OptimizerRecord, new: OptimizerRecord) -> Aligned:
    """Pairs the steps of two runs by their numbers."""
    if old.steps == new.steps:
        pairs = [(index, index) for index in range(len(old.steps))]
    else:
        places = {step: index for index, step in enumerate(new.steps)}
        pairs = [(i, places[step]) for i, step in enumerate(old.steps) if step in places]
    aligned = Aligned(old, new, pairs, len(pairs))
    for index, (one, other) in enumerate(aligned.column("finite")):
        if one is not None and other is not None and one != other:
            aligned.part = index
            break
    return aligned


def relative_error(one: Optional[float], other: Optional[float]) -> float:
    """Returns the difference of two numbers relative to the larger; 0 if one is unknown."""
    if one is None or other is None or one == other:
        return 0.0
    if math.isfinite(one) and math.isfinite(other):
        return abs(one - other) / max(abs(one), abs(other))
    return 0.0 if math.isnan(one) and math.isnan(other) else math.inf


def largest(pairs: "Sequence[Tuple]") -> Tuple[float, int]:
    """Returns the largest relative error of some pairs, and its position."""
    error, place = 0.0, 0
    for index, (one, other) in enumerate(pairs):
        found = relative_error(one, other)
        if found > error:
            error, place = found, index
    return error, place


def smoothed(values: Sequence[Optional[float]], window: int) -> List[float]:
    """Returns the moving average over `window` values, without unknown and infinite ones.

    The mean is NaN if no value in the window remains.
    """
    total, count, means = 0.0, 0, []
    known = [each if each is not None and math.isfinite(each) else None for each in values]
    for index, value in enumerate(known):
        if value is not None:
            total, count = total + value, count + 1
        leaving = known[index - window] if index >= window else None
        if leaving is not None:
            total, count = total - leaving, count - 1
        if index >= window - 1:
            means.append(total / count if count else math.nan)
    return means
