"""Replays the loss scale of a run from its own skips.

The scale depends only on the steps before it, so each run can be tested by itself: a correct run
follows its update rule however chaotic the training is, and a wrong parameter shows at once. Each
step starts from the recorded scale, so that rounding errors do not accumulate.
"""

import dataclasses
import math
import struct
from typing import List, NamedTuple, Optional, Tuple

from tf_lossscale._records.format import OptimizerRecord, ScaleParameters

# Graphs divide by a constant by multiplying with its inverse, which can change the last bit.
_TOLERANCE = 1e-6
_SMALLEST_NORMAL = 2.0**-126
_WORDS = {
    True: ("finite", "the growth factor", "growth", "grows"),
    False: ("skipped", "the factor of decrease", "a decrease", "shrinks"),
}
"""What follows finite and skipped steps."""


class Mismatch(NamedTuple):
    """A scale that differs from the update rule, and the parameter that is likely to differ."""

    step: int
    recorded: float
    expected: float
    parameter: str


def replay(record: OptimizerRecord) -> Optional[Mismatch]:
    """Returns the first scale of a run that differs from its update rule; None if there is none.

    Steps whose scale or finiteness is unknown, and gaps, are not tested; after them the counts are
    unknown until the scale changes.
    """
    parameters = record.scale
    if parameters.rule == "unknown":
        return None
    scales, finite, steps = record.scales, record.finite, record.steps
    counts: Optional[Tuple[int, int]] = None
    if steps[0] == 0:
        counts = parameters.good_steps, parameters.bad_steps
        initial, first = parameters.initial_scale, scales[0]
        if initial is not None and first is not None and not same_scale(_float32(initial), first):
            return Mismatch(0, first, initial, "the initial scale")
    for index in range(len(steps) - 1):
        scale, following, is_finite = scales[index], scales[index + 1], finite[index]
        is_next = steps[index + 1] == steps[index] + 1
        if scale is None or following is None or is_finite is None or not is_next:
            counts = None
        elif counts is not None:
            expected, counts = _next(parameters, scale, is_finite, *counts)
            if not same_scale(expected, following):
                cause = _cause(parameters, scale, following, expected, is_finite)
                return Mismatch(steps[index + 1], following, expected, cause)
        # Both counts are zero after a change, whatever they were before.
        elif not same_scale(scale, following):
            counts = 0, 0
    return None


def same_scale(one: float, other: float) -> bool:
    both_are_nan = math.isnan(one) and math.isnan(other)
    return both_are_nan or math.isclose(one, other, rel_tol=_TOLERANCE)


def _next(
    parameters: ScaleParameters, scale: float, finite: bool, good: int, bad: int
) -> Tuple[float, Tuple[int, int]]:
    """Returns the scale and the counts of finite and non-finite steps after a step.

    This repeats in Python what the loss scales do in TensorFlow, so that each step of a record can
    be checked without it.
    """
    if parameters.rule == "fixed":
        return scale, (good, bad)
    if finite:
        if not _grows(parameters, good + 1):
            return scale, (good + 1, bad)
        return _grown(parameters, scale), (0, 0)
    if parameters.rule == "exponential" and bad + 1 < parameters.shrink_steps:
        return scale, (0, bad + 1)
    return _shrunk(parameters, scale), (0, 0)


def _grows(parameters: ScaleParameters, good: int) -> bool:
    # Keras 3 waits for exactly this count; the other classes also grow above it.
    if parameters.rule == "keras3":
        return good == parameters.growth_steps
    return good >= parameters.growth_steps


def _grown(parameters: ScaleParameters, scale: float) -> float:
    grown = _float32(scale * _float32(parameters.growth_factor))
    return grown if math.isfinite(grown) or parameters.rule == "keras3" else scale


def _shrunk(parameters: ScaleParameters, scale: float) -> float:
    shrunk = _float32(scale * _float32(parameters.shrink_factor))
    if parameters.rule == "keras3":
        is_zero = abs(shrunk) < _SMALLEST_NORMAL
        return 0.0 if is_zero else shrunk
    minimum = _float32(parameters.minimum_scale)
    if parameters.rule == "exponential":
        return shrunk if shrunk > minimum else minimum  # which NaN becomes
    return minimum if shrunk < minimum else shrunk  # NaN stays NaN


def _cause(
    parameters: ScaleParameters, scale: float, following: float, expected: float, finite: bool
) -> str:
    """Returns which parameter of the rule explains that the scale became `following` instead."""
    is_below = following < expected and same_scale(expected, _float32(parameters.minimum_scale))
    if not finite and parameters.rule != "keras3" and is_below:
        return "the smallest scale"
    kind, factor, change, verb = _WORDS[finite]
    count = f"the number of {kind} steps before {change}"
    if same_scale(scale, following):
        return f"{count} (it {verb} later, or not at all)"
    should_change = not same_scale(scale, expected)
    if should_change:
        return factor
    is_right_way = following > scale if finite else following < scale
    if is_right_way:
        return f"{count} (it {verb} earlier)"
    _, _, _, verb_of_other_kind = _WORDS[not finite]
    return f"the update rule: the scale {verb_of_other_kind} after a {kind} step"


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def parameters_that_differ(one: ScaleParameters, other: ScaleParameters) -> List[str]:
    """Returns a phrase for each parameter that two runs declare differently."""
    found = []
    if (one.rule == "fixed") != (other.rule == "fixed"):
        found.append(f"rule {one.rule} and {other.rule}")
    rules = {one.rule, other.rule}
    # The class of Keras 3 has no minimum.
    left_out = {"rule", "minimum_scale"} if "keras3" in rules else {"rule"}
    names = [
        field.name for field in dataclasses.fields(ScaleParameters) if field.name not in left_out
    ]
    for name in ["initial_scale"] if rules & {"fixed", "unknown"} else names:
        value, other_value = getattr(one, name), getattr(other, name)
        if value is None or other_value is None:
            continue
        if not same_scale(value, other_value):
            found.append(f"{name} {value:g} and {other_value:g}")
    return found
