"""Two runs side by side, with the disturbed runs of the old program: their common steps."""

import dataclasses
import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._compare.limits import LEAST_LOSS
from tf_lossscale._records.format import OptimizerRecord

_AROUND = 4
"""How many steps the table shows before and after one."""
_SHOWN = (("loss", "loss"), ("scale", "scales"), ("state", "finite"), ("norm", "norm"))
_CLIPPED, _CLIPPED_STEPS = 2e-5, 4
"""The largest norm is a limit if so many are equal to it, up to this."""
Values = List[Optional[float]]


class Again(NamedTuple):
    """Another run of the old program."""

    run: OptimizerRecord
    has_other_scale: bool = False  # whether its loss scale was disturbed, too


@dataclasses.dataclass
class Conditions:
    """How the runs of a comparison were made.

    Attributes:
      are_equal: whether equal programs give equal bits.
      again: other runs of the old program.
      loss_tolerance: the relative difference up to which losses are equal.
      ended: for each run, whether it ended by itself.
    """

    are_equal: bool = False
    again: Sequence[Again] = ()
    loss_tolerance: float = 0.0
    ended: Tuple[bool, bool] = (True, True)


class Runs:
    """Two runs of one optimizer, of which the old one is right.

    Attributes:
      both: their names and records.
      steps: the numbers of their common steps.
      again: other runs of the old program, which measure how much it varies.
      part: the position in `steps` of the first one that only one run skips; the length of `steps`
        if there is none.
      updated: the position of the first step that a run applies.
    """

    def __init__(
        self, old: OptimizerRecord, new: OptimizerRecord, conditions: Optional[Conditions] = None
    ) -> None:
        self.old, self.new = old, new
        self.both = [("old", old), ("new", new)]
        self.conditions = conditions or Conditions()
        others = set(new.steps)
        self.steps = [step for step in old.steps if step in others]
        self._aligned: Dict[Tuple[int, str], List[Any]] = {}
        self.again = self._that_measure()
        self.part = self.parting(old, new)
        self.updated = min(self.part, *(self.first_update(run) for _, run in self.both))

    def _that_measure(self) -> List[Again]:
        """Returns the other runs of the old program, without those that are equal to another."""
        seen = [(self.old.loss, self.old.norm)]
        found = []
        for again in self.conditions.again:
            numbers = again.run.loss, again.run.norm
            if numbers not in seen:
                seen.append(numbers)
                found.append(again)
        return found

    def column(self, run: OptimizerRecord, name: str) -> List[Any]:
        """Returns the values of a run in the common steps; None where it lacks the step."""
        key = (id(run), name)
        if key not in self._aligned:
            values = getattr(run, name)
            if run.steps != self.steps:
                known = dict(zip(run.steps, values))
                values = [known.get(step) for step in self.steps]
            self._aligned[key] = values
        return self._aligned[key]

    def pairs(self, name: str) -> List[Tuple[Any, Any]]:
        """Returns the values of both runs in the common steps."""
        return list(zip(self.column(self.old, name), self.column(self.new, name)))

    def at(self, name: str, index: int) -> Tuple[Any, Any]:
        return self.column(self.old, name)[index], self.column(self.new, name)[index]

    def parting(self, one: OptimizerRecord, other: OptimizerRecord) -> int:
        """Returns the position of the first step that only one of two runs skips."""
        flags = zip(self.column(one, "finite"), self.column(other, "finite"))
        parting = (i for i, (a, b) in enumerate(flags) if None not in (a, b) and a is not b)
        return next(parting, len(self.steps))

    @property
    def has_other_scale(self) -> bool:
        """Whether a run of the old program has another loss scale, so that it skips other steps."""
        return any(again.has_other_scale for again in self.again)

    @property
    def end_at_same_update(self) -> bool:
        """Whether the runs skip different steps, and end after equally many updates.

        A program that counts updates makes another step for each one that is skipped, such as one
        with `StopAtStepHook`, or an Estimator: contrib's `global_step` counts no skipped step.
        """
        if self.part == len(self.steps):
            return False
        old, new = _updates(self.old), _updates(self.new)
        return old is not None and old == new

    def first_update(self, run: OptimizerRecord) -> int:
        """Returns the position of the first step that a run applies; else how many there are."""
        flags = zip(self.column(run, "applied"), self.column(run, "finite"))
        return next((i for i, pair in enumerate(flags) if True in pair), len(self.steps))

    @property
    def knows_clipping(self) -> bool:
        """Whether all runs have the norms of the gradients before the program changes them."""
        everyone = (self.old, self.new, *(again.run for again in self.again))
        if len({run.unscaled_by for run in everyone}) > 1:
            return False  # one program has changed them before they were seen
        return all(has_any(self.column(run, "unscaled_norm")) for run in everyone)

    def values(self, metric: str, run: OptimizerRecord) -> Values:
        """Returns a metric of a run in the common steps.

        `loss`; `norm`, the gradient norm before the program changes the gradients; and `kept`, the
        part of it that is left when they are applied, which is 1 without clipping. If it is not
        known how a program clips, norms that are at a limit are left out: they are all equal, and
        say nothing about rounding.
        """
        if metric == "loss":
            return self.column(run, "loss")
        norms = self.column(run, "norm")
        if self.knows_clipping:
            unscaled = self.column(run, "unscaled_norm")
            return unscaled if metric == "norm" else [*map(_kept, norms, unscaled)]
        limit = clipping_limit(run)
        if metric == "kept":
            return [None] * len(norms)
        return [norm if limit is None or not is_clipped(norm, limit) else None for norm in norms]

    def differences(self, metric: str, one: OptimizerRecord, other: OptimizerRecord) -> Values:
        """Returns the relative differences of a metric in the common steps.

        Losses are divided by a part of the first loss at least. None where a number is unknown, or
        a norm is not finite; a loss that is not finite in one run only differs by infinity.
        """
        least = 0.0
        if metric == "loss":
            losses = self.column(self.old, "loss")
            first = next((loss for loss in losses if is_finite(loss)), None)
            least = abs(first or 0.0) * LEAST_LOSS.value
        sides = zip(self.values(metric, one), self.values(metric, other))
        found = [difference(a, b, least) for a, b in sides]
        if metric != "loss":
            return [None if error == math.inf else error for error in found]
        tolerance = self.conditions.loss_tolerance
        return [0.0 if error is not None and error <= tolerance else error for error in found]

    def around(self, step: int) -> List[List[str]]:
        """Returns a table of the steps around one."""
        place = next(
            (i for i, recorded in enumerate(self.steps) if recorded >= step), len(self.steps) - 1
        )
        first, end = max(0, place - _AROUND), min(len(self.steps), place + _AROUND + 1)
        heads = ["step"]
        columns = [
            [f"{'> ' if recorded == step else ''}{recorded}" for recorded in self.steps[first:end]]
        ]
        for head, name in _SHOWN:
            for which, run in self.both:
                heads.append(f"{head} {which}")
                values = self.column(run, name)[first:end]
                if name == "finite":
                    columns.append([*map(_state, values, self.column(run, "applied")[first:end])])
                else:
                    columns.append([*map(_cell, values)])
        return [heads, *(list(row) for row in zip(*columns))]


def _updates(run: OptimizerRecord) -> Optional[int]:
    """Returns how many steps of a run have changed the variables; None if that is not known."""
    columns = zip(run.applied, run.finite)
    flags = [finite if applied is None else applied for applied, finite in columns]
    is_whole = len(run.steps) == run.steps[-1] + 1
    return sum(map(bool, flags)) if is_whole and None not in flags else None


def has_any(values: Sequence[object]) -> bool:
    return any(value is not None for value in values)


def clipping_limit(run: OptimizerRecord) -> Optional[float]:
    """Returns the norm to which a run clips its gradients; None if no norm shows it."""
    norms = [norm for norm in run.norm if norm is not None and math.isfinite(norm)]
    limit = max(norms, default=0.0)
    reached = sum(is_clipped(norm, limit) for norm in norms)
    return limit if limit and reached >= _CLIPPED_STEPS else None


def is_clipped(norm: Optional[float], limit: float) -> bool:
    return norm is not None and norm >= limit * (1 - _CLIPPED)


def _kept(applied: Optional[float], unscaled: Optional[float]) -> Optional[float]:
    return applied / unscaled if applied is not None and unscaled else None


def is_finite(value: Optional[float]) -> bool:
    return value is not None and math.isfinite(value)


def are_positive(*values: Optional[float]) -> bool:
    """Returns whether numbers are known, finite and larger than zero."""
    return all(value is not None and 0 < value < math.inf for value in values)


def difference(one: Optional[float], other: Optional[float], least: float = 0.0) -> Optional[float]:
    """Returns how much two numbers differ, relative to the larger or to `least`."""
    if one is None or other is None:
        return None
    if one == other or (one != one and other != other):
        return 0.0
    if math.isfinite(one) and math.isfinite(other):
        return abs(other - one) / max(abs(one), abs(other), least)
    return math.inf


def _state(finite: Optional[bool], applied: Optional[bool]) -> str:
    is_skipped = finite is False if applied is None else not applied
    if is_skipped:
        return "skipped"
    if finite is False:
        return "not finite"
    return "" if finite or applied else "?"


def _cell(value: Optional[float]) -> str:
    return "?" if value is None else f"{value:.6g}"
