"""The smallest value of a dynamic loss scale, which programs may lower."""

import functools
import math
from typing import Any, Callable, Dict, SupportsFloat

MINIMUM = 1.0
"""That of TensorFlow's classes, except the class of Keras 3, which has none."""

SMALLEST = 2.0**-126
"""Below this float32, devices round to 0, and no step would ever be applied again."""


def takes_minimum_scale(init: Callable[..., None]) -> Callable[..., None]:
    """Decorates a constructor, which also takes `minimum_scale`, by keyword.

    The signature stays as in TensorFlow's class, which has no such argument.
    """

    @functools.wraps(init)
    def with_minimum(self: Any, *args: object, **kwargs: Any) -> None:
        if "minimum_scale" in kwargs:
            self.__dict__["_minimum_scale"] = _checked(kwargs.pop("minimum_scale"))
        init(self, *args, **kwargs)

    return with_minimum


def minimum_of(loss_scale: object) -> float:
    """Returns the minimum of a loss scale or manager, which may be TensorFlow's."""
    return float(getattr(loss_scale, "_minimum_scale", MINIMUM))


def minimum_in_config(loss_scale: object) -> Dict[str, float]:
    """Returns what a configuration has and TensorFlow's class does not: nothing as a rule."""
    minimum = minimum_of(loss_scale)
    return {} if minimum == MINIMUM else {"minimum_scale": minimum}


def refuse_minimum_above(initial_scale: float, minimum: float) -> None:
    """Raises a ValueError if the first skipped step would increase the loss scale.

    Except to 1, which TensorFlow's classes do as well.
    """
    if minimum > max(initial_scale, MINIMUM):
        raise ValueError(
            f"minimum_scale is {minimum}, above the initial loss scale, {initial_scale}: a skipped "
            "step would increase the loss scale. Pass a smaller minimum_scale."
        )


def _checked(minimum: SupportsFloat) -> float:
    number = float(minimum)
    if not SMALLEST <= number < math.inf:
        raise ValueError(
            "minimum_scale must be a number above 0: the smallest value that a dynamic loss scale "
            f"shrinks to, at least {SMALLEST:.3g} as float32. Got: {minimum!r}"
        )
    return number
