"""Two runs to be judged: how they were made, and by how much they differ."""

import dataclasses
from typing import List, Optional, Tuple

from tf_lossscale._recording.aligned import Aligned, Finding, Verdict, align, difference, largest
from tf_lossscale._recording.causes import cause_of_norm, cause_of_update, differing_settings
from tf_lossscale._recording.on_average import mean_loss_error
from tf_lossscale._recording.record import COLUMNS, OptimizerRecord
from tf_lossscale._recording.scale_rules import parameters_that_differ

__all__ = ["QUIET", "Conditions", "Runs", "different_losses", "different_norms", "first_unequal"]

QUIET = 1e-5
"""A smaller difference of losses is taken for this one."""


@dataclasses.dataclass
class Conditions:
    """How the runs of a comparison were made.

    Attributes:
      are_equal: whether equal programs give equal bits.
      baseline: a second run of the old program.
      loss_tolerance: the relative error up to which losses are equal.
      ended: for each run, whether it ended by itself.
    """

    are_equal: bool = False
    baseline: Optional[OptimizerRecord] = None
    loss_tolerance: float = 0.0
    ended: Tuple[bool, bool] = (True, True)


class Runs:
    """Two runs, with their differences; those that are no larger than allowed are zero."""

    def __init__(self, aligned: Aligned, conditions: Conditions) -> None:
        self.aligned = aligned
        self.conditions = conditions
        self.evidence: List[str] = _notes(aligned)
        self.loss = _differences(aligned, "loss", conditions.baseline, conditions.loss_tolerance)
        self.norm = _differences(aligned, "norm", conditions.baseline, 0.0)
        self.has_loss = any(each is not None for each in self.loss)
        self.has_norm = any(each is not None for each in self.norm)
        self.noise = max(largest(self.loss[: aligned.updated + 1])[0], QUIET)
        self.mean_allowed = 0.0
        self.is_repeatable = True
        if conditions.baseline is not None:
            own = align(aligned.old, conditions.baseline)
            self.is_repeatable = first_unequal(own) is None
            self.mean_allowed = 2 * (mean_loss_error(own, own.part) or 0.0)


def _differences(
    aligned: Aligned, name: str, baseline: Optional[OptimizerRecord], allowed: float
) -> List[Optional[float]]:
    found = aligned.differences(name)
    if baseline is None:
        if not allowed:
            return found
        return [None if each is None else each * (abs(each) > allowed) for each in found]
    own = align(aligned.old, baseline)
    varies = dict(zip([each for each, _ in own.pairs], own.differences(name)))
    for index, (place, _) in enumerate(aligned.pairs):
        if place in varies:
            allowed = max(allowed, 2 * abs(varies[place] or 0.0))
        now = found[index]
        if now is not None and abs(now) <= allowed:
            found[index] = 0.0
    return found


def _notes(aligned: Aligned) -> List[str]:
    old, new = aligned.old, aligned.new
    notes = [f"{len(aligned.pairs)} steps in common"]
    if old.initial_weights and new.initial_weights:
        equal = "equal" if old.initial_weights == new.initial_weights else "different"
        notes.append(f"{equal} initial weights")
    differing = parameters_that_differ(old.scale, new.scale)
    if differing:
        notes.append(f"parameters of the loss scale differ: {', '.join(differing)}")
    settings = differing_settings(aligned)
    if settings:
        notes.append(f"settings of the inner optimizers differ: {', '.join(settings)}")
    return notes


def first_unequal(aligned: Aligned) -> Optional[int]:
    """Returns the position of the first step with a number that is not equal to the bit."""
    found = [
        next((i for i, pair in enumerate(aligned.column(each.name)) if difference(*pair)), None)
        for each in COLUMNS
        if each.name != "bad"
    ]
    return min((each for each in found if each is not None), default=None)


def different_losses(runs: Runs, index: int, how: str, cause: str = "") -> Finding:
    aligned = runs.aligned
    step = aligned.step(index)
    old, new = aligned.column("loss", index, index + 1)[0]
    runs.evidence.append(f"losses of step {step}: {old:.6g} and {new:.6g}")
    cause = cause or cause_of_update(aligned, index, runs.noise)
    sentence = f"Different: the losses differ from step {step} on, {how}; {cause}."
    return Verdict.DIFFERENT, sentence, step


def different_norms(runs: Runs, index: int) -> Finding:
    aligned = runs.aligned
    step = aligned.step(index)
    old, new = aligned.column("norm", index, index + 1)[0]
    runs.evidence.append(f"gradient norms of step {step}: {old:.6g} and {new:.6g}")
    cause = cause_of_norm(aligned, index)
    return Verdict.DIFFERENT, f"Different: the gradient norms differ at step {step}; {cause}.", step
