"""What one record shows by itself: steps that were skipped or not finite, and the loss scale."""

import collections
import dataclasses
import math
from dataclasses import field
from typing import Counter, Dict, List, Optional, Sequence, Tuple

from tf_lossscale._records import advice, skips
from tf_lossscale._records.format import COLUMNS, OptimizerRecord, ScaleParameters
from tf_lossscale._types import Json, JsonObject

_EACH = 3
"""How many variables a line names."""


class Series:
    """Steps of one kind: how many, and where they begin."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Optional[int] = None
        self.last: Optional[int] = None
        self._in_a_row = 0
        self.longest = 0

    def add(self, step: int) -> None:
        self.count += 1
        self.first = step if self.first is None else self.first
        self._in_a_row = self._in_a_row + 1 if self.last == step - 1 else 1
        self.longest = max(self.longest, self._in_a_row)
        self.last = step

    def place(self, last_step: Optional[int]) -> str:
        """Returns where the steps are, such as `from step 60 on`; nothing if there are none."""
        if self.first is None or self.last is None:
            return ""
        if self.count == 1:
            return f"in step {self.first}"
        is_whole = self.count == self.last - self.first + 1
        if is_whole and self.last == last_step:
            return f"from step {self.first} on"
        if is_whole:
            return f"in steps {self.first} to {self.last}"
        return f"the first in step {self.first}, the last in step {self.last}"


class Bad:
    """Variables whose gradients were not finite, over some steps.

    Attributes:
      first: how often each variable was the first one.
      counts: in how many steps so many variables had such a gradient.
    """

    def __init__(self) -> None:
        self.first: Counter[int] = collections.Counter()
        self.counts: Counter[int] = collections.Counter()

    def __bool__(self) -> bool:
        return bool(self.first)

    def add(self, first: int, count: Optional[int]) -> None:
        self.first[first] += 1
        if count is not None:
            self.counts[count] += 1


@dataclasses.dataclass
class Summary:
    """The steps of one optimizer, counted as what they are.

    Attributes:
      cls: the name of its class.
      parameters: how its loss scale is updated.
      names: its variables.
      steps: the number of steps.
      skipped: the steps that were not applied.
      applied_not_finite: the steps whose gradients were not finite, and which were applied.
      unknown: the steps whose gradients were not finite, if the record does not show whether they
        were applied.
      below: the steps that were not applied, with half of a scale that had worked before, or less.
      loss: the steps whose loss was not finite.
      bad: how often each variable was the first one with a gradient that was not finite, and in how
        many steps so many variables had one.
      bad_below: the same in the steps of `below`.
      first_bad: the number of the variable in the first of these steps.
      all_bad: in how many of them no variable had a finite gradient.
      scales_no_loss: whether no loss was scaled through the optimizer, as far as that is known.
    """

    cls: str = "unknown"
    parameters: ScaleParameters = field(default_factory=ScaleParameters)
    names: Sequence[str] = ()
    steps: int = 0
    first_step: Optional[int] = None
    last_step: Optional[int] = None
    skipped: Series = field(default_factory=Series)
    applied_not_finite: Series = field(default_factory=Series)
    unknown: Series = field(default_factory=Series)
    below: Series = field(default_factory=Series)
    loss: Series = field(default_factory=Series)
    first_bad: Optional[int] = None
    bad: Bad = field(default_factory=Bad)
    bad_below: Bad = field(default_factory=Bad)
    all_bad: int = 0
    scales_no_loss: bool = False
    scale: Optional[float] = None
    scales: Optional[Tuple[float, float]] = None
    largest_that_worked: Optional[float] = None

    @classmethod
    def of(cls, record: OptimizerRecord) -> "Summary":
        """Returns the summary of an optimizer in a record that was read."""
        summary = cls.begin(record)
        names = [column.name for column in COLUMNS if column.name in _SUMMED]
        for step, values in zip(record.steps, zip(*(getattr(record, name) for name in names))):
            summary.add(step, dict(zip(names, values)))
        return summary

    @classmethod
    def begin(cls, record: OptimizerRecord) -> "Summary":
        """Returns the summary of an optimizer, without its steps."""
        summary = cls(record.cls, record.scale, record.names)
        summary.scales_no_loss = record.scales_no_loss
        return summary

    @property
    def rule(self) -> str:
        """The rule of the loss scale."""
        return self.parameters.rule

    def add(self, step: int, values: JsonObject) -> None:
        """Counts a step with these values of `COLUMNS`, by their names."""
        self.steps += 1
        self.first_step = step if self.first_step is None else self.first_step
        self.last_step = step
        applied, bad = values.get("applied"), values.get("bad")
        is_finite = values.get("finite") is not False and bad is None
        if applied is False:
            self.skipped.add(step)
        elif not is_finite:
            (self.applied_not_finite if applied else self.unknown).add(step)
        loss = values.get("loss")
        if loss is not None and not math.isfinite(loss):
            self.loss.add(step)
        is_below = self._add_attempt(step, applied, is_finite, values.get("scales"))
        self._add_bad(bad, values.get("bad_count"), is_below)
        self._add_scale(values.get("scales"))

    def _add_attempt(
        self, step: int, applied: Optional[bool], is_finite: bool, scale: Optional[float]
    ) -> bool:
        """Counts whether the step worked with its scale; returns whether it is one of `below`."""
        largest = self.largest_that_worked
        if scale is None:
            return False
        if is_finite and applied is not False:
            self.largest_that_worked = scale if largest is None else max(largest, scale)
            return False
        if applied or largest is None or 2 * scale > largest:
            return False
        self.below.add(step)
        return True

    def _add_bad(self, bad: Optional[int], count: Optional[int], is_below: bool) -> None:
        if bad is None:
            return
        self.first_bad = bad if self.first_bad is None else self.first_bad
        self.bad.add(bad, count)
        self.all_bad += bool(self.names) and count == len(self.names)
        if is_below:
            self.bad_below.add(bad, count)

    def _add_scale(self, scale: Optional[float]) -> None:
        if scale is None:
            return
        self.scale = scale
        low, high = (scale, scale) if self.scales is None else self.scales
        self.scales = min(low, scale), max(high, scale)

    def name(self, variable: int) -> str:
        known = 0 <= variable < len(self.names)
        return self.names[variable] if known else f"variable {variable}"

    def of_bad(self) -> List[Tuple[str, int]]:
        """Returns how often each variable was the first bad one, the most frequent first."""
        return [(self.name(variable), count) for variable, count in self.bad.first.most_common()]

    def as_json(self) -> JsonObject:
        """Returns the summary as JSON values."""
        low, high = (None, None) if self.scales is None else self.scales
        return {
            "class": self.cls,
            "rule": self.rule,
            "steps": self.steps,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "skipped": _series_as_json(self.skipped),
            "applied_not_finite": _series_as_json(self.applied_not_finite),
            "not_finite_unknown_whether_applied": _series_as_json(self.unknown),
            "loss_not_finite": _series_as_json(self.loss),
            "scale": {"now": _number(self.scale), "lowest": _number(low), "highest": _number(high)},
            "first_bad": None if self.first_bad is None else self.name(self.first_bad),
            "bad": [{"variable": name, "steps": count} for name, count in self.of_bad()],
            "no_gradient_finite": self.all_bad,
            "no_loss_scaled": self.scales_no_loss,
        }

    def rows(self) -> List[Tuple[str, str]]:
        """Returns what there is to say, as pairs of a title and a text."""
        found = [
            ("skipped", self._counted(self.skipped)),
            ("applied though not finite", self._counted(self.applied_not_finite)),
        ]
        if self.unknown.count:
            found.append(("not finite, applied or not", self._counted(self.unknown)))
        if self.loss.count:
            found.append(("loss not finite", self._counted(self.loss)))
        found.append(("loss scale", self._scale()))
        for number, (name, count) in enumerate(self.of_bad()[:_EACH]):
            title = "" if number else "first not finite"
            found.append((title, f"{name}, in {_steps(count)}"))
        if len(self.bad.first) > _EACH:
            found.append(("", f"and {len(self.bad.first) - _EACH} other variables"))
        if self.all_bad:
            found.append(("no gradient finite", f"in {_steps(self.all_bad)}"))
        if self.scales_no_loss:
            found.append(("scaled losses", "none"))
        return found

    def _counted(self, series: Series) -> str:
        place = series.place(self.last_step)
        row = f"; at most {series.longest} in a row" if series.longest > 1 else ""
        return f"{series.count}" + (f", {place}{row}" if place else "")

    def _scale(self) -> str:
        if self.scale is None or self.scales is None:
            return "unknown"
        low, high = self.scales
        if low == high:
            return f"{self.scale:g} in all steps"
        return f"{self.scale:g} in the last step, from {low:g} to {high:g}"

    def sentence(self) -> str:
        """Returns one line about the run."""
        parts = [] if self.skipped.count else ["none skipped"]
        for series, words in (
            (self.skipped, "skipped"),
            (self.applied_not_finite, "applied though not finite"),
            (self.unknown, "not finite"),
        ):
            if series.count:
                parts.append(f"{series.count} {words} ({series.place(self.last_step)})")
        if self.first_bad is not None:
            parts.append(f"first in {self.name(self.first_bad)}")
        if self.scale is not None:
            parts.append(f"loss scale {self.scale:g}")
        return ", ".join(parts)

    def advice(self) -> str:
        """Returns one line on what to look at next; nothing if there is no reason to."""
        if self.applied_not_finite.count:
            return (
                "gradients that are not finite were applied, as a fixed loss scale does: use a "
                "dynamic one, and look at the backward pass from "
                f"{self.name(self.first_bad or 0)} on"
            )
        not_finite = self.skipped.count + self.unknown.count
        of_loss = f"the loss itself is not finite, so {advice.FORWARD_PASS}"
        # No loss scale makes the loss infinite or NaN, which is recorded before it is scaled.
        if 2 * self.loss.count > not_finite:
            return of_loss
        return self._of_skipped() or (of_loss if self.loss.count else self._of_scaling())

    def _of_skipped(self) -> str:
        """Returns what to look at if more steps were skipped than the loss scale explains."""
        if not self.skipped.count:
            return ""
        minimum = self.parameters.minimum_scale
        bad = self.bad
        if self.rule != "fixed" and self.scale is not None and self.scale <= minimum:
            cause = advice.of_minimum(self.scale, minimum)
        elif 2 * self.skipped.count > self.steps and not self._only_began_with_skips():
            cause = "most steps were skipped"
        elif self._are_too_many_below():
            cause, bad = advice.BELOW_WORKING, self.bad_below or self.bad
        else:
            return ""
        if not self.bad:
            return f"{cause}: {advice.NOT_SEEN}"
        first = self.name(bad.first.most_common(1)[0][0])
        count = bad.counts.most_common(1)[0][0] if bad.counts else None
        return f"{cause}: {advice.of_gradients(first, count, len(self.names))}"

    def _are_too_many_below(self) -> bool:
        is_dynamic = skips.is_dynamic(self.parameters)
        return is_dynamic and skips.are_too_many(self.below.count, self.steps, self.parameters)

    def doubt(self) -> str:
        """Returns what is known of steps that were not applied, if there is no advice on them.

        Nothing if a dynamic scale explains them: it came down from its initial value, or had grown.
        """
        not_applied = self.skipped.count + self.unknown.count
        if not skips.is_dynamic(self.parameters) or self.scale is None:
            return advice.doubt_of(_steps(not_applied)) if not_applied else ""
        below = self.below.count
        if below <= skips.after_growths(self.steps, self.parameters):
            return ""
        place = self.below.place(self.last_step)
        what = f"{_steps(below)} ({place}), with at most half of a loss scale that had worked"
        return advice.doubt_of(what)

    def _only_began_with_skips(self) -> bool:
        """Whether the steps after the first skipped ones were applied: the scale was too large."""
        skipped = self.skipped
        is_one_series = skipped.longest == skipped.count
        return is_one_series and skipped.first == self.first_step and skipped.last != self.last_step

    def _of_scaling(self) -> str:
        has_grown = self.scale is not None and advice.WITHOUT_EFFECT < self.scale < math.inf
        if has_grown and self.scale is not None and not self.skipped.count:
            return advice.without_effect(self.scale)
        if self.scales_no_loss and self.steps:
            return advice.SCALES_NO_LOSS
        return ""


_SUMMED = ("loss", "scales", "finite", "applied", "bad", "bad_count")


def _series_as_json(series: Series) -> Dict[str, Optional[int]]:
    return {
        "steps": series.count,
        "first": series.first,
        "last": series.last,
        "longest_in_a_row": series.longest,
    }


def _number(value: Optional[float]) -> Json:
    """Returns a value of JSON, which has no infinities and no NaN."""
    return value if value is None or math.isfinite(value) else str(value)


def _steps(count: int) -> str:
    return f"{count} step" + ("" if count == 1 else "s")


def lines_at_the_end(path: str, summaries: Sequence[Summary]) -> List[str]:
    """Returns two lines about a record for the end of its run: what it holds, and what is next."""
    return [
        shortened(f"recorded {_steps_of(summaries)} in {path}: {_sentences(summaries)}."),
        shortened(_advice(summaries))
        or "`tf-lossscale compare OLD NEW` needs two runs from the same weights, on the same data, "
        "without dropout; `tf-lossscale show FILE` shows one.",
    ]


def lines_of_monitor(prefix: str, summaries: Sequence[Summary]) -> List[str]:
    """Returns the same two lines for a run that was not recorded."""
    doubts = (summary.doubt() for summary in summaries)
    what = _advice(summaries) or next(filter(None, doubts), advice.NO_PROBLEM)
    return [
        shortened(f"{prefix}{_steps_of(summaries)}: {_sentences(summaries)}."),
        shortened(f"{prefix}{what}."),
    ]


def _steps_of(summaries: Sequence[Summary]) -> str:
    return _steps(sum(summary.steps for summary in summaries))


def _sentences(summaries: Sequence[Summary]) -> str:
    parts = [summary.sentence() for summary in summaries]
    if len(parts) > 1:
        parts = [f"optimizer {number}: {part}" for number, part in enumerate(parts)]
    return "; ".join(parts)


def _advice(summaries: Sequence[Summary]) -> str:
    return next(filter(None, (summary.advice() for summary in summaries)), "")


LONGEST = 300
"""How many characters a line of the output has at most."""


def shortened(line: str, length: int = LONGEST) -> str:
    """Returns a line, without what is too long of it."""
    return line if len(line) <= length else line[: length - 3] + "..."
