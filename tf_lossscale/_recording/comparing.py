"""Decides whether two recorded runs agree."""

import dataclasses
from typing import List, Optional

from tf_lossscale._recording.after_parting import judge_after, mean_loss_error
from tf_lossscale._recording.aligned import Aligned, align, largest, relative_error
from tf_lossscale._recording.causes import cause_of_loss, cause_of_norm
from tf_lossscale._recording.record import OptimizerRecord
from tf_lossscale._recording.scale_rules import (
    parameters_that_differ,
    replay,
    replayed_steps,
    same_scale,
)
from tf_lossscale._recording.verdicts import EARLY, Finding, Tolerances, Verdict

__all__ = ["Comparison", "Tolerances", "Verdict", "compare", "measured"]

_GRADUALLY = 10
"""Errors that rounding brings about grow to a limit; before, they are near to a part of it."""


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
    for judge in (_judge_scales, _judge_before, judge_after):
        found = judge(aligned, limits, evidence)
        if found:
            verdict, sentence, step = found
            return Comparison(verdict, sentence, evidence, step, aligned)
    raise AssertionError("the last judge decides")


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


def _judge_scales(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> Finding:
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


def _judge_before(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> Finding:
    """Compares the steps up to the first differing skip, where the numbers must agree."""
    losses = aligned.column("loss", 0, aligned.part)
    norms = aligned.column("norm", 0, aligned.part)
    loss_errors = [relative_error(*pair) for pair in losses]
    norm_errors = [relative_error(*pair) for pair in norms]
    for index in range(aligned.part):
        step = aligned.step(index)
        limit = limits.first_loss if index == 0 else limits.early_loss
        limit = limit if index < EARLY else limits.loss
        if loss_errors[index] > limit:
            if _grows(loss_errors, index, limit):
                aligned.part, aligned.drifts = index, True
                break
            old_loss, new_loss = losses[index]
            cause = cause_of_loss(aligned, index)
            evidence.append(f"losses of step {step}: {old_loss:.6g} and {new_loss:.6g}")
            return Verdict.DIFFERENT, f"Different: the losses differ at step {step}; {cause}.", step
        if norm_errors[index] > limits.norm:
            if _grows(norm_errors, index, limits.norm):
                aligned.part, aligned.drifts = index, True
                break
            old_norm, new_norm = norms[index]
            scale = aligned.column("scales", index, index + 1)[0][1]
            cause = cause_of_norm(old_norm, new_norm, scale)
            evidence.append(f"gradient norms of step {step}: {old_norm:.6g} and {new_norm:.6g}")
            sentence = f"Different: the gradient norms differ at step {step}; {cause}."
            return Verdict.DIFFERENT, sentence, step
    end = aligned.part
    losses, norms = losses[:end], norms[:end]
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


def _grows(errors: List[float], index: int, limit: float) -> bool:
    """Returns whether the errors have grown to the limit: rounding does that, a mistake does not.

    A mistake makes runs differ in the first steps already, or all at once.
    """
    before = errors[max(index - EARLY, 0) : index]
    return index >= 2 * EARLY and max(before) > limit / _GRADUALLY


def measured(old: OptimizerRecord, baseline: OptimizerRecord) -> Tolerances:
    """Returns the differences between two runs of the same program, as tolerances."""
    aligned = align(old, baseline)
    losses = aligned.column("loss", 0, aligned.part)
    return Tolerances(
        first_loss=largest(losses[:1])[0],
        early_loss=largest(losses[:EARLY])[0],
        loss=largest(losses)[0],
        norm=largest(aligned.column("norm", 0, aligned.part))[0],
        mean_loss=mean_loss_error(aligned) or 0.0 if aligned.part < len(aligned.pairs) else 0.0,
    )
