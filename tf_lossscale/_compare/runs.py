"""Two runs side by side: their common steps, by how much they differ, and what can follow."""

import dataclasses
import enum
import math
from typing import Any, List, Optional, Sequence, Tuple

from tf_lossscale._records.format import COLUMNS, OptimizerRecord, Setting

_QUIET = 1e-5
"""A smaller difference of losses is taken for this one."""
_SETTINGS = 4
"""Of longer lists, the first so many settings are named."""
_EQUAL_SETTING = 1e-6
"""Keras stores the learning rate in float32."""
_AROUND = 4
_SHOWN = (("loss", "loss"), ("scale", "scales"), ("skipped", "finite"), ("norm", "norm"))


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
        return self.value[1]


@dataclasses.dataclass
class Comparison:
    """The result for one optimizer: a sentence, and the reasons for it, a phrase each.

    `step` is the first one in which the runs diverge or differ. `runs` is None if they cannot be
    compared.
    """

    verdict: Verdict
    sentence: str
    step: Optional[int] = None
    evidence: List[str] = dataclasses.field(default_factory=list)
    runs: Optional["Runs"] = None

    def table(self) -> List[List[str]]:
        return [] if self.runs is None or self.step is None else self.runs.around(self.step)


@dataclasses.dataclass
class Conditions:
    """How the runs of a comparison were made; `baseline` is a second run of the old program."""

    are_equal: bool = False
    """Whether equal programs give equal bits."""
    baseline: Optional[OptimizerRecord] = None
    loss_tolerance: float = 0.0
    """The relative error up to which losses are equal."""
    ended: Tuple[bool, bool] = (True, True)
    """For each run, whether it ended by itself."""


class Runs:
    """Two runs of one optimizer.

    Attributes:
      again: the first run and a second one of its program; None without a baseline.
      pairs: for each common step, its position in the columns of each run.
      part: the position in `pairs` of the first step that only one run skips; the length of
        `pairs` if there is none. The loss of that step still comes from weights that agree.
      updated: the position of the first step that both runs apply, or of the one where they part.
      loss: by how much the losses differ; those differences that are allowed are zero.
      norm: the same for the gradient norms.
      noise: the largest difference of the losses before an update.
      settings: how those of the inner optimizers differ, where both are known.
      declared: the same as a cause.
      evidence: the reasons for a verdict, a phrase each.
    """

    def __init__(
        self, old: OptimizerRecord, new: OptimizerRecord, conditions: Optional[Conditions] = None
    ) -> None:
        self.old, self.new = old, new
        self.both = [("old", old), ("new", new)]
        self.conditions = conditions or Conditions()
        baseline = self.conditions.baseline
        self.again = None if baseline is None else Runs(old, baseline)
        places = {step: index for index, step in enumerate(new.steps)}
        self.pairs = [(i, places[step]) for i, step in enumerate(old.steps) if step in places]
        count = len(self.pairs)
        flags = enumerate(self.column("finite"))
        self.part = next((i for i, (a, b) in flags if None not in (a, b) and a != b), count)
        self.updated = next((i for i in range(self.part) if self.is_updated(i)), self.part)
        self.loss = self._not_allowed("loss", self.conditions.loss_tolerance)
        self.norm = self._not_allowed("norm", 0.0)
        self.noise = max(largest(self.loss[: self.updated + 1])[0], _QUIET)
        differing = (
            f"{name} {_text(value)} and {_text(new.settings[name])}"
            for name, value in old.settings.items()
            if name in new.settings and not _are_equal(value, new.settings[name])
        )
        self.settings = ", ".join([*differing][:_SETTINGS])
        self.declared = self.settings and f"cause: the inner optimizers have {self.settings}"
        self.evidence: List[str] = []

    def finding(self, verdict: Verdict, sentence: str, step: Optional[int] = None) -> Comparison:
        return Comparison(verdict, sentence, step, self.evidence, self)

    def different(self, text: str, step: int) -> Comparison:
        return self.finding(Verdict.DIFFERENT, f"Different: {text}.", step)

    def step(self, index: int) -> int:
        """Returns the number of a common step."""
        return self.old.steps[self.pairs[index][0]]

    def column(self, name: str, first: int = 0, end: Optional[int] = None) -> List[Tuple[Any, Any]]:
        """Returns the values of both runs in the common steps from `first` up to `end`."""
        old, new = getattr(self.old, name), getattr(self.new, name)
        return [(old[i], new[j]) for i, j in self.pairs[first:end]]

    def at(self, name: str, index: int) -> Tuple[Any, Any]:
        return self.column(name, index, index + 1)[0]

    def is_updated(self, index: int) -> bool:
        """Returns whether a run is known to apply a common step."""
        return True in (*self.at("applied", index), *self.at("finite", index))

    def first_unequal(self) -> Optional[int]:
        """Returns the position of the first step with a number that is not equal to the bit."""
        names = [each.name for each in COLUMNS if each.name != "bad"]
        rows = enumerate(zip(*map(self.column, names)))
        return next((i for i, pairs in rows if any(difference(*pair) for pair in pairs)), None)

    def differences(self, name: str) -> List[Optional[float]]:
        """Returns the relative differences in the common steps.

        Losses are divided by a tenth of the first loss at least: what remains of a loss of nearly
        zero varies much between correct runs. A norm that is not finite says nothing.
        """
        least = abs(next(iter(finite(self.old.loss)), 0.0)) / 10 if name == "loss" else 0.0
        found = [difference(one, other, least) for one, other in self.column(name)]
        return [None if name == "norm" and each == math.inf else each for each in found]

    def _not_allowed(self, name: str, allowed: float) -> List[Optional[float]]:
        """Returns the differences; zero for those of at most `allowed`.

        Twice what varied until there between runs of the old program is allowed, too.
        """
        again = zip(self.again.pairs, getattr(self.again, name)) if self.again else ()
        varying = {place: each for (place, _), each in again}
        found = []
        for error, (place, _) in zip(self.differences(name), self.pairs):
            allowed = max(allowed, 2 * abs(varying.get(place) or 0.0))
            found.append(0.0 if error is not None and abs(error) <= allowed else error)
        return found

    def around(self, step: int) -> List[List[str]]:
        steps = [self.step(index) for index in range(len(self.pairs))]
        place = next((index for index, each in enumerate(steps) if each >= step), len(steps) - 1)
        first, end = max(0, place - _AROUND), min(len(steps), place + _AROUND + 1)
        heads = ["step"]
        columns = [[f"{'> ' if each == step else ''}{each}" for each in steps[first:end]]]
        for head, name in _SHOWN:
            for (which, _), values in zip(self.both, zip(*self.column(name, first, end))):
                heads.append(f"{head} {which}")
                columns.append([_cell(each) for each in values])
        return [heads, *(list(row) for row in zip(*columns))]


def _are_equal(one: Setting, other: Setting) -> bool:
    error = difference(one, other)
    return one is other if error is None else abs(error) < _EQUAL_SETTING


def _text(value: Setting) -> str:
    return "none" if value is None else str(value) if isinstance(value, bool) else f"{value:.4g}"


def _cell(value: Any) -> str:
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "" if value else "skipped"
    return f"{value:.6g}"


def finite(values: Sequence[Optional[float]]) -> List[float]:
    return [each for each in values if each is not None and math.isfinite(each)]


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
    errors = [abs(each or 0.0) for each in differences]
    error = max(errors, default=0.0)
    return error, errors.index(error) if error else 0
