"""The questions that `compare` asks about two runs, in order, up to the first that is answered."""

import math
from typing import Optional, Tuple

from tf_lossscale._recording.aligned import Finding, Verdict, largest
from tf_lossscale._recording.causes import cause_of_first_loss, cause_of_settings, clipping_limit
from tf_lossscale._recording.jumps import (
    FIRST_NORM,
    JUMP,
    WINDOW,
    judge_drift,
    judge_later,
    judge_norms,
    judge_update,
)
from tf_lossscale._recording.on_average import judge_on_average
from tf_lossscale._recording.runs import Runs, different_norms, first_unequal
from tf_lossscale._recording.scale_rules import (
    parameters_that_differ,
    replay,
    replayed_steps,
    same_scale,
)

__all__ = ["JUDGES", "judge_rest"]

FIRST_LOSS = 1e-3
"""Losses that come from equal weights differ by less than this; the largest seen was 1.2e-4."""
DOUBT_AT_LEAST = 1e-4
"""A smaller jump after the first update is no reason to doubt."""
CLIPPED, CLIPPED_STEPS = 1.01, 4
"""In so many steps, norms are larger by this than the limit to which the other run clips them."""


def _judge_weights(runs: Runs) -> Finding:
    aligned = runs.aligned
    old, new = aligned.old.initial_weights, aligned.new.initial_weights
    if not (old and new and old != new):
        return None
    sentence = (
        "Different: the runs start from other initial weights; restore the same checkpoint in "
        "both, as equal seeds do not give equal weights on every version."
    )
    return Verdict.DIFFERENT, sentence, aligned.step(0)


def _judge_scales(runs: Runs) -> Finding:
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


def _judge_clipping(runs: Runs) -> Finding:
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


def _judge_bits(runs: Runs) -> Finding:
    """Compares runs that were made under equal conditions, where nothing rounds differently."""
    aligned = runs.aligned
    index = first_unequal(aligned)
    count = len(aligned.pairs)
    known = any(each is not None for each in runs.loss[: aligned.part])
    if index is None and (known or runs.has_norm):
        return Verdict.IDENTICAL, f"Same: {count} steps, bit-identical.", None
    if index is None or not runs.conditions.are_equal or runs.conditions.loss_tolerance:
        return None
    if not runs.is_repeatable:
        runs.evidence.append("the old program is not equal to its own second run (--baseline)")
        return None
    finding = _judge_start(runs) or judge_update(runs) or judge_norms(runs)
    settings = cause_of_settings(aligned)
    step = aligned.step(index)
    error = max(largest(runs.loss[: index + WINDOW])[0], largest(runs.norm[: index + WINDOW])[0])
    sentence = (
        f"Different: both runs were made with the same versions and devices, and their numbers "
        f"differ from step {step} on (by {error:.1g})"
    )
    if finding:
        sentence += finding[1][len("Different") :].rstrip(".")
    elif settings:
        sentence += f"; {settings}"
    elif runs.conditions.baseline is None:
        sentence += (
            "; to see whether the old program itself gives other numbers when it is run again, "
            "record it twice and use --baseline"
        )
    else:
        sentence += "; the old program gives equal numbers when it is run again"
    return Verdict.DIFFERENT, sentence + ".", step


def _judge_start(runs: Runs) -> Finding:
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
            return different_norms(runs, index)
    return None


def judge_rest(runs: Runs) -> Tuple[Verdict, str, Optional[int]]:
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


JUDGES = (
    _judge_weights,
    _judge_scales,
    _judge_clipping,
    _judge_bits,
    _judge_start,
    judge_update,
    judge_norms,
    judge_later,
    judge_drift,
)
