"""Finds losses and norms that differ more than rounding explains, all at once or all the time.

How much rounding does is measured before the first update, and before each later step.
`docs/compare.md` says which runs the limits come from.
"""

import bisect

from tf_lossscale._recording.aligned import Finding
from tf_lossscale._recording.causes import cause_of_drift
from tf_lossscale._recording.runs import QUIET, Runs, different_losses, different_norms

__all__ = ["FIRST_NORM", "WINDOW", "judge_drift", "judge_later", "judge_norms", "judge_update"]

FIRST_NORM = 2e-2
"""Norms that come from equal weights differ by less than this; the largest seen was 7.9e-3."""
JUMP, JUMP_AT_LEAST = 10.0, 5e-3
"""After the first update, the error is at most so many times that before it, or so small."""
STEADY, STEADY_STEPS, STEADY_AT_LEAST = 0.8, 10, 5e-4
"""A smaller jump counts if so many errors go to one side, by this part of their sum."""
FEW_AT_LEAST = 1e-3
"""The same where the runs part or end before so many."""
LATER, LATER_AT_LEAST, BEFORE, WINDOW = 5.0, 1e-3, 20, 5
"""The typical error of `WINDOW` steps is so many times the largest of the `BEFORE` before them."""
FEW_BEFORE = 10
"""With Adam, the errors of correct runs grow in fewer steps, too."""
SPIKE, SPIKE_AT_LEAST = 8.0, 2e-3
"""The same for the error of one step, up to where the runs part."""
NORM_JUMP, NORM_TIMES = 5e-2, 10.0
"""A norm that differs by so much, and by so many times more than those before it."""
ONE_SIDE = 0.99
DRIFTS = ((20, 45, 5e-4), (20, 80, 5e-3), (40, 2**62, 1.5e-2))
"""So many steps in a row, before such a step, differ to one side, by so much on average."""


def judge_update(runs: Runs) -> Finding:
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
            return different_losses(runs, index, f"by {error:.1g}")
        if abs(runs.norm[index] or 0.0) > FIRST_NORM and index < aligned.part:
            return different_norms(runs, index)
    return None


def judge_norms(runs: Runs) -> Finding:
    """Finds a norm that differs all at once."""
    aligned = runs.aligned
    norms = [abs(each or 0.0) for each in runs.norm[: aligned.part]]
    for index in range(aligned.updated + 1, len(norms)):
        before = norms[max(index - BEFORE, 0) : index]
        if norms[index] > NORM_JUMP and norms[index] > NORM_TIMES * max(before):
            return different_norms(runs, index)
    return None


def judge_later(runs: Runs) -> Finding:
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
            return different_norms(runs, place)
        how = f"by {series[place]:.1g}, and by {max(before):.1g} at most before"
        return different_losses(runs, place, how)
    return None


def judge_drift(runs: Runs) -> Finding:
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
                return different_losses(runs, first, how, cause_of_drift(aligned))
            total, size = total - series[last - window + 1], size - abs(series[last - window + 1])
    return None
