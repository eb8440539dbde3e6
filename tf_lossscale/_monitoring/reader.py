"""Reads the counters on the host, and decides when what they show deserves a warning."""

import math
import warnings
from typing import Any, NamedTuple, Optional

from tf_lossscale._monitoring.watcher import Counters, StepCounter, Values, current_scale
from tf_lossscale._versions.base import tf, tf1
from tf_lossscale._versions.graphs import in_eager_mode
from tf_lossscale._versions.keras import keras_session

__all__ = ["Reader", "Reading", "Warner"]

_MINIMUM = 1.0
_WITHOUT_EFFECT = 2.0**100
"""A loss scale that no scaled gradient of float16 survives."""


class Reading(NamedTuple):
    """What was read.

    Attributes:
      values: the counters.
      bad: name of the first variable with a non-finite gradient in the last skipped step, or None.
      scale: the loss scale.
    """

    values: Values
    bad: Optional[str]
    scale: float


class Warner:
    """Warns once for each series of skipped steps, and once each time the scale is at an end."""

    def __init__(self, after_skips: Optional[int], at_minimum: bool) -> None:
        self._after_skips = after_skips
        self._at_minimum = at_minimum
        self._longest = 0
        self._was_long = False
        self._was_at_minimum = False
        self._was_without_effect = False
        self._skipped = 0

    def see(self, reading: Reading) -> None:
        """Warns if there is a reason to."""
        messages = (
            self._of_skips(reading),
            self._of_minimum(reading),
            self._of_no_effect(reading),
        )
        for message in messages:
            if message:
                warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _of_skips(self, reading: Reading) -> str:
        if self._after_skips is None:
            return ""
        values = reading.values
        was_long, longest = self._was_long, self._longest
        self._was_long = values.in_a_row >= self._after_skips
        self._longest = max(longest, values.longest)
        if was_long:
            return ""
        end = (
            f"({values.skipped} of {values.steps} in all), because gradients were not finite. "
            f"{_cause(reading)} The loss scale is {reading.scale:g}."
        )
        if self._was_long:
            return f"The last {values.in_a_row} steps were skipped {end}"
        if values.longest > longest and values.longest >= self._after_skips:
            return f"{values.longest} steps in a row were skipped since the last reading {end}"
        return ""

    def _of_minimum(self, reading: Reading) -> str:
        values, scale = reading.values, reading.scale
        was_at_minimum = self._was_at_minimum
        self._was_at_minimum = self._at_minimum and scale <= _MINIMUM and values.skipped > 0
        if was_at_minimum or not self._was_at_minimum:
            return ""
        return (
            f"The loss scale is at its minimum, {scale:g}, after {values.skipped} of "
            f"{values.steps} steps were skipped. It cannot shrink any further, so the gradients "
            f"themselves are not finite, or too large for float16. {_cause(reading)}"
        )

    def _of_no_effect(self, reading: Reading) -> str:
        was_without, skipped = self._was_without_effect, self._skipped
        self._was_without_effect = reading.scale > _WITHOUT_EFFECT
        self._skipped = reading.values.skipped
        # A skipped step shows that the scale does reach the gradients.
        if was_without or not self._was_without_effect or self._skipped > skipped:
            return ""
        return (
            f"The loss scale has grown to 2^{math.log2(reading.scale):.0f} without a skipped step, "
            "so scaling has no effect: float16 gradients of a loss that is scaled like this would "
            "not be finite. Either the loss is not scaled before its gradients are computed, or "
            "the model computes in float32 and needs no loss scale."
        )


def _cause(reading: Reading) -> str:
    """Returns a sentence on the last skipped step."""
    if reading.bad is None:
        return (
            "All gradients were finite before the inner optimizer transformed them, in the last "
            "skipped step."
        )
    if reading.values.all_bad:
        return (
            f"None of the {reading.values.all_bad} variables had a finite gradient in the last "
            "skipped step, so the cause is not one variable: look for an infinity or a NaN in the "
            "loss, or in what it is computed from."
        )
    return f"First variable with a non-finite gradient in the last skipped step: {reading.bad}."


class Reader:
    """Reads the counters of one optimizer.

    Attributes:
      optimizer: the optimizer.
      every: number of steps after which to read.
    """

    def __init__(self, optimizer: Any, counter: StepCounter, warner: Warner, every: int) -> None:
        self.optimizer = optimizer
        self.every = every
        self._counter = counter
        self._warner = warner
        self._last: Optional[Reading] = None

    def read(self, session: Optional[Any] = None) -> Reading:
        """Reads the counters, and warns if there is a reason to."""
        reading = self.read_or_none(session)
        if reading is None:
            raise RuntimeError(
                "The Monitor has counted no step: no step was built since it was created. Create "
                "it before minimize() or apply_gradients() builds the step."
            )
        return reading

    def read_or_none(self, session: Optional[Any] = None) -> Optional[Reading]:
        """The same, but returns None if no step was built."""
        if not tf.executing_eagerly() and tf1.get_default_graph().building_function:
            raise RuntimeError(
                "The counts of a Monitor cannot be read within a tf.function: that would happen "
                "only once, when it is traced. Read them after the call."
            )
        session = session or tf1.get_default_session()
        graphs = self._counter.graphs()
        if session is None and not tf.executing_eagerly() and None not in graphs:
            session = keras_session(self.optimizer)
        if session is not None and session.graph in graphs:
            return self._see(self._counter.counters(session.graph), session)
        if None in graphs:
            return self._see(self._counter.counters(None), None)
        if not graphs:
            return None
        if self._last is not None:
            return self._last
        raise RuntimeError(
            "The steps of this optimizer run in a graph. Read the counts within "
            "`with session.as_default():`, or pass the Session: monitor.counts(session)."
        )

    def _see(self, counters: Optional[Counters], session: Any) -> Optional[Reading]:
        if counters is None:
            return None
        values = counters.values(session)
        if counters.eager:
            with in_eager_mode():
                scale = float(current_scale(self.optimizer))
        else:
            scale = float(session.run(counters.scale))
        bad = None if values.bad is None else self._counter.name(values.bad)
        self._last = Reading(values, bad, scale)
        self._warner.see(self._last)
        return self._last
