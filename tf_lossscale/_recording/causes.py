"""Names the cause of a difference where the numbers show it, and else what to look at."""

import math
from typing import List, Optional

from tf_lossscale._recording.aligned import Aligned, difference
from tf_lossscale._recording.record import OptimizerRecord, Setting

__all__ = [
    "cause_of_drift",
    "cause_of_first_loss",
    "cause_of_norm",
    "cause_of_ratio",
    "cause_of_settings",
    "cause_of_update",
    "clipping_limit",
    "differing_settings",
]

_SETTINGS = 4
"""Of longer lists, the first so many settings are named."""
_EQUAL_SETTING = 1e-6
"""Keras stores the learning rate in float32."""
_EQUAL = 2e-2
"""The relative error up to which a ratio of norms counts as a power of the loss scale."""
_WHOLE, _PARTS = 1e-2, 64
_CLIPPED, _CLIPPED_STEPS = 2e-5, 4
"""The largest norm is a limit if so many are equal to it, up to this."""
_AGREES = 3.0
"""Losses agree that differ by so many times the noise before an update."""


def differing_settings(aligned: Aligned) -> List[str]:
    """Returns a phrase for each setting in which the inner optimizers differ, if both are known."""
    old, new = aligned.old.settings, aligned.new.settings
    return [
        f"{name} {_shown(old[name])} and {_shown(new[name])}"
        for name in old
        if name in new and not _are_equal(old[name], new[name])
    ][:_SETTINGS]


def _are_equal(one: Setting, other: Setting) -> bool:
    if one is None or other is None:
        return one is other
    return abs(difference(one, other) or 0.0) < _EQUAL_SETTING


def _shown(value: Setting) -> str:
    return "none" if value is None else str(value) if isinstance(value, bool) else f"{value:.4g}"


def cause_of_settings(aligned: Aligned) -> str:
    """Returns how the settings of the inner optimizers differ; nothing if they do not."""
    found = differing_settings(aligned)
    return f"cause: the inner optimizers have {', '.join(found)}" if found else ""


def cause_of_first_loss(aligned: Aligned, index: int) -> str:
    """Returns the cause of losses that differ before anything was applied."""
    old, new = aligned.old.initial_weights, aligned.new.initial_weights
    mine, theirs = aligned.column("loss", index, index + 1)[0]
    scale = aligned.column("scales", index, index + 1)[0][0]
    if mine and theirs:
        ratio = theirs / mine
        if scale and scale != 1 and (_near(ratio, scale) or _near(ratio, 1 / scale)):
            return "cause: they differ by the loss scale, so one run recorded its scaled loss"
        count = _whole(ratio)
        if count:
            return f"cause: they differ by the factor {count}, a sum over parts in place of a mean"
    if old and new:
        return (
            "cause: other data in this batch, or another forward pass (the initial weights are "
            "equal)"
        )
    return "cause: other initial weights, other data in this batch, or another forward pass"


def cause_of_norm(aligned: Aligned, index: int) -> str:
    """Returns the cause of gradient norms that differ in a step, the first such one."""
    old, new = aligned.column("norm", index, index + 1)[0]
    scale = aligned.column("scales", index, index + 1)[0][1]
    found = cause_of_ratio(old, new, scale, exact=index <= aligned.updated)
    if not found and index > aligned.updated:
        found = cause_of_settings(aligned)
    if found:
        return found
    if not (old and new and math.isfinite(old) and math.isfinite(new)):
        return "cause unknown; look at gradients that are zero or not finite in one run"
    for name, run, larger in (("old", aligned.old, old > new), ("new", aligned.new, new > old)):
        limit = clipping_limit(run) if larger else None
        if limit:
            return (
                f"cause: the {name} run clips gradients to {limit:.4g}, which are larger before "
                "(not unscaled, or added up)"
            )
    losses = aligned.column("loss", index, index + 1)[0]
    look = "clipping, and gradients that are missing (a replica, a part of the batch, a variable)"
    if index > aligned.updated:
        look = f"the data, the learning rate, {look}"
    elif None in losses or not (aligned.old.initial_weights and aligned.new.initial_weights):
        look = f"the initial weights, the data of this batch, {look}"
    return f"cause unknown; look at {look}"


def clipping_limit(run: OptimizerRecord) -> Optional[float]:
    """Returns the norm to which a run clips its gradients; None if no norm shows it."""
    norms = [each for each in run.norm if each is not None and math.isfinite(each)]
    limit = max(norms, default=0.0)
    reached = sum(each >= limit * (1 - _CLIPPED) for each in norms)
    return limit if limit and reached >= _CLIPPED_STEPS else None


def cause_of_ratio(
    old: Optional[float], new: Optional[float], scale: Optional[float], exact: bool
) -> str:
    """Returns the cause that the ratio of two gradient norms shows; nothing if it shows none.

    Args:
      old: the norm in the old run.
      new: the norm in the new run.
      scale: the loss scale of the new run.
      exact: whether the weights are still equal, so that whole ratios mean something.
    """
    if not (old and new and math.isfinite(old) and math.isfinite(new)):
        return ""
    ratio = new / old
    if scale and scale != 1:
        if _near(ratio, scale):
            return "cause: the new one is larger by the loss scale: scaled twice, or not unscaled"
        if _near(ratio, 1 / scale):
            return (
                "cause: the new one is smaller by the loss scale: its loss is not scaled, or its "
                "gradients are unscaled twice"
            )
        if _near(ratio, scale * scale) or _near(ratio, 1 / scale / scale):
            return (
                "cause: they differ by the square of the loss scale: scaled or unscaled twice too "
                "often"
            )
    count = _whole(ratio) if exact else None
    if count:
        word = "larger" if ratio > 1 else "smaller"
        return (
            f"cause: the new one is {count} times {word}: a sum over {count} replicas or batches "
            "in place of a mean, or the other way round"
        )
    return ""


def cause_of_update(aligned: Aligned, index: int, noise: float) -> str:
    """Returns the cause of losses that differ all at once after updates, or what to look at.

    Args:
      aligned: the runs.
      index: the first step whose losses differ by so much.
      noise: how much they differ before an update.
    """
    declared = cause_of_settings(aligned)
    if declared:
        return declared
    errors = aligned.differences("loss")
    first = index
    while first > aligned.updated + 1 and abs(errors[first - 1] or 0.0) > _AGREES * noise:
        first -= 1
    updates = sum(
        True in (*applied, *finite)
        for applied, finite in zip(
            aligned.column("applied", 0, first), aligned.column("finite", 0, first)
        )
    )
    if updates <= 1:
        return (
            "cause unknown; the first update differs: look at the learning rate (a larger or "
            "smaller one), clipping, decay, and gradients that are missing, added up or not "
            "unscaled"
        )
    if index <= aligned.updated + 3:
        return (
            f"cause unknown; the first update agrees, and number {updates} does not: look at "
            "momentum, the betas and the decay of the optimizer"
        )
    return (
        "cause unknown; look at what begins there (a learning-rate schedule, decay, a restart "
        "without the optimizer's state, the order of the data)"
    )


def cause_of_drift(aligned: Aligned) -> str:
    """Returns the cause of losses that differ more and more to one side, or what to look at."""
    return cause_of_settings(aligned) or (
        "cause unknown; they differ a little in each update: look at the learning rate, momentum, "
        "the betas and the decay of the optimizer"
    )


def _near(ratio: float, factor: float) -> bool:
    return abs(difference(ratio, factor) or 0.0) < _EQUAL


def _whole(ratio: float) -> Optional[int]:
    """Returns the whole number from 2 on that a ratio or its inverse is; None if it is none."""
    larger = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    count = round(larger) if larger < _PARTS + 0.5 else 0
    near = min(_WHOLE, 2e-3 * count)
    return count if count >= 2 and abs(larger - count) < near else None
