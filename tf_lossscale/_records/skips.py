"""How many skipped steps the update of a dynamic loss scale explains."""

import math

from tf_lossscale._records.format import ScaleParameters

HANDFUL = 3
"""How many times a scale shrinks below one that worked in correct runs, besides its growths.

Gradients grow when training begins.
"""
_DYNAMIC = ("dynamic", "exponential", "keras3")


def is_dynamic(parameters: ScaleParameters) -> bool:
    return parameters.rule in _DYNAMIC


def after_growths(steps: int, parameters: ScaleParameters) -> float:
    """Returns how many of these steps may be skipped because the scale has grown too large.

    It may be too large after each growth. Several steps are skipped if that shrinks it only after
    several ones, or by less than it has grown.
    """
    if parameters.growth_steps < 1:
        return math.inf
    growths = steps / parameters.growth_steps
    return growths * max(1, parameters.shrink_steps) * _shrinkings(parameters)


def _shrinkings(parameters: ScaleParameters) -> float:
    """Returns how many times the scale shrinks to take back one growth; at least 1."""
    growth, shrink = parameters.growth_factor, parameters.shrink_factor
    if not (growth > 1 and 0 < shrink < 1):
        return 1.0
    return max(1.0, math.log(growth) / -math.log(shrink))


def are_too_many(skipped: int, steps: int, parameters: ScaleParameters) -> bool:
    """Returns whether more steps were skipped than a scale that grows explains.

    `skipped` does not count those that brought the scale down from its initial value.
    """
    handful = HANDFUL * max(1, parameters.shrink_steps)
    return skipped > after_growths(steps, parameters) + handful
