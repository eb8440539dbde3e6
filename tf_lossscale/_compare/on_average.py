"""Judges runs in which no step alone shows a mistake, by means over many steps.

After a step that only one run skips, single numbers of correct runs differ, too.
"""

import math
from typing import Iterator, List, Optional, Sequence

from tf_lossscale._compare.jumps import JUMP, are_positive, cause_of_ratio
from tf_lossscale._compare.runs import Comparison, Runs, Verdict, difference, finite, largest

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
_ADVICE = (
    "Rounding in float16 can do that to a correct program, too: compare on one version first, in "
    "float32, or with --baseline."
)


def judge_on_average(runs: Runs) -> Comparison:
    for field, name in (("loss", "loss"), ("norm", "gradient norm")):
        # Those that the user allows are shown, too.
        found = runs.differences(field)[: runs.part]
        if any(each is not None for each in found):
            error, place = largest(found)
            where = f", at step {runs.step(place)}" if error else ""
            runs.evidence.append(f"largest difference of the {name}: {error:.2g}{where}")
        else:
            runs.evidence.append(f"the {name} is not in both records")
    count = len(runs.pairs)
    parts = runs.part < count
    step = runs.step(runs.part) if parts else None
    until = f"same until step {step}, which only one run skips" if parts else ""
    start = f"{until}, and after it " if parts else ""
    if step is not None:
        runs.evidence.append(f"first step that only one run skips: {step}")
        wrong = _applied_wrongly(runs) or _soon(runs, f"{until}; after it the ")
        if wrong:
            return runs.different(wrong, step)
    advice = f"C{runs.declared[1:]}." if runs.declared else _ADVICE

    def undecided(doubt: str, advice: str = advice) -> Comparison:
        text = f"Not shown to be the same: {doubt}. {advice}".rstrip()
        return runs.finding(Verdict.UNDECIDED, text, step)

    before = _before_parting(runs)
    left = count - (runs.part if parts else runs.updated)
    needed = ENOUGH if parts else FEW
    if parts and left < ENOUGH <= runs.part - runs.updated:
        if before:
            return undecided(before)
        sentence = f"Alike: {until}, and {left} steps after it are too few to compare means."
        return runs.finding(Verdict.ALIKE, sentence, step)
    if left < needed:
        where = f"{until}, and {left} steps after it" if parts else f"{left} steps with updates"
        sentence = f"Too short to judge: {where} are fewer than {needed}. Record longer runs."
        return runs.finding(Verdict.UNDECIDED, sentence, step)
    losses, norms = (
        sum(each is not None for each in column[-left:]) for column in (runs.loss, runs.norm)
    )
    agree = norms >= needed and not any(abs(each or 0.0) > _SMALL_NORM for each in runs.norm)
    if losses < needed and (parts or not agree):
        lacking = "too few losses are in both records"
        doubt = f"{lacking}, and gradient norms alone do not show every mistake of the update"
        return undecided(doubt, "")
    problems = _rates_and_scales(runs) if parts else []
    doubts: List[str] = []
    _compare_means(runs, parts, problems, doubts)
    if problems:
        sentence = f"Different: {start}{' and '.join(problems)}. {advice}"
        return runs.finding(Verdict.DIFFERENT, sentence, step)
    if before or doubts:
        return undecided(before or f"{start}{doubts[0]}")
    if parts:
        sentence = f"Alike: {until}; after it, losses, skips and scales agree on average."
        return runs.finding(Verdict.ALIKE, sentence, step)
    return runs.finding(Verdict.SAME, f"Same: {count} steps, the same steps skipped.")


def _compare_means(runs: Runs, parts: bool, problems: List[str], doubts: List[str]) -> None:
    first = runs.part if parts else 0
    allowed = 2 * _mean_loss_error(runs.again, runs.again.part) if runs.again else 0.0
    error = _mean_loss_error(runs, first)
    if error > allowed:
        runs.evidence.append(f"mean difference of the smoothed losses: {error:.2g}")
        if error > DIFFERENT_FROM:
            problems.append(f"the losses differ by {error:.0%} on average")
        elif error > ALIKE_UP_TO:
            doubts.append(f"the losses differ by {error:.1%} on average")
    sizes = [None if each is None else abs(each) for each in runs.loss[first:]]
    single = max([each for each in _smoothed(sizes) if each == each], default=0.0)
    if single > allowed:
        runs.evidence.append(f"largest mean difference of {_WINDOW} single losses: {single:.2g}")
        if single > SINGLE_AT_MOST:
            problems.append(f"single losses differ by {single:.0%} on average")
        elif single > SINGLE_UP_TO[parts]:
            doubts.append(f"single losses differ by {single:.1%} on average")
    norms = runs.norm[runs.part :]
    apart = sorted(abs(each or 0.0) for each in norms)
    typical = apart[len(apart) // 2] if apart else 0.0
    if typical > _NORM_UP_TO:
        doubts.append(f"the gradient norms typically differ by {typical:.1%}")
    mean = _largest_signed_mean(norms)
    if mean > _NORM_MEAN:
        doubts.append(f"gradient norms of {_WINDOW} steps differ by {mean:.1%} on average")


def _before_parting(runs: Runs) -> str:
    """Returns what differs by more than in correct runs before a step that only one skips."""
    drift = max(
        (
            abs(sum(each)) / _ONE_WAY_STEPS
            for each in _windows(runs.loss[: runs.part], _ONE_WAY_STEPS)
            if abs(sum(each)) >= _ONE_SIDE * sum(map(abs, each))
        ),
        default=0.0,
    )
    if drift > _ONE_WAY:
        return (
            f"losses of {_ONE_WAY_STEPS} steps differ by {drift:.1%} on average, mostly to one side"
        )
    jump, _ = largest(runs.loss[runs.updated + 1 : min(runs.updated + 4, runs.part + 1)])
    is_clear = jump > _JUMP or _largest_signed_mean(runs.loss) > _AFTER_JUMP
    if is_clear and jump > JUMP * runs.noise:
        return f"losses after the first updates differ by {jump:.1g}, more than what precedes them"
    return ""


def _largest_signed_mean(values: Sequence[Optional[float]]) -> float:
    return max((abs(sum(each)) / _WINDOW for each in _windows(values, _WINDOW)), default=0.0)


def _windows(values: Sequence[Optional[float]], size: int) -> Iterator[List[float]]:
    known = [each if each is not None and math.isfinite(each) else 0.0 for each in values]
    return (known[first : first + size] for first in range(len(known) - size + 1))


def _applied_wrongly(runs: Runs) -> str:
    """Returns which run applies a non-finite gradient in the step where they part; or nothing."""
    for (name, run), index in zip(runs.both, runs.pairs[runs.part]):
        bad = run.bad[index]
        if run.applied[index] and bad is not None and 0 <= bad < len(run.names):
            return (
                f"in step {run.steps[index]}, the {name} run applies gradients of which that of "
                f"variable {bad} ({run.names[bad]}) is not finite; the other run skips the step"
            )
    return ""


def _soon(runs: Runs, start: str) -> str:
    """Returns what differs so much after the parting that a few steps show it; or nothing."""
    factor = runs.old.scale.growth_factor
    units = math.log2(factor) if factor > 0 else 0
    scales = enumerate(runs.column("scales", runs.part, runs.part + ENOUGH), runs.part)
    for index, (old, new) in scales if units > 0 else ():
        apart = abs(math.log2(old) - math.log2(new)) if are_positive(old, new) else 0.0
        if apart >= _FAR_APART * units:
            runs.evidence.append(f"at step {runs.step(index)} the scales are {old:g} and {new:g}")
            skipping, (other, run) = ("old", runs.both[1]) if old < new else ("new", runs.both[0])
            cause = (
                f"cause: loss that is not scaled in the {other} run, whose record has none"
                if all(each is None for each in run.loss)
                else f"cause unknown; look at gradients of the {other} run that are smaller, or of "
                "another precision"
            )
            return f"{start}{skipping} run skips many more steps; {cause}"
    norms = zip(runs.column("norm", runs.part), runs.column("scales", runs.part))
    rows = [
        (new / old, old, new, scale) for (old, new), (_, scale) in norms if are_positive(old, new)
    ][: _NORMS[1]]
    if len(rows) >= _NORMS[0]:
        # The middle one by the ratio: norms themselves vary from batch to batch.
        ratio, old, new, scale = sorted(rows, key=lambda row: row[0])[len(rows) // 2]
        runs.evidence.append(f"typical ratio of the gradient norms after it: {ratio:.3g}")
        if not 1 / _NORM_RATIO < ratio < _NORM_RATIO:
            unknown = "cause unknown; look at clipping, and gradients that are missing or added up"
            cause = cause_of_ratio(old, new, scale, exact=False) or unknown
            return f"{start}gradient norms differ by a factor of {ratio:.2g}; {cause}"
    return ""


def _rates_and_scales(runs: Runs) -> List[str]:
    problems = []
    pairs = [each for each in runs.column("finite", runs.part) if None not in each]
    if pairs:
        old, new = (column.count(False) / len(pairs) for column in zip(*pairs))
        mean = (old + new) / 2
        runs.evidence.append(f"skipped after it: {old:.1%} and {new:.1%} of the steps")
        if abs(old - new) > _STANDARD_ERRORS * math.sqrt(2 * mean * (1 - mean) / len(pairs)):
            problems.append(f"{old:.1%} and {new:.1%} of the steps are skipped")
    octaves = [
        math.log2(old) - math.log2(new)
        for old, new in runs.column("scales", runs.part)
        if are_positive(old, new)
    ]
    if octaves:
        apart = abs(sum(octaves) / len(octaves))
        runs.evidence.append(f"mean of log2 of the scale after it differs by {apart:.2g}")
        if apart > _SCALE_OCTAVES:
            problems.append(f"the scales differ by a factor of {2**apart:.2g} on average")
    return problems


def _mean_loss_error(runs: Runs, first: int) -> float:
    """Returns the mean relative difference of the smoothed losses from a position on."""
    losses = [pair if None not in pair else (None, None) for pair in runs.column("loss", first)]
    old, new = (_smoothed([pair[run] for pair in losses]) for run in (0, 1))
    errors = [
        abs(difference(a, b) or 0.0)
        for a, b in zip(old, new)
        if not (math.isnan(a) and math.isnan(b))
    ]
    return sum(errors) / max(len(errors), 1)


def _smoothed(values: Sequence[Optional[float]]) -> List[float]:
    """Returns the moving average over `_WINDOW` values, without unknown and infinite ones.

    The mean is NaN if no value in the window remains.
    """
    windows = (finite(values[end - _WINDOW : end]) for end in range(_WINDOW, len(values) + 1))
    return [sum(each) / len(each) if each else math.nan for each in windows]
