"""Decides whether two recorded runs agree.

Where both were made under equal conditions, every number must be equal. Otherwise rounding differs,
and how much is measured before the first update: what differs more than that afterwards, all at
once or all the time to one side, is a mistake. `docs/compare.md` says which runs the limits come
from.
"""

import bisect
import dataclasses
import math
from typing import List, Optional, Tuple

from tf_lossscale._recording.aligned import (
    Aligned,
    Finding,
    Verdict,
    align,
    difference,
    largest,
)
from tf_lossscale._recording.causes import (
    cause_of_drift,
    cause_of_first_loss,
    cause_of_norm,
    cause_of_update,
    clipping_limit,
)
from tf_lossscale._recording.on_average import judge_on_average, mean_loss_error
from tf_lossscale._recording.record import COLUMNS, OptimizerRecord, RunHeader
from tf_lossscale._recording.scale_rules import (
    parameters_that_differ,
    replay,
    replayed_steps,
    same_scale,
)

__all__ = ["Comparison", "Conditions", "Verdict", "compare", "equal_conditions"]

FIRST_LOSS = 1e-3
"""Losses that come from equal weights differ by less than this; the largest seen was 1.2e-4."""
FIRST_NORM = 2e-2
"""The same for gradient norms; the largest seen was 7.9e-3."""
JUMP, JUMP_AT_LEAST, QUIET = 10.0, 5e-3, 1e-5
"""After the first update, the error is at most so many times that before it, or so small."""
STEADY, STEADY_STEPS, STEADY_AT_LEAST = 0.8, 10, 5e-4
"""A smaller jump counts if so many errors go to one side, by this part of their sum."""
FEW_AT_LEAST = 1e-3
"""The same where the runs part or end before so many."""
DOUBT_AT_LEAST = 1e-4
"""A smaller jump than that is no reason to doubt."""
LATER, LATER_AT_LEAST, BEFORE, WINDOW = 5.0, 1e-3, 20, 5
"""The typical error of `WINDOW` steps is so many times the largest of the `BEFORE` before them."""
FEW_BEFORE = 10
"""With Adam, the errors of correct runs grow in fewer steps, too."""
SPIKE, SPIKE_AT_LEAST = 8.0, 2e-3
"""The same for the error of one step, up to where the runs part."""
NORM_JUMP, NORM_TIMES = 5e-2, 10.0
"""A norm that differs by so much, and by so many times more than those before it."""
CLIPPED, CLIPPED_STEPS = 1.01, 4
"""In so many steps, norms are larger by this than the limit to which the other run clips them."""
ONE_SIDE = 0.99
DRIFTS = ((20, 45, 5e-4), (20, 80, 5e-3), (40, 2**62, 1.5e-2))
"""So many steps in a row, before such a step, differ to one side, by so much on average."""


@dataclasses.dataclass
class Conditions:
    """How the runs of a comparison were made.

    Attributes:
      are_equal: whether equal programs give equal bits.
      baseline: a second run of the old program.
      loss_tolerance: the relative error up to which losses are equal.
      ended: for each run, whether it ended by itself; None if that is unknown.
    """

    are_equal: bool = False
    baseline: Optional[OptimizerRecord] = None
    loss_tolerance: float = 0.0
    ended: Tuple[Optional[bool], Optional[bool]] = (None, None)


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


class _Runs:
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
            self.is_repeatable = _first_unequal(own) is None
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


def equal_conditions(old: RunHeader, new: RunHeader) -> bool:
    """Returns whether two runs were made where equal programs give equal bits."""
    names = ("tensorflow", "keras", "devices", "replicas", "xla")
    known = old.tensorflow is not None
    return known and all(getattr(old, name) == getattr(new, name) for name in names)


def compare(
    old: OptimizerRecord, new: OptimizerRecord, conditions: Optional[Conditions] = None
) -> Comparison:
    """Compares two runs of one optimizer.

    Args:
      old: the reference run.
      new: the run to check.
      conditions: how they were made.
    """
    conditions = conditions or Conditions()
    reason = _why_not_comparable(old, new)
    aligned = align(old, new)
    if not reason and not aligned.pairs:
        reason = "they have no step in common"
    runs = _Runs(aligned, conditions)
    if not reason and not (runs.has_loss or runs.has_norm):
        reason = "neither losses nor gradient norms are in both records"
    if reason:
        return Comparison(Verdict.NOT_COMPARABLE, f"The runs cannot be compared: {reason}.", [])
    for judge in _JUDGES:
        found = judge(runs)
        if found:
            break
    else:
        found = _judge_rest(runs)
    evidence = runs.evidence
    verdict, sentence, step = found
    missing = _missing(aligned, conditions.ended)
    if missing:
        evidence[:0] = missing
        if verdict.status == 0:
            sentence = f"Not shown to be the same: {missing[0]}. Up to there: {sentence}"
            verdict = Verdict.UNDECIDED
    return Comparison(verdict, sentence, evidence, step, aligned)


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


def _missing(aligned: Aligned, ended: Tuple[Optional[bool], Optional[bool]]) -> List[str]:
    """Returns what one record lacks of the other, or of its own run."""
    old, new = aligned.old, aligned.new
    found = []
    for (name, run), has_ended in zip((("new", new), ("old", old)), ended[::-1]):
        last = max(old.steps[-1], new.steps[-1])
        cut = " (no end mark: it was cut off)" if has_ended is False else ""
        if run.steps[-1] < last:
            found.append(f"the {name} run ends after step {run.steps[-1]} of {last}{cut}")
        elif cut:
            found.append(f"the {name} run ends at step {last}{cut}")
        if run.gaps:
            first = run.gaps[0]
            more = f", and {len(run.gaps) - 1} more gaps" if len(run.gaps) > 1 else ""
            found.append(
                f"steps {first.first} to {first.end - 1} of the {name} run are missing{more}"
            )
        if run.steps[0] > min(old.steps[0], new.steps[0]):
            found.append(f"the {name} run begins at step {run.steps[0]}")
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
    return notes


def _judge_weights(runs: _Runs) -> Finding:
    aligned = runs.aligned
    old, new = aligned.old.initial_weights, aligned.new.initial_weights
    if not (old and new and old != new):
        return None
    sentence = (
        "Different: the runs start from other initial weights; restore the same checkpoint in "
        "both, as equal seeds do not give equal weights on every version."
    )
    return Verdict.DIFFERENT, sentence, aligned.step(0)


def _judge_scales(runs: _Runs) -> Finding:
    aligned = runs.aligned
    differing = parameters_that_differ(aligned.old.scale, aligned.new.scale)
    if differing:
        sentence = f"Different: the loss scales are declared with {', '.join(differing)}."
        return Verdict.DIFFERENT, sentence, aligned.step(0)
    for name, run in (("old", aligned.old), ("new", aligned.new)):
        mismatch = replay(run)
        if mismatch:
            runs.evidence.append(
                f"step {mismatch.step} of the {name} run uses the scale {mismatch.recorded:g}, "
                f"where the update rule gives {mismatch.expected:g}"
            )
            sentence = (
                f"Different: the loss scale of the {name} run breaks its update rule at step "
                f"{mismatch.step}; cause: {mismatch.parameter}."
            )
            return Verdict.DIFFERENT, sentence, mismatch.step
    runs.evidence.append(
        "both loss scales follow their update rules "
        f"({replayed_steps(aligned.old)} and {replayed_steps(aligned.new)} steps)"
    )
    # The scale of a step depends on the skips before it, so that of the parting step is included.
    for index, (mine, theirs) in enumerate(aligned.column("scales", 0, aligned.part + 1)):
        if mine is not None and theirs is not None and not same_scale(mine, theirs):
            step = aligned.step(index)
            runs.evidence.append(f"at step {step} the scales are {mine:g} and {theirs:g}")
            sentence = f"Different: the loss scales part at step {step}, and no skip explains it."
            return Verdict.DIFFERENT, sentence, step
    for index, (mine, theirs) in enumerate(aligned.column("applied", 0, aligned.part)):
        if mine is not None and theirs is not None and mine != theirs:
            step = aligned.step(index)
            applying = "old" if mine else "new"
            sentence = f"Different: only the {applying} run applies the gradients of step {step}."
            return Verdict.DIFFERENT, sentence, step
    return None


def _judge_clipping(runs: _Runs) -> Finding:
    """Finds a limit of norms that only one run has."""
    aligned = runs.aligned
    for number, name, run in ((0, "old", aligned.old), (1, "new", aligned.new)):
        limit = clipping_limit(run)
        if limit is None:
            continue
        above = [
            index
            for index, pair in enumerate(aligned.column("norm"))
            if CLIPPED * limit < (pair[1 - number] or 0.0) < math.inf
        ]
        if len(above) >= CLIPPED_STEPS:
            step = aligned.step(above[0])
            sentence = (
                f"Different: the {name} run clips gradients to a norm of {limit:.4g}, and "
                f"those of the other one are larger, from step {step} on."
            )
            return Verdict.DIFFERENT, sentence, step
    return None


def _first_unequal(aligned: Aligned) -> Optional[int]:
    """Returns the position of the first step with a number that is not equal to the bit."""
    found = [
        next((i for i, pair in enumerate(aligned.column(each.name)) if difference(*pair)), None)
        for each in COLUMNS
        if each.name != "bad"
    ]
    return min((each for each in found if each is not None), default=None)


def _judge_bits(runs: _Runs) -> Finding:
    """Compares runs that were made under equal conditions, where nothing rounds differently."""
    aligned = runs.aligned
    index = _first_unequal(aligned)
    count = len(aligned.pairs)
    known = any(each is not None for each in runs.loss[: aligned.part])
    if index is None and (known or runs.has_norm):
        return Verdict.IDENTICAL, f"Same: {count} steps, bit-identical.", None
    if index is None or not runs.conditions.are_equal or runs.conditions.loss_tolerance:
        return None
    if not runs.is_repeatable:
        runs.evidence.append("the old program is not equal to its own second run (--baseline)")
        return None
    finding = _judge_start(runs) or _judge_update(runs) or _judge_norms(runs)
    step = aligned.step(index)
    error = max(largest(runs.loss[: index + WINDOW])[0], largest(runs.norm[: index + WINDOW])[0])
    sentence = (
        f"Different: both runs were made with the same versions and devices, and their numbers "
        f"differ from step {step} on (by {error:.1g})"
    )
    if finding:
        sentence += finding[1][len("Different") :].rstrip(".")
    elif runs.conditions.baseline is None:
        sentence += (
            "; to see whether the old program itself gives other numbers when it is run again, "
            "record it twice and use --baseline"
        )
    else:
        sentence += "; the old program gives equal numbers when it is run again"
    return Verdict.DIFFERENT, sentence + ".", step


def _judge_start(runs: _Runs) -> Finding:
    """Compares what comes from the initial weights, before an update."""
    aligned = runs.aligned
    for index in range(min(aligned.updated + 1, len(aligned.pairs))):
        loss, norm = runs.loss[index] or 0.0, runs.norm[index] or 0.0
        step = aligned.step(index)
        if abs(loss) > FIRST_LOSS:
            old, new = aligned.column("loss", index, index + 1)[0]
            runs.evidence.append(f"losses of step {step}: {old:.6g} and {new:.6g}")
            cause = cause_of_first_loss(aligned, index)
            sentence = f"Different: the losses differ at step {step}, before an update; {cause}."
            return Verdict.DIFFERENT, sentence, step
        if abs(norm) > FIRST_NORM:
            return _different_norms(runs, index)
    return None


def _judge_update(runs: _Runs) -> Finding:
    """Compares the losses after the first update with the noise before it."""
    aligned = runs.aligned
    first = aligned.updated + 1
    noise = runs.noise
    runs.evidence.append(f"largest difference of the loss before an update: {noise:.1g} or less")
    # The loss of the step in which the runs part comes from weights that still agree.
    for index in range(first, min(first + 3, aligned.part + 1, len(aligned.pairs))):
        error = abs(runs.loss[index] or 0.0)
        following = [
            each or 0.0 for each in runs.loss[index : min(index + STEADY_STEPS, aligned.part)]
        ]
        size = sum(map(abs, following))
        limit = JUMP_AT_LEAST
        if len(following) < STEADY_STEPS:
            limit = FEW_AT_LEAST
        elif abs(sum(following)) >= STEADY * size:
            limit = STEADY_AT_LEAST
        if error > max(JUMP * noise, limit):
            return _different_losses(runs, index, f"by {error:.1g}")
        if abs(runs.norm[index] or 0.0) > FIRST_NORM and index < aligned.part:
            return _different_norms(runs, index)
    return None


def _judge_norms(runs: _Runs) -> Finding:
    """Finds a norm that differs all at once."""
    aligned = runs.aligned
    norms = [abs(each or 0.0) for each in runs.norm[: aligned.part]]
    for index in range(aligned.updated + 1, len(norms)):
        before = norms[max(index - BEFORE, 0) : index]
        if norms[index] > NORM_JUMP and norms[index] > NORM_TIMES * max(before):
            return _different_norms(runs, index)
    return None


def _judge_later(runs: _Runs) -> Finding:
    """Finds losses that suddenly differ much more than before, as where a schedule begins."""
    aligned = runs.aligned
    series = [abs(each or 0.0) for each in (runs.loss if runs.has_loss else runs.norm)]
    parts = [i for i, (one, other) in enumerate(aligned.column("finite")) if one is not other]
    for index in range(aligned.updated + FEW_BEFORE, len(series)):
        now = series[index : index + WINDOW]
        if max(now[:3]) < LATER_AT_LEAST:
            continue
        # After a step that only one run skips, the errors of correct runs jump, too.
        skips = bisect.bisect_left(parts, index + WINDOW - 1)
        first = max(index - BEFORE, parts[skips - 1] + WINDOW if skips else 0)
        before = series[first:index]
        limit = LATER * max([QUIET, *before])
        typical = sorted(now)[WINDOW // 2] if len(now) == WINDOW else 0.0
        jumps = len(before) == BEFORE or (before and not skips)
        if not (jumps and typical >= max(limit, LATER_AT_LEAST)):
            before = series[max(index - BEFORE, 0) : index]
            limit = SPIKE * max([QUIET, *before])
            if index > aligned.part or now[0] < max(limit, SPIKE_AT_LEAST):
                continue
            typical = now[0]
        place = index + next(i for i, each in enumerate(now) if each >= typical / 2)
        if not runs.has_loss:
            return _different_norms(runs, place)
        how = f"by {series[place]:.1g}, and by {max(before):.1g} at most before"
        return _different_losses(runs, place, how)
    return None


def _judge_drift(runs: _Runs) -> Finding:
    """Finds losses that differ to one side all the time: rounding changes its sign."""
    aligned = runs.aligned
    series = [each or 0.0 for each in runs.loss[: aligned.part]]
    for window, end, limit in DRIFTS:
        total = sum(series[1:window])
        size = sum(map(abs, series[1:window]))
        for last in range(window, min(end, len(series))):
            total, size = total + series[last], size + abs(series[last])
            if size / window >= limit and abs(total) >= ONE_SIDE * size:
                first = last - window + 1
                how = f"by {size / window:.1g} on average over {window} steps, to one side"
                return _different_losses(runs, first, how, cause_of_drift())
            total, size = total - series[last - window + 1], size - abs(series[last - window + 1])
    return None


def _different_losses(runs: _Runs, index: int, how: str, cause: str = "") -> Finding:
    aligned = runs.aligned
    step = aligned.step(index)
    old, new = aligned.column("loss", index, index + 1)[0]
    runs.evidence.append(f"losses of step {step}: {old:.6g} and {new:.6g}")
    cause = cause or cause_of_update(aligned, index, runs.noise)
    sentence = f"Different: the losses differ from step {step} on, {how}; {cause}."
    return Verdict.DIFFERENT, sentence, step


def _different_norms(runs: _Runs, index: int) -> Finding:
    aligned = runs.aligned
    step = aligned.step(index)
    old, new = aligned.column("norm", index, index + 1)[0]
    runs.evidence.append(f"gradient norms of step {step}: {old:.6g} and {new:.6g}")
    cause = cause_of_norm(aligned, index)
    return Verdict.DIFFERENT, f"Different: the gradient norms differ at step {step}; {cause}.", step


def _judge_rest(runs: _Runs) -> Tuple[Verdict, str, Optional[int]]:
    aligned = runs.aligned
    for field, name in (("loss", "loss"), ("norm", "gradient norm")):
        # Those that the user allows are shown, too.
        found = aligned.differences(field)[: aligned.part]
        if any(each is not None for each in found):
            error, place = largest(found)
            where = f", at step {aligned.step(place)}" if error else ""
            runs.evidence.append(f"largest difference of the {name}: {error:.2g}{where}")
        else:
            runs.evidence.append(f"the {name} is not in both records")
    after = runs.loss[aligned.updated + 1 : min(aligned.updated + 4, aligned.part + 1)]
    jump = largest(after)[0]
    jump = jump if jump > max(JUMP * runs.noise, DOUBT_AT_LEAST) else 0.0
    return judge_on_average(aligned, runs.loss, runs.norm, runs.mean_allowed, jump, runs.evidence)


_JUDGES = (
    _judge_weights,
    _judge_scales,
    _judge_clipping,
    _judge_bits,
    _judge_start,
    _judge_update,
    _judge_norms,
    _judge_later,
    _judge_drift,
)
