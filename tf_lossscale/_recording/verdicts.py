"""What a comparison can result in, and up to which errors numbers count as equal."""

import dataclasses
import enum
from typing import Optional, Tuple

__all__ = ["EARLY", "ENOUGH", "Finding", "Tolerances", "Verdict"]


class Verdict(enum.Enum):
    """The result of a comparison; the value is the exit status."""

    IDENTICAL = ("identical", 0)
    SAME = ("same", 0)
    ALIKE = ("alike", 0)
    DIFFERENT = ("different", 1)
    TOO_SHORT = ("too short to judge", 1)
    NOT_COMPARABLE = ("cannot be compared", 2)

    @property
    def status(self) -> int:
        """The exit status."""
        return self.value[1]


Finding = Optional[Tuple[Verdict, str, Optional[int]]]
"""A verdict, its sentence, and the step in which the runs diverge; None if not decided yet."""


@dataclasses.dataclass
class Tolerances:
    """Relative errors up to which numbers count as equal.

    Attributes:
      first_loss: of the loss of the first step.
      early_loss: of losses in the first `EARLY` steps.
      loss: of later losses, up to the step where the runs part.
      norm: of gradient norms, up to that step.
      mean_loss: of the mean difference of the smoothed losses after that step.
    """

    first_loss: float = 1e-3
    early_loss: float = 1e-3
    loss: float = 2e-2
    norm: float = 5e-2
    mean_loss: float = 6e-2

    def widened(self, other: "Tolerances") -> "Tolerances":
        """Returns the larger of both values of each tolerance."""
        names = [field.name for field in dataclasses.fields(self)]
        return Tolerances(
            **{name: max(getattr(self, name), getattr(other, name)) for name in names}
        )


EARLY = 20
ENOUGH = 200
"""The number of steps after the runs part that a comparison of means needs."""
