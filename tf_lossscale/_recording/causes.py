"""Names what is likely to have made two runs differ."""

import math
from typing import Optional

from tf_lossscale._recording.aligned import Aligned, relative_error

__all__ = ["cause_of_loss", "cause_of_norm"]

_EQUAL = 5e-2
"""The relative error up to which a ratio of norms counts as that of the loss scale."""


def cause_of_loss(aligned: Aligned, index: int) -> str:
    """Returns the likely cause of losses that differ first at a common step."""
    if index == 0 and aligned.step(0) == 0:
        return _cause_of_first_loss(aligned)
    known = [
        mine is not None and theirs is not None
        for (mine, theirs), (finite, _) in zip(
            aligned.column("norm", 0, index), aligned.column("finite", 0, index)
        )
        if finite is not False  # the norms of skipped steps are not recorded
    ]
    if known and all(known):
        return (
            "likely cause: the update (learning rate, the optimizer's settings, clipping, missing "
            "unscaling) or the next batch, as the gradients before it agree"
        )
    return "likely cause: the update (learning rate, clipping, unscaling) or the order of the data"


def _cause_of_first_loss(aligned: Aligned) -> str:
    old, new = aligned.old.initial_weights, aligned.new.initial_weights
    mine, theirs = aligned.column("loss", 0, 1)[0]
    scale = aligned.column("scales", 0, 1)[0][0]
    factors = (scale, 1 / scale) if scale and scale != 1 else ()
    if theirs and any(relative_error(mine * factor, theirs) < 1e-3 for factor in factors):
        return "they differ by the loss scale, so one run recorded its scaled loss"
    if old and new and old != new:
        return "likely cause: other initial weights"
    if old and new:
        return "likely cause: another first batch or forward pass (the initial weights are equal)"
    return "likely cause: other initial weights, another first batch or forward pass"


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
    if old and new and math.isfinite(old) and math.isfinite(new):
        ratio = new / old
        if scale and scale != 1 and relative_error(ratio, scale) < _EQUAL:
            return "the new one is larger by the loss scale: its gradients are not unscaled"
        if scale and scale != 1 and relative_error(ratio, 1 / scale) < _EQUAL:
            return (
                "the new one is smaller by the loss scale: its loss is not scaled, or its "
                "gradients are unscaled twice"
            )
        for count in range(2, 65 if exact else 2):
            for factor, word in ((count, "larger"), (1 / count, "smaller")):
                if relative_error(ratio, factor) < 1e-3:
                    return (
                        f"the new one is {count} times {word}: a sum over {count} replicas or "
                        "batches in place of a mean, or the other way round"
                    )
        if new < old:
            return "likely cause: clipping, a replica whose gradients are missing, or another batch"
    return "likely cause: another batch, clipping, or a replica whose gradients are missing"
