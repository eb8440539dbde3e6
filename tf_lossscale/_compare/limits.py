"""The one table of the thresholds of `compare`, each with its unit and where it comes from.

Whether two runs differ by more than rounding is measured by runs of the old program itself, so
these are factors of what is measured. `tests/shim/recording/README.md` has the pairs of runs.
"""

from typing import Dict, NamedTuple, Optional


class Limit(NamedTuple):
    """A threshold."""

    value: float
    unit: str
    source: str


WINDOW = Limit(10, "steps", "differences of single steps vary too much to be compared")
BEGINNING = Limit(
    240,
    "steps",
    "the length of the runs that the factors come from; in longer ones, rounding carries each run "
    "as far as it can, and the mean over all steps hides what differs at first",
)
LEAVES = Limit(
    4.0,
    "largest distance between two runs of the old program, in this window and its neighbors",
    "correct upgrades reach 1.8; the median of mistakes is 139",
)
LEAVES_FEW = Limit(
    8.0,
    "the same, with fewer than 3 other runs of the old program",
    "with 2 of the 5 runs, correct upgrades reach 5.5",
)
FEW_RUNS = Limit(3, "other runs of the old program", "")
LEAVES_ON_AVERAGE = Limit(
    2.5,
    "mean distance between two runs of the old program, geometric mean over all windows",
    "correct upgrades reach 1.8",
)
AVERAGED = Limit(
    8,
    "windows",
    "half as many as in the shortest runs that the factor comes from; with 3 windows, in a "
    "program whose norms are clipped in most steps, a correct upgrade reaches 3.5",
)
FIRST = Limit(
    10.0,
    "largest difference that a disturbed run has before its first update",
    "with five of them, correct upgrades reach 0.9",
)
FIRST_AT_LEAST = Limit(
    0.25,
    "limit without disturbed runs",
    "the largest of two disturbed differences can be 20 times smaller than the largest of five",
)
SKIPS_AT_LEAST = Limit(3, "skipped steps outside of the range of the old program's runs", "")
SKIPS = Limit(0.25, "of the skipped steps of the old program", "")
SCALE_LEVEL = Limit(0.75, "mean of log2 of the scale", "")
UNSTEADY = Limit(0.1, "relative difference of the losses that would not show", "")
FEW = Limit(20, "steps", "two windows are the fewest that have a neighbor")
RATE = Limit(1e-5, "relative difference of learning rates", "schedules are computed in float32")
SETTING = Limit(1e-6, "relative difference of settings", "Keras stores them in float32")
LEAST_LOSS = Limit(0.1, "of the first loss", "what remains of a loss of nearly zero varies freely")
FLOOR = Limit(1e-6, "relative difference", "some rounding errors of float32 in a sum")

_FIRST_LOSS = {
    "float16": Limit(1e-3, "relative difference", "correct upgrades reach 1.2e-4"),
    "bfloat16": Limit(8e-3, "relative difference", "as for float16, with 8 times larger errors"),
    "float32": Limit(2e-5, "relative difference", "correct upgrades reach 1e-6"),
}
_FIRST_NORM = {
    "float16": Limit(2e-2, "relative difference", "correct upgrades reach 7.9e-3"),
    "bfloat16": Limit(1.6e-1, "relative difference", "as for float16, with 8 times larger errors"),
    "float32": Limit(4e-4, "relative difference", "correct upgrades reach 1e-5"),
}


def first_loss(dtype: Optional[str]) -> Limit:
    """Returns by how much losses from equal weights may differ, computed in this dtype."""
    return _of_dtype(_FIRST_LOSS, dtype)


def first_norm(dtype: Optional[str]) -> Limit:
    """Returns the same for gradient norms."""
    return _of_dtype(_FIRST_NORM, dtype)


def _of_dtype(limits: Dict[str, Limit], dtype: Optional[str]) -> Limit:
    # If it is not known, the one that most programs with a loss scale have.
    return limits.get(dtype or "", limits["float16"])
