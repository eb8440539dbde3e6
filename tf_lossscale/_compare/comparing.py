"""Decides whether two recorded runs agree: the order of the judges, and what follows from them.

Facts come first, which rounding cannot change: what is declared, the initial weights, the rule of
the loss scale. Then comes what follows from equal weights, before the first update. All else is
measured by runs of the old program itself.
"""

from typing import Callable, Iterator, List, Optional, Sequence

from tf_lossscale._compare import facts, first_step
from tf_lossscale._compare.envelope import judge_envelope
from tf_lossscale._compare.judgements import Comparison, Judgement, Kind, Verdict
from tf_lossscale._compare.runs import Again, Conditions, Runs
from tf_lossscale._records.format import OptimizerRecord, RunHeader

_Judge = Callable[[Runs], Iterator[Judgement]]

_FACTS: List[_Judge] = [
    facts.judge_weights,
    facts.judge_slots,
    facts.judge_parameters,
    facts.judge_scales,
    facts.judge_applied,
    facts.judge_settings,
    facts.judge_dtypes,
    facts.judge_rates,
]
"""What rounding cannot change."""
_FIRST: List[_Judge] = [
    first_step.judge_first_loss,
    first_step.judge_first_norm,
    first_step.judge_variables,
]
"""What follows from equal weights."""
_HARMLESS = (Kind.SETTINGS, Kind.SLOTS, Kind.COMPUTED)
"""What says nothing if all numbers are equal, such as a limit that no gradient reaches."""


def equal_conditions(old: RunHeader, new: RunHeader) -> bool:
    """Returns whether two runs were made where equal programs give equal bits."""
    names = ("tensorflow", "keras", "devices", "replicas", "xla")
    equal = all(getattr(old, name) == getattr(new, name) for name in names)
    return equal and old.tensorflow is not None


def in_order_of(
    old: Sequence[OptimizerRecord], other: Sequence[OptimizerRecord]
) -> List[OptimizerRecord]:
    """Returns the optimizers of another run in the order of those with equal shapes in the old one.

    A program may make the first step of its optimizers in another order on another version. If one
    has no counterpart, the order is kept.
    """
    found, rest = [], list(other)
    for run in old:
        alike = [candidate for candidate in rest if candidate.shapes == run.shapes]
        if not alike:
            return list(other)
        found.append(alike[0])
        rest = [candidate for candidate in rest if candidate is not alike[0]]
    return found + rest


def compare(
    old: OptimizerRecord, new: OptimizerRecord, conditions: Optional[Conditions] = None
) -> Comparison:
    """Compares two runs of one optimizer, of which the old one is right."""
    runs = Runs(old, new, conditions)
    found = list(facts.judge_comparable(runs)) or list(_judge_baseline(runs))
    if found:
        return Comparison(Verdict.NOT_COMPARABLE, found)
    judgements = list(_judged(runs))
    return Comparison(judgements[0].verdict, judgements, runs)


def _judged(runs: Runs) -> Iterator[Judgement]:
    """Yields what is found about two runs, the decisive judgement first."""
    found = _all_of(_FACTS, runs)
    incomplete = list(facts.judge_completeness(runs))
    bits = list(facts.judge_bits(runs))
    if bits:
        decisive = [judgement for judgement in found if judgement.kind not in _HARMLESS]
        counts = list(facts.judge_count(runs))
        yield from [*decisive, *counts, *incomplete, *bits]
        yield from [judgement for judgement in found if judgement.kind in _HARMLESS]
        return
    found += _all_of(_FIRST, runs) + list(facts.judge_count(runs))
    if found:
        yield from [*found, *incomplete]
        return
    measured = list(judge_envelope(runs))
    different = [quantity for quantity in measured if quantity.verdict is Verdict.DIFFERENT]
    rest = [quantity for quantity in measured if quantity.verdict is not Verdict.DIFFERENT]
    yield from [*different, *incomplete, *rest]


def _all_of(judges: List[_Judge], runs: Runs) -> List[Judgement]:
    return [judgement for judge in judges for judgement in judge(runs)]


def _judge_baseline(runs: Runs) -> Iterator[Judgement]:
    """Refuses another run that is not one of the old program: it would excuse mistakes."""
    for number, again in enumerate(runs.again, 1):
        reasons = list(why_other_program(runs.old, again))
        if reasons:
            yield Judgement(Kind.OTHER_BASELINE, None, {"number": number, "reason": reasons[0]})
            return


def why_other_program(old: OptimizerRecord, again: Again) -> Iterator[Judgement]:
    """Yields what shows that a run is not one of the old program, with disturbed weights."""
    runs = Runs(old, again.run)
    judges: List[_Judge] = [
        facts.judge_comparable,
        facts.judge_settings,
        facts.judge_dtypes,
        facts.judge_count,
        _judge_start,
    ]
    if not again.has_other_scale:
        judges.append(facts.judge_parameters)
    for judge in judges:
        found = list(judge(runs))
        yield from found
        if found:
            return


_FAR = 0.1
"""A disturbed run does not begin with a loss that differs by so much."""


def _judge_start(runs: Runs) -> Iterator[Judgement]:
    """Finds that a run begins elsewhere: from a checkpoint that an earlier run has written."""
    old, new = runs.at("loss", 0)
    error = (runs.differences("loss", runs.old, runs.new) or [None])[0]
    if error is not None and error > _FAR:
        yield Judgement(Kind.FIRST_LOSS, runs.steps[0], {"old": old, "new": new, "error": error})
