"""Names the cause of a difference, where the record of the other run denies it."""

from typing import Optional

from tf_lossscale._compare.judgements import Cause
from tf_lossscale._compare.runs import Runs, are_positive, clipping_limit, difference
from tf_lossscale._records.format import OptimizerRecord

_EQUAL = 2e-2
"""The relative error up to which a ratio of norms counts as a power of the loss scale."""
_WHOLE, _PARTS = 1e-2, 64
"""How near to a whole number a ratio is, and how large it may be."""
_ABOVE, _STEPS = 1.01, 4
"""In so many steps, gradients are larger by this than what is left of them."""


def cause_of_first_loss(runs: Runs, index: int) -> Optional[Cause]:
    """Returns why losses differ that come before an update."""
    old, new = runs.at("loss", index)
    if old and new:
        ratio = abs(new / old)
        scale = runs.at("scales", index)[0]
        if scale and scale != 1 and (_near(ratio, scale) or _near(ratio, 1 / scale)):
            return Cause.SCALED_LOSS
        if whole(ratio):
            return Cause.WHOLE_FACTOR
    has_hashes = runs.old.initial_weights and runs.new.initial_weights
    return Cause.OTHER_DATA if has_hashes else None


def cause_of_ratio(
    old: Optional[float], new: Optional[float], scale: Optional[float]
) -> Optional[Cause]:
    """Returns the cause that the ratio of two gradient norms from equal weights shows."""
    if old is None or new is None or not are_positive(old, new):
        return None
    ratio = new / old
    if scale and scale != 1:
        if _near(ratio, scale):
            return Cause.NOT_UNSCALED
        if _near(ratio, 1 / scale):
            return Cause.NOT_SCALED
        if _near(ratio, scale * scale) or _near(ratio, 1 / scale / scale):
            return Cause.SCALED_SQUARED
    return Cause.WHOLE_FACTOR if whole(ratio) else None


def who_reduces(runs: Runs) -> Optional[str]:
    """Returns the name of the run that alone makes its gradients smaller before it applies them.

    That is what clipping and weight decay do. None if the records deny it.
    """
    reduces_alone = _reduces_alone if runs.knows_clipping else _has_a_limit_alone
    return next((name for name, _ in runs.both if reduces_alone(runs, name)), None)


def _reduces_alone(runs: Runs, name: str) -> bool:
    counts = {which: _reduced_steps(runs, run) for which, run in runs.both}
    own = counts.pop(name)
    return own >= _STEPS and not any(counts.values())


def _has_a_limit_alone(runs: Runs, name: str) -> bool:
    """Returns whether the other run has gradients above the limit of a run, and applies them."""
    place = 0 if name == "old" else 1
    limit = clipping_limit(runs.both[place][1])
    if not limit:
        return False
    others = [pair[1 - place] for pair in runs.pairs("norm") if are_positive(*pair)]
    return sum(norm > _ABOVE * limit for norm in others) >= _STEPS


def _reduced_steps(runs: Runs, run: OptimizerRecord) -> int:
    return sum(part is not None and part < 1 / _ABOVE for part in runs.values("kept", run))


def _near(ratio: float, factor: float) -> bool:
    return (difference(ratio, factor) or 0.0) < _EQUAL


def whole(ratio: float) -> Optional[int]:
    """Returns the whole number from 2 on that a ratio or its inverse is; None if it is none."""
    if not ratio > 0:
        return None
    larger = max(ratio, 1 / ratio)
    if larger >= _PARTS + 0.5:
        return None
    count = round(larger)
    is_near = abs(larger - count) < min(_WHOLE, 2e-3 * count)
    return count if count >= 2 and is_near else None
