"""Judges by a measure: how far the new run is from the old one, against how far rounding carries.

The old program was recorded again with weights that were disturbed as little as another kernel
would. The distance of two runs is the mean difference of their losses or gradient norms in a window
of steps. If the new run is much farther from the old one than the disturbed runs are from each
other, then rounding is not the reason.
"""

import itertools
import math
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from tf_lossscale._compare import limits
from tf_lossscale._compare.causes import who_reduces
from tf_lossscale._compare.judgements import Cause, Judgement, Kind
from tf_lossscale._compare.runs import Runs, Values, are_positive
from tf_lossscale._records.format import OptimizerRecord

METRICS = ("loss", "norm", "kept")
_SIZE = int(limits.WINDOW.value)


class Window(NamedTuple):
    """The distances in one window of steps.

    `new` is the distance of the new run from the old one. `largest` and `mean` are of all pairs of
    runs of the old program, the largest one also of the windows before and after.
    """

    first: int
    new: float
    largest: float
    mean: float

    @property
    def ratio(self) -> float:
        return self.new / self.largest

    @property
    def ratio_of_mean(self) -> float:
        return self.new / self.mean


class Measure(NamedTuple):
    """What one metric shows."""

    metric: str
    windows: List[Window]

    @property
    def largest(self) -> Window:
        """The window in which the new run is farthest away."""
        return max(self.windows, key=lambda window: window.ratio)

    @property
    def beginning(self) -> List[Window]:
        """The windows before rounding has carried runs as far away as it ever does."""
        return self.windows[: int(limits.BEGINNING.value) // _SIZE]

    @property
    def on_average(self) -> float:
        """The geometric mean of how much farther away the new run is: in all, or at first."""
        means = [
            _geometric_mean([window.ratio_of_mean for window in windows])
            for windows in (self.windows, self.beginning)
        ]
        return max(means)

    @property
    def would_show(self) -> float:
        """The relative difference in the first windows that would just be more than rounding."""
        mean = _geometric_mean([window.mean for window in self.beginning])
        return limits.LEAVES_ON_AVERAGE.value * mean


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(min(sum(map(math.log, values)) / len(values), 100.0))


def measures(runs: Runs) -> List[Measure]:
    """Returns what the metrics show that all records have."""
    found = []
    for metric in METRICS:
        windows = list(_windows(runs, metric))
        if windows:
            found.append(Measure(metric, windows))
    return found


def _windows(runs: Runs, metric: str) -> Iterator[Window]:
    """Yields the windows in which the distance of all runs is known.

    Two runs part at the first step that only one of them skips, and are far apart from there on.
    Until the new run parts from the old one, it is compared with those pairs of runs of the old
    program that have not parted, either. Afterwards, or if there is no such pair any more, it is
    compared with all pairs, if some of these runs had another loss scale, and so skipped other
    steps. Without such runs, nothing says how far it may be, and no more windows are yielded.
    """
    new = _means(runs.differences(metric, runs.old, runs.new))
    everyone = [runs.old, *(again.run for again in runs.again)]
    pairs = [_Pair(runs, metric, *pair) for pair in itertools.combinations(everyone, 2)]
    for index, distance in enumerate(new):
        end = (index + 1) * _SIZE
        if end > runs.part and not runs.has_other_scale:
            return
        alike = _pairs_like_the_new_run(runs, pairs, end)
        here = _known(alike, index, index + 1)
        near = _known(alike, max(index - 1, 0), index + 2)
        if distance is not None and here:
            floor = limits.FLOOR.value
            yield Window(
                first=index * _SIZE,
                new=max(distance, floor),
                largest=max([floor, *near]),
                mean=max(sum(here) / len(here), floor),
            )


def _pairs_like_the_new_run(runs: Runs, pairs: List["_Pair"], end: int) -> List["_Pair"]:
    """Returns the pairs that are as far apart as the new run may be, up to the step `end`."""
    has_parted = end > runs.part
    alike = [pair for pair in pairs if has_parted or end <= pair.part]
    return alike if alike or not runs.has_other_scale else pairs


class _Pair:
    """The distances of two runs of the old program, up to the step that only one of them skips."""

    def __init__(
        self, runs: Runs, metric: str, one: OptimizerRecord, other: OptimizerRecord
    ) -> None:
        self.means = _means(runs.differences(metric, one, other))
        self.part = runs.parting(one, other)


def _means(differences: Values) -> Values:
    """Returns the mean of the known differences in each window."""
    found: Values = []
    for first in range(0, len(differences), _SIZE):
        known = [error for error in differences[first : first + _SIZE] if error is not None]
        found.append(min(sum(known) / len(known), _FAR) if known else None)
    return found


_FAR = 1e6
"""The distance of a loss that is not finite from one that is."""


def _known(pairs: Sequence[_Pair], first: int, end: int) -> List[float]:
    return [mean for pair in pairs for mean in pair.means[first:end] if mean is not None]


def judge_envelope(runs: Runs) -> Iterator[Judgement]:
    """Finds that the new run leaves what the runs of the old program vary by, or that it does not.

    Without such runs, nothing is known: then that is what it finds.
    """
    if not runs.again:
        yield _no_baseline(runs)
        return
    found = measures(runs)
    outside = [measure for measure in found if _leaves(runs, measure)]
    if outside:
        yield from _leaving(runs, outside)
        return
    yield from _skips(runs)
    yield from _doubts(runs, found)
    if found:
        yield _within(runs, found)


def largest_ratio(runs: Runs) -> float:
    """Returns how much farther away the new run may be in a window."""
    is_few = len(runs.again) < limits.FEW_RUNS.value
    return (limits.LEAVES_FEW if is_few else limits.LEAVES).value


def _leaves(runs: Runs, measure: Measure) -> bool:
    if measure.largest.ratio > largest_ratio(runs):
        return True
    has_average = len(measure.windows) >= limits.AVERAGED.value
    return has_average and measure.on_average > limits.LEAVES_ON_AVERAGE.value


def _leaving(runs: Runs, outside: Sequence[Measure]) -> Iterator[Judgement]:
    """Yields one judgement for each metric, in the order of their windows."""
    judgements = []
    for measure in outside:
        limit = largest_ratio(runs)
        far = (window for window in measure.windows if window.ratio > limit)
        window = next(far, None)
        evidence = {
            "metric": measure.metric,
            "ratio": measure.largest.ratio,
            "on_average": measure.on_average,
            "again": len(runs.again),
        }
        first = measure.windows[0] if window is None else window
        judgements.append(Judgement(Kind.LEAVES, runs.steps[first.first], evidence))
    reduces = who_reduces(runs)
    if reduces is not None:
        judgements = [_because_of_smaller(judgement, reduces) for judgement in judgements]
    yield from sorted(judgements, key=lambda judgement: judgement.step or 0)


def _because_of_smaller(judgement: Judgement, reduces: str) -> Judgement:
    evidence = {**judgement.evidence, "reduces": reduces}
    return Judgement(judgement.kind, judgement.step, evidence, Cause.REDUCED)


def _no_baseline(runs: Runs) -> Judgement:
    found = {}
    for metric in ("loss", "norm"):
        errors = runs.differences(metric, runs.old, runs.new)[: runs.part]
        known = [error for error in errors if error is not None]
        if known:
            found[metric] = max(known)
    step = runs.steps[runs.part] if runs.part < len(runs.steps) else None
    return Judgement(Kind.NO_BASELINE, step, {"largest": found})


def _skips(runs: Runs) -> Iterator[Judgement]:
    """Finds that the new run skips more or fewer steps than all runs of the old program."""
    counts = [_skipped(runs, run) for run in (runs.old, *_runs_again(runs))]
    new = _skipped(runs, runs.new)
    slack = max(limits.SKIPS_AT_LEAST.value, limits.SKIPS.value * max(counts))
    if not min(counts) - slack <= new <= max(counts) + slack:
        step = runs.steps[runs.part] if runs.part < len(runs.steps) else runs.steps[0]
        evidence = {"new": new, "least": min(counts), "most": max(counts)}
        yield Judgement(Kind.SKIPS, step, evidence)


def _runs_again(runs: Runs) -> List[OptimizerRecord]:
    return [again.run for again in runs.again]


def _skipped(runs: Runs, run: OptimizerRecord) -> int:
    return sum(finite is False for finite in runs.column(run, "finite"))


def _doubts(runs: Runs, found: Sequence[Measure]) -> Iterator[Judgement]:
    """Finds what hinders the verdict that the runs are the same."""
    count, parts = len(runs.steps), runs.part < len(runs.steps)
    step = runs.steps[runs.part] if parts else None
    if count < limits.FEW.value:
        yield Judgement(Kind.FEW_STEPS, None, {"steps": count})
    unmeasured = _unmeasured_from(runs)
    if unmeasured is not None:
        yield Judgement(Kind.NO_SCALE_RUNS, unmeasured)
    losses = [measure for measure in found if measure.metric == "loss"]
    shows = min((measure.would_show for measure in losses or found), default=None)
    if shows is None:
        yield Judgement(Kind.NOTHING_MEASURED, None)
    elif shows > limits.UNSTEADY.value:
        yield Judgement(Kind.UNSTEADY, None, {"would_show": shows})
    octaves = _mean_octaves(runs)
    if abs(octaves) > limits.SCALE_LEVEL.value:
        yield Judgement(Kind.SCALE_LEVEL, step, {"factor": 2.0**octaves})


def _unmeasured_from(runs: Runs) -> Optional[int]:
    """Returns the step from which on no run of the old program is like the new one; None if none.

    Up to there, some of them skip the same steps. With another loss scale, all are like it.
    """
    everyone = [runs.old, *_runs_again(runs)]
    pairs = itertools.combinations(everyone, 2)
    place = min(runs.part, max(runs.parting(run, other) for run, other in pairs))
    if runs.has_other_scale or place == len(runs.steps):
        return None
    return runs.steps[place]


def _mean_octaves(runs: Runs) -> float:
    """Returns by how much the mean of log2 of the new scale is larger, after the runs part."""
    pairs: List[Tuple[float, float]] = [
        pair for pair in runs.pairs("scales")[runs.part :] if are_positive(*pair)
    ]
    differences = [math.log2(new) - math.log2(old) for old, new in pairs]
    return sum(differences) / len(differences) if differences else 0.0


def _tolerated(runs: Runs, metric: str) -> float:
    """Returns the relative difference that counts as none."""
    return runs.conditions.loss_tolerance if metric == "loss" else 0.0


def _within(runs: Runs, found: Sequence[Measure]) -> Judgement:
    """Returns that the new run is no farther away than rounding explains, and what would show."""
    closest = max(found, key=lambda measure: measure.largest.ratio)
    shown = [measure for measure in found if measure.metric == "loss"] or list(found)
    step: Optional[int] = runs.steps[runs.part] if runs.part < len(runs.steps) else None
    evidence = {
        "ratio": closest.largest.ratio,
        "on_average": max(measure.on_average for measure in found),
        "metric": shown[0].metric,
        "would_show": max(shown[0].would_show, _tolerated(runs, shown[0].metric)),
        "until": min(int(limits.BEGINNING.value), len(runs.steps)),
        "steps": len(runs.steps),
        "again": len(runs.again),
        "with_scale": sum(again.has_other_scale for again in runs.again),
    }
    return Judgement(Kind.WITHIN, step, evidence)
