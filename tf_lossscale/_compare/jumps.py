"""Finds losses and norms that differ more than rounding explains, and names the cause.

They differ all at once or all the time. How much rounding does is measured before the first update,
and before each later step. `docs/compare.md` says which runs the limits come from. Where the
numbers do not show the cause, the sentence says what to look at.
"""

import bisect
import math
from typing import Optional

from tf_lossscale._compare.runs import Comparison, Runs, difference, finite
from tf_lossscale._records.format import OptimizerRecord

_FIRST_LOSS = 1e-3
"""Losses that come from equal weights differ by less than this; the largest seen was 1.2e-4."""
_FIRST_NORM = 2e-2
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

_EQUAL = 2e-2
"""The relative error up to which a ratio of norms counts as a power of the loss scale."""
_WHOLE, _PARTS = 1e-2, 64
_CLIPPED, _CLIPPED_STEPS = 2e-5, 4
"""The largest norm is a limit if so many are equal to it, up to this."""
_ABOVE, _ABOVE_STEPS = 1.01, 4
"""In so many steps, norms are larger by this than the limit to which the other run clips them."""
_BELOW_STEPS = 20
"""In so many steps, norms without a limit are smaller than those that the other run clips."""
_AGREES = 3.0
"""Losses agree that differ by so many times the noise before an update."""


def judge_start(runs: Runs) -> Optional[Comparison]:
    """Compares what comes from the initial weights, before an update."""
    for index in range(min(runs.updated + 1, len(runs.pairs))):
        if abs(runs.loss[index] or 0.0) > _FIRST_LOSS:
            cause = f", before an update; {_cause_of_first_loss(runs, index)}"
            return _different(runs, "loss", index, "at", cause)
        if abs(runs.norm[index] or 0.0) > _FIRST_NORM:
            return _different_norms(runs, index)
    return None


def judge_update(runs: Runs) -> Optional[Comparison]:
    """Compares the losses after the first update with the noise before it."""
    first = runs.updated + 1
    runs.evidence.append(
        f"largest difference of the loss before an update: {runs.noise:.1g} or less"
    )
    # The loss of the step in which the runs part comes from weights that still agree.
    for index in range(first, min(first + 3, runs.part + 1, len(runs.pairs))):
        error = abs(runs.loss[index] or 0.0)
        end = min(index + STEADY_STEPS, runs.part)
        following = [each or 0.0 for each in runs.loss[index:end]]
        limit = JUMP_AT_LEAST
        if len(following) < STEADY_STEPS:
            limit = FEW_AT_LEAST
        elif abs(sum(following)) >= STEADY * sum(map(abs, following)):
            limit = STEADY_AT_LEAST
        if error > max(JUMP * runs.noise, limit):
            return _different_losses(runs, index, f"by {error:.1g}")
        if abs(runs.norm[index] or 0.0) > _FIRST_NORM and index < runs.part:
            return _different_norms(runs, index)
    return None


def judge_norms(runs: Runs) -> Optional[Comparison]:
    """Finds a norm that differs all at once."""
    norms = [abs(each or 0.0) for each in runs.norm[: runs.part]]
    for index in range(runs.updated + 1, len(norms)):
        before = norms[max(index - BEFORE, 0) : index]
        if norms[index] > NORM_JUMP and norms[index] > NORM_TIMES * max(before):
            return _different_norms(runs, index)
    return None


def judge_later(runs: Runs) -> Optional[Comparison]:
    """Finds losses that suddenly differ much more than before, as where a schedule begins."""
    has_loss = any(each is not None for each in runs.loss)
    series = [abs(each or 0.0) for each in (runs.loss if has_loss else runs.norm)]
    parts = [i for i, (one, other) in enumerate(runs.column("finite")) if one is not other]
    for index in range(runs.updated + FEW_BEFORE, len(series)):
        now = series[index : index + WINDOW]
        # After a step that only one run skips, the errors of correct runs jump, too.
        skips = bisect.bisect_left(parts, index + WINDOW - 1)
        first = max(index - BEFORE, parts[skips - 1] + WINDOW if skips else 0)
        before = series[first:index]
        typical = sorted(now)[WINDOW // 2] if len(now) == WINDOW else 0.0
        jumps = len(before) == BEFORE or (before and not skips)
        if not (jumps and typical >= max(LATER * max(before), LATER_AT_LEAST)):
            before = series[max(index - BEFORE, 0) : index]
            if index > runs.part or now[0] < max(SPIKE * max(before), SPIKE_AT_LEAST):
                continue
            typical = now[0]
        place = index + next(i for i, each in enumerate(now) if each >= typical / 2)
        how = f"by {series[place]:.1g}, and by {max(before):.1g} at most before"
        return _different_losses(runs, place, how) if has_loss else _different_norms(runs, place)
    return None


def judge_drift(runs: Runs) -> Optional[Comparison]:
    """Finds losses that differ to one side all the time: rounding changes its sign."""
    series = [each or 0.0 for each in runs.loss[: runs.part]]
    for window, end, limit in DRIFTS:
        for first in range(1, min(end, len(series)) - window + 1):
            part = series[first : first + window]
            size = sum(map(abs, part))
            if size / window >= limit and abs(sum(part)) >= ONE_SIDE * size:
                how = f"by {size / window:.1g} on average over {window} steps, to one side"
                cause = runs.declared or (
                    "cause unknown; they differ a little in each update: look at the learning "
                    "rate, momentum, the betas and the decay of the optimizer"
                )
                known = (i for i in range(first, first + window) if runs.loss[i] is not None)
                return _different_losses(runs, next(known), how, cause)
    return None


def judge_clipping(runs: Runs, is_above: bool = True) -> Optional[Comparison]:
    """Finds a limit of norms that one run has, and those of the other are above it, or below."""
    limits = [_clipping_limit(run) for _, run in runs.both]
    for number, limit in enumerate(limits):
        if limit is None or not (is_above or None in limits):
            continue
        pairs = [(i, each) for i, each in enumerate(runs.column("norm")) if are_positive(*each)]
        if is_above:
            found = [i for i, each in pairs if each[1 - number] > _ABOVE * limit]
        else:
            found = [i for i, each in pairs if each[number] > limit / _ABOVE > each[1 - number]]
        if len(found) < (_ABOVE_STEPS if is_above else _BELOW_STEPS):
            continue
        (name, _), step = runs.both[number], runs.step(found[0])
        text = (
            f"the {name} run clips gradients to a norm of {limit:.4g}, and those of the other one "
            f"are larger, from step {step} on"
            if is_above
            else f"only the gradient norms of the {name} run have a limit, {limit:.4g}, and those "
            f"of the other one are smaller, from step {step} on; look at clipping, and at "
            "gradients that are missing after it"
        )
        return runs.different(text, step)
    return None


def _different_losses(runs: Runs, index: int, how: str, cause: str = "") -> Comparison:
    cause = cause or _cause_of_update(runs, index)
    return _different(runs, "loss", index, "from", f" on, {how}; {cause}")


def _different_norms(runs: Runs, index: int) -> Comparison:
    return _different(runs, "norm", index, "at", f"; {_cause_of_norm(runs, index)}")


def _different(runs: Runs, name: str, index: int, where: str, cause: str) -> Comparison:
    step, (old, new) = runs.step(index), runs.at(name, index)
    what = "losses" if name == "loss" else "gradient norms"
    runs.evidence.append(f"{what} of step {step}: {old:.6g} and {new:.6g}")
    return runs.different(f"the {what} differ {where} step {step}{cause}", step)


def _cause_of_first_loss(runs: Runs, index: int) -> str:
    old, new = runs.at("loss", index)
    scale = runs.at("scales", index)[0]
    if old and new:
        ratio = new / old
        if scale and scale != 1 and (_near(ratio, scale) or _near(ratio, 1 / scale)):
            return "cause: they differ by the loss scale, so one run recorded its scaled loss"
        count = _whole(ratio)
        if count:
            return f"cause: they differ by the factor {count}, a sum over parts in place of a mean"
    data = "other data in this batch, or another forward pass"
    if runs.old.initial_weights and runs.new.initial_weights:
        return f"cause: {data} (the initial weights are equal)"
    return f"cause: other initial weights, {data}"


def _cause_of_norm(runs: Runs, index: int) -> str:
    old, new = runs.at("norm", index)
    is_later = index > runs.updated
    declared = runs.declared if is_later else ""
    if not are_positive(old, new):
        return declared or "cause unknown; look at gradients that are zero or not finite in one run"
    found = cause_of_ratio(old, new, runs.at("scales", index)[1], exact=not is_later) or declared
    if found:
        return found
    name, run = runs.both[new > old]
    limit = _clipping_limit(run)
    if limit:
        return (
            f"cause: the {name} run clips gradients to {limit:.4g}, which are larger before "
            "(not unscaled, or added up)"
        )
    look = "clipping, and gradients that are missing (a replica, a part of the batch, a variable)"
    are_equal = runs.old.initial_weights and runs.new.initial_weights
    if is_later:
        look = f"the data, the learning rate, {look}"
    elif None in runs.at("loss", index) or not are_equal:
        look = f"the initial weights, the data of this batch, {look}"
    return f"cause unknown; look at {look}"


def _clipping_limit(run: OptimizerRecord) -> Optional[float]:
    """Returns the norm to which a run clips its gradients; None if no norm shows it."""
    norms = finite(run.norm)
    limit = max(norms, default=0.0)
    reached = sum(each >= limit * (1 - _CLIPPED) for each in norms)
    return limit if limit and reached >= _CLIPPED_STEPS else None


def are_positive(*values: Optional[float]) -> bool:
    """Returns whether numbers are known, finite and larger than zero."""
    return all(each is not None and 0 < each < math.inf for each in values)


def cause_of_ratio(old: float, new: float, scale: Optional[float], exact: bool) -> str:
    """Returns the cause that the ratio of two gradient norms shows; nothing if it shows none.

    Whole ratios mean something where it is exact: the weights are still equal. `scale` is that of
    the new run.
    """
    ratio = new / old
    if scale and scale != 1:
        if _near(ratio, scale):
            return "cause: the new one is larger by the loss scale: scaled twice, or not unscaled"
        if _near(ratio, 1 / scale):
            how = "smaller by the loss scale: its loss is not scaled, or its gradients are unscaled"
            return f"cause: the new one is {how} twice"
        if _near(ratio, scale * scale) or _near(ratio, 1 / scale / scale):
            how = "the square of the loss scale: scaled or unscaled twice too often"
            return f"cause: they differ by {how}"
    count = _whole(ratio) if exact else None
    if count:
        word = "larger" if ratio > 1 else "smaller"
        return (
            f"cause: the new one is {count} times {word}: a sum over {count} replicas or batches "
            "in place of a mean, or the other way round"
        )
    return ""


def _cause_of_update(runs: Runs, index: int) -> str:
    if runs.declared:
        return runs.declared
    errors = runs.differences("loss")
    first = index
    while first > runs.updated + 1 and abs(errors[first - 1] or 0.0) > _AGREES * runs.noise:
        first -= 1
    updates = sum(map(runs.is_updated, range(first)))
    if updates <= 1:
        return (
            "cause unknown; the first update differs: look at the learning rate (a larger or "
            "smaller one), clipping, decay, and gradients that are missing, added up or not "
            "unscaled"
        )
    if index <= runs.updated + 3:
        return (
            f"cause unknown; the first update agrees, and number {updates} does not: look at "
            "momentum, the betas and the decay of the optimizer"
        )
    return (
        "cause unknown; look at what begins there (a learning-rate schedule, decay, a restart "
        "without the optimizer's state, the order of the data)"
    )


def _near(ratio: float, factor: float) -> bool:
    return abs(difference(ratio, factor) or 0.0) < _EQUAL


def _whole(ratio: float) -> Optional[int]:
    """Returns the whole number from 2 on that a ratio or its inverse is; None if it is none."""
    larger = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    count = round(larger) if larger < _PARTS + 0.5 else 0
    return count if count >= 2 and abs(larger - count) < min(_WHOLE, 2e-3 * count) else None
