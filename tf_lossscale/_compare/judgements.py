"""Judgements about two runs, as data: what was found, where, by which numbers, and why.

The judges make them, and `rendering` turns them into text, JSON and a page.
"""

import dataclasses
import enum
from typing import Any, Dict, List, Optional

from tf_lossscale._types import JsonObject


class Verdict(enum.Enum):
    """The result of a comparison; the value is its name and the exit status."""

    IDENTICAL = ("identical", 0)
    SAME = ("same", 0)
    ALIKE = ("alike", 0)
    DIFFERENT = ("different", 1)
    UNDECIDED = ("not shown to be the same", 1)
    NOT_COMPARABLE = ("cannot be compared", 2)

    @property
    def status(self) -> int:
        return self.value[1]


class Kind(enum.Enum):
    """What a judgement says; the value is its name in JSON."""

    # The records are not of the same training.
    OTHER_COUNT = "other number of variables"
    OTHER_SHAPE = "other shape"
    NO_COMMON_STEP = "no common step"
    NO_NUMBERS = "no numbers"
    OTHER_BASELINE = "other baseline"
    # Facts that rounding cannot change.
    WEIGHTS = "initial weights"
    SLOTS = "slots"
    PARAMETERS = "parameters of the loss scale"
    SETTINGS = "settings of the inner optimizer"
    COMPUTED = "dtype of the computation"
    STEPS = "number of steps"
    RATE = "learning rate"
    SCALE_RULE = "rule of the loss scale"
    SCALES_PART = "scales part"
    APPLIED = "applied by one run only"
    FIRST_LOSS = "loss before an update"
    FIRST_NORM = "gradient norm before an update"
    VARIABLE_NORM = "gradient norm of a variable before an update"
    # What the old program's own disturbed runs do not do.
    LEAVES = "leaves the envelope"
    SKIPS = "number of skipped steps"
    # What hinders a verdict.
    CUT_OFF = "cut off"
    BEGINS_LATER = "begins later"
    GAP = "steps missing"
    NUMBERS_MISSING = "numbers missing"
    NOT_UNSCALED_HERE = "unscaled by the old program only"
    NO_BASELINE = "no disturbed runs"
    FEW_STEPS = "few steps"
    NO_SCALE_RUNS = "no run with another loss scale"
    NOTHING_MEASURED = "no losses and no norms to measure"
    UNSTEADY = "the old program varies"
    SCALE_LEVEL = "level of the loss scale"
    # What shows that the runs did the same.
    BITS = "bit-identical"
    WITHIN = "within the envelope"


VERDICTS: Dict[Kind, Verdict] = {
    **dict.fromkeys(
        (
            Kind.OTHER_COUNT,
            Kind.OTHER_SHAPE,
            Kind.NO_COMMON_STEP,
            Kind.NO_NUMBERS,
            Kind.OTHER_BASELINE,
        ),
        Verdict.NOT_COMPARABLE,
    ),
    **dict.fromkeys(
        (
            Kind.CUT_OFF,
            Kind.BEGINS_LATER,
            Kind.GAP,
            Kind.NUMBERS_MISSING,
            Kind.NOT_UNSCALED_HERE,
            Kind.NO_BASELINE,
            Kind.FEW_STEPS,
            Kind.NO_SCALE_RUNS,
            Kind.NOTHING_MEASURED,
            Kind.UNSTEADY,
            Kind.SCALE_LEVEL,
        ),
        Verdict.UNDECIDED,
    ),
    Kind.BITS: Verdict.IDENTICAL,
    Kind.WITHIN: Verdict.SAME,
}
"""The verdict that a judgement leads to; `DIFFERENT` for all others."""


class Cause(enum.Enum):
    """Why runs differ. It is named only if the record of the other run denies it."""

    REDUCED = "gradients made smaller before they are applied"
    NOT_UNSCALED = "not unscaled"
    NOT_SCALED = "unscaled twice, or the loss not scaled"
    SCALED_SQUARED = "scaled or unscaled twice too often"
    SCALED_LOSS = "a scaled loss recorded"
    WHOLE_FACTOR = "sum in place of a mean"
    OTHER_DATA = "other data or forward pass"


@dataclasses.dataclass(frozen=True)
class Judgement:
    """What was found about two runs.

    Attributes:
      kind: what it says.
      step: the number of the first step that it is about.
      evidence: numbers and names, by the words that `rendering` knows them by.
      cause: why, if the records show it.
    """

    kind: Kind
    step: Optional[int] = None
    evidence: JsonObject = dataclasses.field(default_factory=dict)
    cause: Optional[Cause] = None

    @property
    def verdict(self) -> Verdict:
        if self.kind is Kind.WITHIN and self.step is not None:
            return Verdict.ALIKE  # one run skips a step that the other does not
        return VERDICTS.get(self.kind, Verdict.DIFFERENT)


@dataclasses.dataclass
class Comparison:
    """The result for one optimizer.

    Attributes:
      verdict: what follows from the judgements.
      judgements: what was found, the decisive one first.
      runs: both runs, `Runs`; None if they cannot be compared.
    """

    verdict: Verdict
    judgements: List[Judgement]
    runs: Any = None

    @property
    def first(self) -> Judgement:
        return self.judgements[0]

    @property
    def step(self) -> Optional[int]:
        """The first step in which the runs diverge or differ."""
        return self.first.step
