"""Judges runs from the step on where single numbers of correct runs differ, too.

They differ after a step that only one run skips, and after rounding errors have grown large. From
there on means are compared.
"""

import math
from typing import List, Optional, Tuple

from tf_lossscale._recording.aligned import Aligned, relative_error, smoothed
from tf_lossscale._recording.causes import cause_of_norm
from tf_lossscale._recording.scale_rules import parameters_that_differ
from tf_lossscale._recording.verdicts import ENOUGH, Finding, Tolerances, Verdict

__all__ = ["judge_after", "mean_loss_error"]

_RUNS = ("old", "new")
WINDOW = 50
_STANDARD_ERRORS = 3.0
_SCALE_OCTAVES = 0.5
_FAR_APART = 4
"""The scales of correct runs come back to each other before one has changed so often more."""
_NORMS = (20, 100)
"""How many norms soon after the parting are compared, at least and at most."""
_NORM_RATIO = 1.4
"""The typical ratio of these norms in correct runs is below 1.2."""


_OR_ROUNDING = (
    "Between two versions or devices, rounding in float16 near an overflow alone can do that to a "
    "program: compare on one version first, and see --baseline."
)
"""The means of a mistake and of a program that is very sensitive to rounding look the same."""


def judge_after(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> Finding:
    """Decides from the steps after the runs part.

    Args:
      aligned: the runs, which part before their last step.
      limits: the tolerances.
      evidence: the reasons, to which this adds its own.
    """
    step, count = aligned.step(aligned.part), len(aligned.pairs) - aligned.part
    if aligned.drifts:
        evidence.append(f"rounding errors grow until single steps differ, from step {step} on")
        until = f"same until step {step}, where rounding errors have grown large"
    else:
        evidence.append(f"first step that only one run skips: {step}")
        until = f"same until step {step}, which only one run skips"
        wrong = _applied_wrongly(aligned)
        if wrong:
            return Verdict.DIFFERENT, f"Different: {wrong}.", step
        differing = parameters_that_differ(aligned.old.scale, aligned.new.scale)
        if differing:
            sentence = f"Different: only one run skips step {step}; likely cause: "
            return Verdict.DIFFERENT, sentence + f"{', '.join(differing)}.", step
    soon = _judge_soon(aligned, evidence)
    if soon:
        return Verdict.DIFFERENT, f"Different: {until}; {soon}.", step
    if count < ENOUGH:
        sentence = (
            f"Too short to judge: {until}, and {count} steps after it are fewer than {ENOUGH}. "
            "Record longer runs."
        )
        return Verdict.TOO_SHORT, sentence, step
    problems = _problems(aligned, limits, evidence)
    if problems:
        sentence = f"Different: {until}, and after it {' and '.join(problems)}. {_OR_ROUNDING}"
        return Verdict.DIFFERENT, sentence, step
    sentence = f"Alike: {until}; after it, losses, skips and scales agree on average."
    return Verdict.ALIKE, sentence, step


def _applied_wrongly(aligned: Aligned) -> str:
    """Returns which run applies a non-finite gradient in the step where they part; or nothing."""
    for name, index, run in zip(_RUNS, aligned.pairs[aligned.part], (aligned.old, aligned.new)):
        bad = run.bad[index]
        if run.applied[index] and isinstance(bad, int) and 0 <= bad < len(run.names):
            return (
                f"in step {run.steps[index]}, the {name} run applies gradients of which that of "
                f"variable {bad} ({run.names[bad]}) is not finite; the other run skips the step"
            )
    return ""


def _judge_soon(aligned: Aligned, evidence: List[str]) -> str:
    """Returns what differs so much that a few steps show it; empty if nothing does."""
    first = aligned.part
    scales = aligned.column("scales", first, first + ENOUGH)
    units = math.log2(aligned.old.scale.growth_factor) if aligned.old.scale.growth_factor > 0 else 0
    for index, (mine, theirs) in enumerate(scales):
        if not (mine and theirs and math.isfinite(mine) and math.isfinite(theirs)):
            continue
        if units > 0 and abs(math.log2(mine) - math.log2(theirs)) >= _FAR_APART * units:
            skipping, other = ("old", "new") if mine < theirs else ("new", "old")
            evidence.append(
                f"at step {aligned.step(first + index)} the scales are {mine:g} and {theirs:g}"
            )
            run = getattr(aligned, other)
            cause = (
                f"loss that is not scaled in the {other} run, whose record has none"
                if all(each is None for each in run.loss)
                else f"gradients of the {other} run that are smaller, or of another precision"
            )
            return f"after it the {skipping} run skips many more steps; likely cause: {cause}"
    old, new, scale = _typical_norms(aligned)
    if old and new:
        evidence.append(f"typical ratio of the gradient norms after it: {new / old:.3g}")
        if not 1 / _NORM_RATIO < new / old < _NORM_RATIO:
            cause = cause_of_norm(old, new, scale, exact=False)
            return f"after it the gradient norms differ by a factor of {new / old:.2g}; {cause}"
    return ""


def _typical_norms(aligned: Aligned) -> Tuple[float, float, Optional[float]]:
    """Returns the typical norms of both runs and scale of the new run; zeros if unknown."""
    rows = [
        (mine, theirs, scale)
        for (mine, theirs), (_, scale) in zip(
            aligned.column("norm", aligned.part), aligned.column("scales", aligned.part)
        )
        if mine and theirs and math.isfinite(mine) and math.isfinite(theirs)
    ][: _NORMS[1]]
    if len(rows) < _NORMS[0]:
        return 0.0, 0.0, None
    # The middle one by the ratio: norms themselves vary from batch to batch.
    rows.sort(key=lambda row: row[1] / row[0])
    return rows[len(rows) // 2]


def _problems(aligned: Aligned, limits: Tolerances, evidence: List[str]) -> List[str]:
    problems = []
    error = mean_loss_error(aligned)
    if error is not None:
        evidence.append(f"mean difference of the smoothed losses after it: {error:.2g}")
        if error > limits.mean_loss:
            problems.append(f"the losses differ by {error:.0%} on average")
    rates = _skip_rates(aligned)
    if rates is not None:
        old_skips, new_skips, allowed = rates
        evidence.append(f"skipped after it: {old_skips:.1%} and {new_skips:.1%} of the steps")
        if abs(old_skips - new_skips) > allowed:
            problems.append(f"{old_skips:.1%} and {new_skips:.1%} of the steps are skipped")
    octaves = _octaves(aligned)
    if octaves is not None:
        evidence.append(f"mean of log2 of the scale after it differs by {octaves:.2g}")
        if octaves > _SCALE_OCTAVES:
            problems.append(f"the scales differ by a factor of {2**octaves:.2g} on average")
    return problems


def mean_loss_error(aligned: Aligned) -> Optional[float]:
    """Returns the mean relative difference of the smoothed losses after the runs part."""
    losses = aligned.column("loss", aligned.part)
    old = smoothed([mine for mine, _ in losses], WINDOW)
    new = smoothed([theirs for _, theirs in losses], WINDOW)
    errors = [
        relative_error(a, b) for a, b in zip(old, new) if not (math.isnan(a) and math.isnan(b))
    ]
    return sum(errors) / len(errors) if errors else None


def _skip_rates(aligned: Aligned) -> Optional[Tuple[float, float, float]]:
    pairs = [
        (mine, theirs)
        for mine, theirs in aligned.column("finite", aligned.part)
        if mine is not None and theirs is not None
    ]
    if not pairs:
        return None
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
