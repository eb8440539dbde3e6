"""Decides when what the counters show deserves a warning."""

import warnings
from typing import Optional

from tf_lossscale._monitoring.counters import Values

__all__ = ["Warner"]

_MINIMUM = 1.0


class Warner:
    """Warns once for each series of skipped steps, and once each time the scale is at its minimum.

    Args:
      after_skips: number of skipped steps in a row from which it warns; None never warns.
      at_minimum: whether to warn of a loss scale at its minimum.
    """

    def __init__(self, after_skips: Optional[int], at_minimum: bool) -> None:
        self._after_skips = after_skips
        self._at_minimum = at_minimum
        self._longest = 0
        self._was_long = False
        self._was_at_minimum = False

    def see(self, values: Values, bad: Optional[str], scale: float) -> None:
        """Warns if there is a reason to.

        Args:
          values: the counters.
          bad: name of the first variable with a non-finite gradient in the last skipped step.
          scale: the loss scale.
        """
        for message in (self._of_skips(values, bad, scale), self._of_minimum(values, bad, scale)):
            if message:
                warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _of_skips(self, values: Values, bad: Optional[str], scale: float) -> str:
        if self._after_skips is None:
            return ""
        was_long, longest = self._was_long, self._longest
        self._was_long = values.in_a_row >= self._after_skips
        self._longest = max(longest, values.longest)
        if was_long:
            return ""
        end = (
            f"({values.skipped} of {values.steps} in all), because gradients were not finite. "
            f"{_where(bad)} The loss scale is {scale:g}."
        )
        if self._was_long:
            return f"The last {values.in_a_row} steps were skipped {end}"
        if values.longest > longest and values.longest >= self._after_skips:
            return f"{values.longest} steps in a row were skipped since the last reading {end}"
        return ""

    def _of_minimum(self, values: Values, bad: Optional[str], scale: float) -> str:
        was_at_minimum = self._was_at_minimum
        self._was_at_minimum = self._at_minimum and scale <= _MINIMUM and values.skipped > 0
        if was_at_minimum or not self._was_at_minimum:
            return ""
        return (
            f"The loss scale is at its minimum, {scale:g}, after {values.skipped} of "
            f"{values.steps} steps were skipped. It cannot shrink any further, so the gradients "
            f"themselves are not finite, or too large for float16. {_where(bad)}"
        )


def _where(bad: Optional[str]) -> str:
    if bad is None:
        return (
            "All gradients were finite before the inner optimizer transformed them, in the last "
            "skipped step."
        )
    return f"First variable with a non-finite gradient in the last skipped step: {bad}."
