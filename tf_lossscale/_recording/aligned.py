"""Two runs side by side: their common steps, how much numbers differ, and what can follow."""

import dataclasses
import enum
import math
from typing import Any, List, Optional, Sequence, Tuple

from tf_lossscale._recording.record import OptimizerRecord

__all__ = ["Aligned", "Finding", "Verdict", "align", "difference", "largest", "smoothed"]


class Verdict(enum.Enum):
    """The result of a comparison; the value is its name and the exit status."""

    IDENTICAL = ("identical", 0)
    SAME = ("same", 0)
    ALIKE = ("alike", 0)
    DIFFERENT = ("different", 1)
    UNDECIDED = ("not shown to be the same", 1)
    NOT_COMPARABLE = ("cannot be compared", 2)

    @property
    def status(self) -> int:
        """The exit status."""
        return self.value[1]


Finding = Optional[Tuple[Verdict, str, Optional[int]]]
"""A verdict, its sentence, and the step in which the runs diverge; None if not decided yet."""


@dataclasses.dataclass
class Aligned:
    """Two runs of one optimizer.

    Attributes:
      old: the first run.
      new: the second run.
      pairs: for each common step, its position in the columns of each run.
      part: the position in `pairs` of the first step that only one run skips; the length of
        `pairs` if there is none. The loss of that step still comes from weights that agree.
      updated: the position of the first step that both runs apply, or of the one where they part.
    """

    old: OptimizerRecord
    new: OptimizerRecord
    pairs: List[Tuple[int, int]]
    part: int
    updated: int

    def step(self, index: int) -> int:
        """Returns the number of a common step."""
        return self.old.steps[self.pairs[index][0]]

    def differences(self, name: str, first: int = 0) -> List[Optional[float]]:
        """Returns the relative differences in the common steps from `first` on.

        Losses are divided by a tenth of the first loss at least: what remains of a loss of nearly
        zero varies much between correct runs. A norm that is not finite says nothing.
        """
        least = 0.0
        if name == "loss":
            known = (each for each in self.old.loss if each is not None and math.isfinite(each))
            least = abs(next(known, 0.0)) / 10
        found = [difference(one, other, least) for one, other in self.column(name, first)]
        return [None if name == "norm" and each == math.inf else each for each in found]

    def column(self, name: str, first: int = 0, end: Optional[int] = None) -> "Sequence[Tuple]":
        """Returns the values of both runs in the common steps from `first` up to `end`."""
        old, new = getattr(self.old, name), getattr(self.new, name)
        return [(old[i], new[j]) for i, j in self.pairs[first:end]]

    def around(self, step: Optional[int]) -> List[List[str]]:
        """Returns a table of the steps around a step: its head and its rows, as text."""
        if step is None:
            return []
        steps = [self.step(index) for index in range(len(self.pairs))]
        place = next((index for index, each in enumerate(steps) if each >= step), len(steps) - 1)
        first, end = max(0, place - _AROUND), min(len(steps), place + _AROUND + 1)
        heads = ["step"]
        columns = [[f"{'> ' if each == step else ''}{each}" for each in steps[first:end]]]
        for head, name in _SHOWN:
            pairs = self.column(name, first, end)
            for number, which in enumerate(("old", "new")):
                heads.append(f"{head} {which}")
                columns.append([_cell(pair[number]) for pair in pairs])
        return [heads, *(list(row) for row in zip(*columns))]


_AROUND = 4
_SHOWN = (("loss", "loss"), ("scale", "scales"), ("skipped", "finite"), ("norm", "norm"))


def _cell(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "" if value else "skipped"
    return f"{value:.6g}"


def align(old: OptimizerRecord, new: OptimizerRecord) -> Aligned:
    """Pairs the steps of two runs by their numbers."""
    if old.steps == new.steps:
        pairs = [(index, index) for index in range(len(old.steps))]
    else:
        places = {step: index for index, step in enumerate(new.steps)}
        pairs = [(i, places[step]) for i, step in enumerate(old.steps) if step in places]
    aligned = Aligned(old, new, pairs, len(pairs), len(pairs))
    for index, (one, other) in enumerate(aligned.column("finite")):
        if one is not None and other is not None and one != other:
            aligned.part = index
            break
    steps = zip(aligned.column("applied"), aligned.column("finite"))
    aligned.updated = next(
        (
            index
            for index, (applied, finite) in enumerate(steps)
            if index == aligned.part or True in (*applied, *finite)
        ),
        len(pairs),
    )
    return aligned


def difference(one: Optional[float], other: Optional[float], least: float = 0.0) -> Optional[float]:
    """Returns `other` less `one`, relative to the larger or to `least`; None if one is unknown."""
    if one is None or other is None:
        return None
    if one == other or (one != one and other != other):
        return 0.0
    if math.isfinite(one) and math.isfinite(other):
        return (other - one) / max(abs(one), abs(other), least)
    return math.inf


def largest(differences: Sequence[Optional[float]]) -> Tuple[float, int]:
    """Returns the largest relative error, and its position."""
    error, place = 0.0, 0
    for index, found in enumerate(differences):
        if found is not None and abs(found) > error:
            error, place = abs(found), index
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
