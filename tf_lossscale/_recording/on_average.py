"""Judges runs in which no step alone shows a mistake, by means over many steps.

After a step that only one run skips, single numbers of correct runs differ, too.
"""

import math
from typing import Iterator, List, Optional, Tuple

from tf_lossscale._recording.aligned import Aligned, Verdict, difference, smoothed
from tf_lossscale._recording.causes import cause_of_ratio, cause_of_settings

__all__ = ["judge_on_average", "mean_loss_error"]

Differences = List[Optional[float]]

ENOUGH = 100
"""The number of steps after the runs part that a comparison of means needs; or before it."""
FEW = 20
"""The number of steps that runs need which do not part."""
ALIKE_UP_TO, DIFFERENT_FROM = 3e-2, 1e-1
"""The mean difference of the smoothed losses; between them nothing is said."""
SINGLE_UP_TO, SINGLE_AT_MOST = (1.2e-2, 4e-2), 2e-1
"""The mean difference of single losses, before a differing skip and after one; and the most."""
_WINDOW = 50
_STANDARD_ERRORS = 3.0
_SCALE_OCTAVES = 0.5
_FAR_APART = 4
"""The scales of correct runs come back to each other before one has changed so often more."""
_NORMS = (20, 100)
"""How many norms soon after the parting are compared, at least and at most."""
_NORM_RATIO = 1.4
"""The typical ratio of these norms in correct runs is below 1.2."""
_NORM_UP_TO = 7e-2
"""The typical difference of norms after a differing skip; 0.035 was the most in correct runs."""
_NORM_MEAN = 1e-1
"""The mean of these differences over `_WINDOW` steps; 0.062 was the most in correct runs."""
_ONE_WAY, _ONE_WAY_STEPS, _ONE_SIDE = 5e-3, 40, 0.6
"""The mean of so many differences, of which so much goes to one side."""
_JUMP, _AFTER_JUMP = 1e-3, 2e-3
"""A jump after the first updates; a smaller one counts if losses of `_WINDOW` steps differ so."""
_SMALL_NORM = 1e-4
_UNKNOWN = "cause unknown; look at clipping, and gradients that are missing or added up"
_ADVICE = (
    "Rounding in float16 can do that to a correct program, too: compare on one version first, in "
    "float32, or with --baseline."
)


def judge_on_average(
    aligned: Aligned,
    losses: Differences,
    norms: Differences,
    allowed: float,
    jump: float,
    evidence: List[str],
) -> Tuple[Verdict, str, Optional[int]]:
    """Decides.

    Args:
      aligned: the runs.
      losses: by how much their losses differ; those differences that are allowed are zero.
      norms: the same for their gradient norms.
      allowed: by how much the smoothed losses of the old program differ from its own second run.
      jump: by how much losses after the first updates differ, if by more than the noise before.
      evidence: the reasons, to which this adds its own.
    """
    count = len(aligned.pairs)
    parts = aligned.part < count
    step = aligned.step(aligned.part) if parts else None
    until = f"same until step {step}, which only one run skips" if parts else ""
    if parts:
        evidence.append(f"first step that only one run skips: {step}")
        wrong = _applied_wrongly(aligned) or _soon(aligned, until, evidence)
        if wrong:
            return Verdict.DIFFERENT, f"Different: {wrong}.", step
    declared = cause_of_settings(aligned)
    advice = f"C{declared[1:]}." if declared else _ADVICE
    before = _before_parting(losses, aligned.part, jump)
    left = count - aligned.part if parts else count - aligned.updated
    if parts and left < ENOUGH <= aligned.part - aligned.updated:
        if before:
            return Verdict.UNDECIDED, f"Not shown to be the same: {before}. {advice}", step
        sentence = f"Alike: {until}, and {left} steps after it are too few to compare means."
        return Verdict.ALIKE, sentence, step
    if left < (ENOUGH if parts else FEW):
        where = f"{until}, and {left} steps after it" if parts else f"{left} steps with updates"
        needed = ENOUGH if parts else FEW
        sentence = f"Too short to judge: {where} are fewer than {needed}. Record longer runs."
        return Verdict.UNDECIDED, sentence, step
    has_norms_only = all(each is None for each in losses)
    if has_norms_only and (parts or any(abs(each or 0.0) > _SMALL_NORM for each in norms)):
        sentence = (
            "Not shown to be the same: the losses are not in both records, and gradient norms "
            "alone do not show every mistake of the update."
        )
        return Verdict.UNDECIDED, sentence, step
    error = mean_loss_error(aligned, aligned.part if parts else 0)
    problems, doubts = _rates_and_scales(aligned, evidence) if parts else [], []
    if error is not None and error > allowed:
        evidence.append(f"mean difference of the smoothed losses: {error:.2g}")
        if error > DIFFERENT_FROM:
            problems.append(f"the losses differ by {error:.0%} on average")
        elif error > ALIKE_UP_TO:
            doubts.append(f"the losses differ by {error:.1%} on average")
    single = _largest_mean(losses[aligned.part if parts else 0 :])
    if single > allowed:
        evidence.append(f"largest mean difference of {_WINDOW} single losses: {single:.2g}")
        if single > SINGLE_AT_MOST:
            problems.append(f"single losses differ by {single:.0%} on average")
        elif single > SINGLE_UP_TO[parts]:
            doubts.append(f"single losses differ by {single:.1%} on average")
    apart = sorted(abs(each or 0.0) for each in norms[aligned.part :])
    typical = apart[len(apart) // 2] if apart else 0.0
    if typical > _NORM_UP_TO:
        doubts.append(f"the gradient norms typically differ by {typical:.1%}")
    mean = _largest_signed_mean(norms[aligned.part :])
    if mean > _NORM_MEAN:
        doubts.append(f"gradient norms of {_WINDOW} steps differ by {mean:.1%} on average")
    if problems:
        start = f"{until}, and after it " if parts else ""
        sentence = f"Different: {start}{' and '.join(problems)}. {advice}"
        return Verdict.DIFFERENT, sentence, step
    if before:
        return Verdict.UNDECIDED, f"Not shown to be the same: {before}. {advice}", step
    if doubts:
        start = f"{until}, and after it " if parts else ""
        return Verdict.UNDECIDED, f"Not shown to be the same: {start}{doubts[0]}. {advice}", step
    if parts:
        sentence = f"Alike: {until}; after it, losses, skips and scales agree on average."
        return Verdict.ALIKE, sentence, step
    return Verdict.SAME, f"Same: {count} steps, the same steps skipped.", None


def _before_parting(losses: Differences, part: int, jump: float) -> str:
    """Returns what differs by more than in correct runs before a step that only one skips."""
    drift = max(
        (
            abs(sum(each)) / _ONE_WAY_STEPS
            for each in _windows(losses[:part], _ONE_WAY_STEPS)
            if abs(sum(each)) >= _ONE_SIDE * sum(map(abs, each))
        ),
        default=0.0,
    )
    if drift > _ONE_WAY:
        return (
            f"losses of {_ONE_WAY_STEPS} steps differ by {drift:.1%} on average, mostly to one side"
        )
    if jump > _JUMP or (jump and _largest_signed_mean(losses) > _AFTER_JUMP):
        return f"losses after the first updates differ by {jump:.1g}, more than what precedes them"
    return ""


def _largest_signed_mean(values: Differences) -> float:
    return max((abs(sum(each)) / _WINDOW for each in _windows(values, _WINDOW)), default=0.0)


def _windows(values: Differences, size: int) -> Iterator[List[float]]:
    known = [each if each is not None and math.isfinite(each) else 0.0 for each in values]
    return (known[first : first + size] for first in range(len(known) - size + 1))


def _applied_wrongly(aligned: Aligned) -> str:
    """Returns which run applies a non-finite gradient in the step where they part; or nothing."""
    for name, index, run in zip(
        ("old", "new"), aligned.pairs[aligned.part], (aligned.old, aligned.new)
    ):
        bad = run.bad[index]
        if run.applied[index] and isinstance(bad, int) and 0 <= bad < len(run.names):
            return (
                f"in step {run.steps[index]}, the {name} run applies gradients of which that of "
                f"variable {bad} ({run.names[bad]}) is not finite; the other run skips the step"
            )
    return ""


def _soon(aligned: Aligned, until: str, evidence: List[str]) -> str:
    """Returns what differs so much after the parting that a few steps show it; or nothing."""
    first = aligned.part
    scales = aligned.column("scales", first, first + ENOUGH)
    units = math.log2(aligned.old.scale.growth_factor) if aligned.old.scale.growth_factor > 0 else 0
    for index, (mine, theirs) in enumerate(scales):
        if not (mine and theirs and 0 < mine < math.inf and 0 < theirs < math.inf):
            continue
        if units > 0 and abs(math.log2(mine) - math.log2(theirs)) >= _FAR_APART * units:
            skipping, other = ("old", "new") if mine < theirs else ("new", "old")
            evidence.append(
                f"at step {aligned.step(first + index)} the scales are {mine:g} and {theirs:g}"
            )
            run = getattr(aligned, other)
            cause = (
                f"cause: loss that is not scaled in the {other} run, whose record has none"
                if all(each is None for each in run.loss)
                else f"cause unknown; look at gradients of the {other} run that are smaller, or of "
                "another precision"
            )
            return f"{until}; after it the {skipping} run skips many more steps; {cause}"
    rows = [
        (theirs / mine, mine, theirs, scale)
        for (mine, theirs), (_, scale) in zip(
            aligned.column("norm", first), aligned.column("scales", first)
        )
        if mine and theirs and 0 < mine < math.inf and 0 < theirs < math.inf
    ][: _NORMS[1]]
    if len(rows) >= _NORMS[0]:
        # The middle one by the ratio: norms themselves vary from batch to batch.
        ratio, mine, theirs, scale = sorted(rows, key=lambda row: row[0])[len(rows) // 2]
        evidence.append(f"typical ratio of the gradient norms after it: {ratio:.3g}")
        if not 1 / _NORM_RATIO < ratio < _NORM_RATIO:
            cause = cause_of_ratio(mine, theirs, scale, exact=False) or _UNKNOWN
            return (
                f"{until}; after it the gradient norms differ by a factor of {ratio:.2g}; {cause}"
            )
    return ""


def _rates_and_scales(aligned: Aligned, evidence: List[str]) -> List[str]:
    problems = []
    pairs = [
        (mine, theirs)
        for mine, theirs in aligned.column("finite", aligned.part)
        if mine is not None and theirs is not None
    ]
    if pairs:
        old, new = (sum(not each[run] for each in pairs) / len(pairs) for run in (0, 1))
        mean = (old + new) / 2
        evidence.append(f"skipped after it: {old:.1%} and {new:.1%} of the steps")
        if abs(old - new) > _STANDARD_ERRORS * math.sqrt(2 * mean * (1 - mean) / len(pairs)):
            problems.append(f"{old:.1%} and {new:.1%} of the steps are skipped")
    octaves = [
        math.log2(mine) - math.log2(theirs)
        for mine, theirs in aligned.column("scales", aligned.part)
        if mine and theirs and 0 < mine < math.inf and 0 < theirs < math.inf
    ]
    if octaves:
        apart = abs(sum(octaves) / len(octaves))
        evidence.append(f"mean of log2 of the scale after it differs by {apart:.2g}")
        if apart > _SCALE_OCTAVES:
            problems.append(f"the scales differ by a factor of {2**apart:.2g} on average")
    return problems


def mean_loss_error(aligned: Aligned, first: int) -> Optional[float]:
    """Returns the mean relative difference of the smoothed losses from a position on."""
    losses = aligned.column("loss", first)
    old = smoothed([mine for mine, _ in losses], _WINDOW)
    new = smoothed([theirs for _, theirs in losses], _WINDOW)
    errors = [
        abs(difference(a, b) or 0.0)
        for a, b in zip(old, new)
        if not (math.isnan(a) and math.isnan(b))
    ]
    return sum(errors) / len(errors) if errors else None


def _largest_mean(values: Differences) -> float:
    """Returns the largest mean of the sizes of neighboring differences."""
    sizes = [None if each is None else abs(each) for each in values]
    return max([each for each in smoothed(sizes, _WINDOW) if each == each], default=0.0)
