"""Decides whether two recorded runs agree."""

import dataclasses
import enum
import math
from typing import List, Optional, Tuple

from tf_lossscale._recording.aligned import Aligned, align, largest, relative_error, smoothed
from tf_lossscale._recording.record import OptimizerRecord
from tf_lossscale._recording.scale_rules import (
    parameters_that_differ,
    replay,
    replayed_steps,
    same_scale,
)

__all__ = ["Comparison", "Tolerances", "Verdict", "compare", "measured"]


class Verdict(enum.Enum):
    """The result of a comparison; the value is the exit status."""

    IDENTICAL = ("identical", 0)
    SAME = ("same", 0)
    ALIKE = ("alike", 0)
    DIFFERENT = ("different", 1)
    TOO_SHORT = ("too short to judge", 1)
    NOT_COMPARABLE = ("cannot be compared", 2)

    @property
    def status(self) -> int:
        """The exit status."""
        return self.value[1]


@dataclasses.dataclass
class Tolerances:
    """Relative errors up to which numbers count as equal.

    Attributes:
      first_loss: of the loss of the first step.
      early_loss: of losses in the first `EARLY` steps.
      loss: of later losses, up to the first step that only one run skips.
      norm: of gradient norms, up to that step.
      mean_loss: of the mean difference of the smoothed losses after that step.
    """

    first_loss: float = 1e-3
    early_loss: float = 1e-3
    loss: float = 2e-2
    norm: float = 5e-2
    mean_loss: float = 3e-2

    def widened(self, other: "Tolerances") -> "Tolerances":
        """Returns the larger of both values of each tolerance."""
        names = [field.name for field in dataclasses.fields(self)]
        return Tolerances(
            **{name: max(getattr(self, name), getattr(other, name)) for name in names}
        )


EARLY = 20
WINDOW = 50
ENOUGH = 200
"""The number of steps after the first differing skip that a comparison of means needs."""
_STANDARD_ERRORS = 3.0
_SCALE_OCTAVES = 0.5


@dataclasses.dataclass
class Comparison:
    """The outcome for one optimizer.

    Attributes:
      verdict: the result.
      sentence: the result in one sentence.
      evidence: the reasons for it, a phrase each.
      step: the first step in which the runs diverge or differ; None if there is none.
      aligned: the runs; None if they cannot be compared.
    """

    verdict: Verdict
    sentence: str
    evidence: List[str]
    step: Optional[int] = None
    aligned: Optional[Aligned] = None


def compare(
    old: OptimizerRecord, new: OptimizerRecord, tolerances: Optional[Tolerances] = None
) -> Comparison:
    """Compares two runs of one optimizer.

    Args:
      old: the reference run.
      new: the run to check.
      tolerances: the relative errors up to which numbers count as equal.
    """
    limits = tolerances or Tolerances()
    reason = _why_not_comparable(old, new)
    if reason:
        return Comparison(Verdict.NOT_COMPARABLE, f"The runs cannot be compared: {reason}.", [])
    aligned = align(old, new)
    if not aligned.pairs:
        sentence = "The runs cannot be compared: they have no step in common."
        return Comparison(Verdict.NOT_COMPARABLE, sentence, [])
    evidence: List[str] = _notes(aligned)
    for judge in (_judge_scales, _judge_before, _judge_after):
        found = judge(aligned, limits, evidence)
        if found:
            verdict, sentence, step = found
            return Comparison(verdict, sentence, evidence, step, aligned)
    raise AssertionError("the last judge decides")


_Finding = Optional[Tuple[Verdict, str, Optional[int]]]


def _why_not_comparable(old: OptimizerRecord, new: OptimizerRecord) -> str:
    if len(old.shapes) != len(new.shapes):
        return f"the old run has {len(old.shapes)} variables and the new one {len(new.shapes)}"
    for index, (mine, theirs) in enumerate(zip(old.shapes, new.shapes)):
        if mine != theirs:
            return (
                f"variable {index} ({old.names[index]}, {new.names[index]}) has the shape {mine} "
                f"in the old run and {theirs} in the new one"
            )
    return ""


def _notes(aligned: Aligned) -> List[str]:
    old, new = aligned.old, aligned.new
    notes = [f"{len(aligned.pairs)} steps in common"]
    if len(old.steps) != len(new.steps):
        notes.append(f"the old run has {len(old.steps)} steps, the new one {len(new.steps)}")
    if old.gaps or new.gaps:
        notes.append(f"gaps in the record: {len(old.gaps)} old, {len(new.gaps)} new")
    differing = parameters_that_differ(old.scale, new.scale)
    if differing:
        notes.append(f"parameters of the loss scale differ: {', '.join(differing)}")
    if old.initial_weights and new.initial_weights:
        equal = "equal" if old.initial_weights == new.initial_weights else "different"
        notes.append(f"{equal} initial weights")
    return notes


def _judge_scales(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> _Finding:
    for name, run in (("old", aligned.old), ("new", aligned.new)):
        mismatch = replay(run)
        if mismatch:
            evidence.append(
                f"step {mismatch.step} of the {name} run uses the scale {mismatch.recorded:g}, "
                f"where the update rule gives {mismatch.expected:g}"
            )
            sentence = (
                f"Different: the loss scale of the {name} run breaks its update rule at step "
                f"{mismatch.step}; likely cause: {mismatch.parameter}."
            )
            return Verdict.DIFFERENT, sentence, mismatch.step
    evidence.append(
        "both loss scales follow their update rules "
        f"({replayed_steps(aligned.old)} and {replayed_steps(aligned.new)} steps)"
    )
    # The scale of a step depends on the skips before it, so that of the parting step is included.
    for index, (mine, theirs) in enumerate(aligned.column("scales", 0, aligned.part + 1)):
        if mine is not None and theirs is not None and not same_scale(mine, theirs):
            step = aligned.step(index)
            evidence.append(f"at step {step} the scales are {mine:g} and {theirs:g}")
            likely = parameters_that_differ(aligned.old.scale, aligned.new.scale)
            sentence = f"Different: the loss scales part at step {step}, and no skip explains it"
            if likely:
                sentence += f"; likely cause: {', '.join(likely)}"
            return Verdict.DIFFERENT, sentence + ".", step
    for index, (mine, theirs) in enumerate(aligned.column("applied", 0, aligned.part)):
        if mine is not None and theirs is not None and mine != theirs:
            step = aligned.step(index)
            applying = "old" if mine else "new"
            sentence = f"Different: only the {applying} run applies the gradients of step {step}."
            return Verdict.DIFFERENT, sentence, step
    return None


def _judge_before(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> _Finding:
    """Compares the steps up to the first differing skip, where the numbers must agree."""
    end = aligned.part
    losses = aligned.column("loss", 0, end)
    norms = aligned.column("norm", 0, end)
    for index, ((old_loss, new_loss), (old_norm, new_norm)) in enumerate(zip(losses, norms)):
        step = aligned.step(index)
        limit = limits.first_loss if index == 0 else limits.early_loss
        limit = limit if index < EARLY else limits.loss
        if relative_error(old_loss, new_loss) > limit:
            cause = _cause_of_loss(aligned, index)
            evidence.append(f"losses of step {step}: {old_loss:.6g} and {new_loss:.6g}")
            return Verdict.DIFFERENT, f"Different: the losses differ at step {step}; {cause}.", step
        if relative_error(old_norm, new_norm) > limits.norm:
            cause = _cause_of_norm(aligned, index, old_norm, new_norm)
            evidence.append(f"gradient norms of step {step}: {old_norm:.6g} and {new_norm:.6g}")
            sentence = f"Different: the gradient norms differ at step {step}; {cause}."
            return Verdict.DIFFERENT, sentence, step
    for name, pairs in (("loss", losses), ("gradient norm", norms)):
        known = sum(mine is not None and theirs is not None for mine, theirs in pairs)
        if known:
            error, place = largest(pairs)
            where = f", at step {aligned.step(place)}" if error else ""
            evidence.append(f"largest difference of the {name}: {error:.2g}{where}")
        else:
            evidence.append(f"the {name} is not in both records")
    if end < len(aligned.pairs):
        return None
    identical = all(
        mine == theirs or (mine != mine and theirs != theirs)
        for name in ("loss", "norm", "scales", "finite", "applied")
        for mine, theirs in aligned.column(name)
    )
    known = any(mine is not None for mine, _ in losses)
    count = len(aligned.pairs)
    if not known and not any(mine is not None for mine, _ in norms):
        sentence = (
            "The runs cannot be compared: neither losses nor gradient norms are in both records."
        )
        return Verdict.NOT_COMPARABLE, sentence, None
    if identical:
        return Verdict.IDENTICAL, f"Same: {count} steps, bit-identical.", None
    return Verdict.SAME, f"Same: {count} steps, the same steps skipped.", None


def _cause_of_loss(aligned: Aligned, index: int) -> str:
    if index == 0 and aligned.step(0) == 0:
        old, new = aligned.old.initial_weights, aligned.new.initial_weights
        mine, theirs = aligned.column("loss", 0, 1)[0]
        scale = aligned.column("scales", 0, 1)[0][0]
        factors = (scale, 1 / scale) if scale and scale != 1 else ()
        if theirs and any(relative_error(mine * factor, theirs) < 1e-3 for factor in factors):
            return "they differ by the loss scale, so one run recorded its scaled loss"
        if old and new:
            if old != new:
                return "likely cause: other initial weights"
            return (
                "likely cause: another first batch or forward pass (the initial weights are equal)"
            )
        return "likely cause: other initial weights, another first batch or forward pass"
    norms = aligned.column("norm", 0, index)
    if index and all(mine is not None and theirs is not None for mine, theirs in norms):
        return (
            "likely cause: the update (learning rate, the optimizer's settings, clipping, missing "
            "unscaling) or the next batch, as the gradients before it agree"
        )
    return "likely cause: the update (learning rate, clipping, unscaling) or the order of the data"


def _cause_of_norm(aligned: Aligned, index: int, old: float, new: float) -> str:
    if old and new and math.isfinite(old) and math.isfinite(new):
        ratio = new / old
        scale = aligned.column("scales", index, index + 1)[0][0]
        if scale and scale != 1 and relative_error(ratio, scale) < 5e-2:
            return "the new one is larger by the loss scale: its gradients are not unscaled"
        if scale and scale != 1 and relative_error(ratio, 1 / scale) < 5e-2:
            return "the new one is smaller by the loss scale: its gradients are unscaled twice"
        for count in range(2, 65):
            for factor, word in ((count, "larger"), (1 / count, "smaller")):
                if relative_error(ratio, factor) < 1e-3:
                    return (
                        f"the new one is {count} times {word}: a sum over {count} replicas or "
                        "batches in place of a mean, or the other way round"
                    )
        if new < old:
            return "likely cause: clipping, a replica whose gradients are missing, or another batch"
    return "likely cause: another batch, clipping, or a replica whose gradients are missing"


def _judge_after(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> _Finding:
    """Compares means, because correct runs diverge after a step that only one of them skips."""
    first = aligned.part
    step, count = aligned.step(first), len(aligned.pairs) - first
    evidence.append(f"first step that only one run skips: {step}")
    if count < ENOUGH:
        sentence = (
            f"Too short to judge: same until step {step}, which only one run skips, and {count} "
            f"steps after it are fewer than {ENOUGH}. Record longer runs."
        )
        return Verdict.TOO_SHORT, sentence, step
    problems = []
    error = _mean_loss_error(aligned)
    if error is not None:
        evidence.append(f"mean difference of the smoothed losses after it: {error:.2g}")
        if error > limits.mean_loss:
            problems.append(f"the losses differ by {error:.0%} on average")
    old_skips, new_skips, allowed = _skip_rates(aligned)
    evidence.append(f"skipped after it: {old_skips:.1%} and {new_skips:.1%} of the steps")
    if abs(old_skips - new_skips) > allowed:
        problems.append(f"{old_skips:.1%} and {new_skips:.1%} of the steps are skipped")
    octaves = _octaves(aligned)
    if octaves is not None:
        evidence.append(f"mean of log2 of the scale after it differs by {octaves:.2g}")
        if octaves > _SCALE_OCTAVES:
            problems.append(f"the scales differ by a factor of {2**octaves:.2g} on average")
    if problems:
        sentence = f"Different: same until step {step}, and after it {' and '.join(problems)}."
        return Verdict.DIFFERENT, sentence, step
    sentence = (
        f"Alike: same until step {step}, which only one run skips; after it, losses, skips and "
        "scales agree on average."
    )
    return Verdict.ALIKE, sentence, step


def _mean_loss_error(aligned: Aligned) -> Optional[float]:
    losses = aligned.column("loss", aligned.part)
    old = smoothed([mine for mine, _ in losses], WINDOW)
    new = smoothed([theirs for _, theirs in losses], WINDOW)
    errors = [
        relative_error(a, b) for a, b in zip(old, new) if not (math.isnan(a) and math.isnan(b))
    ]
    return sum(errors) / len(errors) if errors else None


def _skip_rates(aligned: Aligned) -> Tuple[float, float, float]:
    pairs = [
        (mine, theirs)
        for mine, theirs in aligned.column("finite", aligned.part)
        if mine is not None and theirs is not None
    ]
    count = len(pairs)
    old = sum(not mine for mine, _ in pairs) / count
    new = sum(not theirs for _, theirs in pairs) / count
    mean = (old + new) / 2
    error = math.sqrt(2 * mean * (1 - mean) / count)
    return old, new, _STANDARD_ERRORS * error


def _octaves(aligned: Aligned) -> Optional[float]:
    differences = [
        math.log2(mine) - math.log2(theirs)
        for mine, theirs in aligned.column("scales", aligned.part)
        if mine and theirs and math.isfinite(mine) and math.isfinite(theirs)
    ]
    return abs(sum(differences) / len(differences)) if differences else None


def measured(old: OptimizerRecord, baseline: OptimizerRecord) -> Tolerances:
    """Returns the differences between two runs of the same program, as tolerances."""
    aligned = align(old, baseline)
    losses = aligned.column("loss", 0, aligned.part)
    return Tolerances(
        first_loss=largest(losses[:1])[0],
        early_loss=largest(losses[:EARLY])[0],
        loss=largest(losses)[0],
        norm=largest(aligned.column("norm", 0, aligned.part))[0],
        mean_loss=_mean_loss_error(aligned) or 0.0 if aligned.part < len(aligned.pairs) else 0.0,
    )
