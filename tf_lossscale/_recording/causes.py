"""Names what is likely to have made two runs differ."""

import math
from typing import Optional

from tf_lossscale._recording.aligned import Aligned, difference

__all__ = ["cause_of_first_loss", "cause_of_norm", "cause_of_update"]

_EQUAL = 2e-2
"""The relative error up to which a ratio of norms counts as a power of the loss scale."""
_WHOLE = 2e-3
_PARTS = 64


def cause_of_first_loss(aligned: Aligned, index: int) -> str:
    """Returns the likely cause of losses that differ before anything was applied."""
    old, new = aligned.old.initial_weights, aligned.new.initial_weights
    mine, theirs = aligned.column("loss", index, index + 1)[0]
    scale = aligned.column("scales", index, index + 1)[0][0]
    if mine and theirs:
        ratio = theirs / mine
        if scale and scale != 1 and (_near(ratio, scale) or _near(ratio, 1 / scale)):
            return "they differ by the loss scale, so one run recorded its scaled loss"
        count = _whole(ratio)
        if count:
            return f"they differ by the factor {count}: a sum over parts in place of a mean"
    if old and new:
        return (
            "likely cause: other data in this batch, or another forward pass (the initial weights "
            "are equal)"
        )
    return "likely cause: other initial weights, other data in this batch, or another forward pass"


def cause_of_norm(
    old: Optional[float], new: Optional[float], scale: Optional[float], exact: bool = True
) -> str:
    """Returns the likely cause of gradient norms that differ.

    Args:
      old: the norm in the old run.
      new: the norm in the new run.
      scale: the loss scale of the new run.
      exact: whether the weights are still equal, so that whole ratios mean something.
    """
    if not (old and new and math.isfinite(old) and math.isfinite(new)):
        return "likely cause: gradients that are zero or not finite in one run"
    ratio = new / old
    if scale and scale != 1:
        if _near(ratio, scale):
            return "the new one is larger by the loss scale: scaled twice, or not unscaled"
        if _near(ratio, 1 / scale):
            return (
                "the new one is smaller by the loss scale: its loss is not scaled, or its "
                "gradients are unscaled twice"
            )
        if _near(ratio, scale * scale) or _near(ratio, 1 / scale / scale):
            return "they differ by the square of the loss scale: scaled or unscaled twice too often"
    count = _whole(ratio) if exact else None
    if count:
        word = "larger" if ratio > 1 else "smaller"
        return (
            f"the new one is {count} times {word}: a sum over {count} replicas or batches in place "
            "of a mean, or the other way round"
        )
    if ratio > 1:
        return "likely cause: other data in this batch, or gradients that only the old run clips"
    return (
        "likely cause: other data in this batch, gradients that are clipped, or gradients that are "
        "missing (a replica, a part of the batch, a variable)"
    )


def cause_of_update(aligned: Aligned, index: int, change: float) -> str:
    """Returns the likely cause of losses that differ once updates have been applied.

    Args:
      aligned: the runs.
      index: the first step whose losses differ.
      change: by how much the new loss is larger, relatively.
    """
    updates = sum(
        True in (*applied, *finite)
        for applied, finite in zip(
            aligned.column("applied", 0, index), aligned.column("finite", 0, index)
        )
    )
    way = "higher" if change > 0 else "lower"
    if updates <= 1:
        return (
            f"the new losses are {way} after the first update; likely cause: the learning rate (a "
            "larger or smaller one), clipping, decay, or gradients that are missing, added up or "
            "not unscaled"
        )
    if updates <= 3:
        return (
            f"the new losses are {way} after update {updates}; the first update agrees, so the "
            "likely cause is what acts later: momentum (without it updates become 1 / (1 - "
            "momentum) times smaller), a beta or decay of the optimizer"
        )
    return (
        f"the new losses are {way} from there on, after {updates} updates that agree; likely "
        "cause: what begins there (a learning-rate schedule, decay, a restart without the "
        "optimizer's state, the order of the data)"
    )


def _near(ratio: float, factor: float) -> bool:
    return abs(difference(ratio, factor) or 0.0) < _EQUAL


def _whole(ratio: float) -> Optional[int]:
    """Returns the whole number from 2 on that a ratio or its inverse is; None if it is none."""
    larger = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    count = round(larger) if larger < _PARTS + 0.5 else 0
    return count if count >= 2 and abs(larger / count - 1) < _WHOLE else None
