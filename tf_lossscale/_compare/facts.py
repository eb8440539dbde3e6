"""Judges of facts: what rounding cannot change, and what is missing in a record.

Each judge gets both runs, and yields what it finds.
"""

from typing import Iterator, List, Optional

from tf_lossscale._compare.judgements import Judgement, Kind
from tf_lossscale._compare.limits import RATE, SETTING
from tf_lossscale._compare.runs import Runs, difference
from tf_lossscale._compare.scale_rules import parameters_that_differ, replay, same_scale
from tf_lossscale._records.format import Setting

_MATRIX = 2
"""From this rank on, a variable is computed in the dtype of its layer.

Keras 2 and 3 compute the parameters of normalizations in different dtypes.
"""


def judge_comparable(runs: Runs) -> Iterator[Judgement]:
    """Finds why two records cannot be compared."""
    old, new = runs.old, runs.new
    if len(old.shapes) != len(new.shapes):
        yield Judgement(Kind.OTHER_COUNT, None, {"old": len(old.shapes), "new": len(new.shapes)})
        return
    for index, (shape, new_shape) in enumerate(zip(old.shapes, new.shapes)):
        if shape != new_shape:
            names = {"index": index, "old_name": old.names[index], "new_name": new.names[index]}
            yield Judgement(Kind.OTHER_SHAPE, None, {"old": shape, "new": new_shape, **names})
    if not runs.steps:
        yield Judgement(Kind.NO_COMMON_STEP)
    elif not any(_has_number(runs, name) for name in ("loss", "norm")):
        yield Judgement(Kind.NO_NUMBERS)


def _has_number(runs: Runs, name: str) -> bool:
    return any(None not in pair for pair in runs.pairs(name))


def judge_weights(runs: Runs) -> Iterator[Judgement]:
    """Compares the hashes of the initial weights."""
    old, new = runs.old.initial_weights, runs.new.initial_weights
    if old and new and old != new:
        yield Judgement(Kind.WEIGHTS, runs.steps[0])


def judge_slots(runs: Runs) -> Iterator[Judgement]:
    """Compares whether the slots of the inner optimizers were restored."""
    old, new = runs.old.slots, runs.new.slots
    if old and new and old != new:
        fresh = "old" if old == "fresh" else "new"
        yield Judgement(Kind.SLOTS, runs.steps[0], {"fresh": fresh})


def judge_parameters(runs: Runs) -> Iterator[Judgement]:
    """Compares the declared parameters of the loss scales."""
    found = parameters_that_differ(runs.old.scale, runs.new.scale)
    if found:
        yield Judgement(Kind.PARAMETERS, runs.steps[0], {"parameters": found})


def judge_settings(runs: Runs) -> Iterator[Judgement]:
    """Compares the settings of the inner optimizers that both records have."""
    old, new = runs.old.settings, runs.new.settings
    found = [
        (name, value, new[name])
        for name, value in old.items()
        if name in new and not _are_equal(value, new[name])
    ]
    if found:
        yield Judgement(Kind.SETTINGS, runs.steps[0], {"settings": found})


def _are_equal(one: Setting, other: Setting) -> bool:
    error = difference(one, other)
    return one is other if error is None else error < SETTING.value


def judge_dtypes(runs: Runs) -> Iterator[Judgement]:
    """Compares the dtypes in which the gradients of matrices were computed."""
    old, new = runs.old.computed or [], runs.new.computed or []
    for index, (dtype, new_dtype, shape) in enumerate(zip(old, new, runs.old.shapes)):
        if len(shape) >= _MATRIX and dtype and new_dtype and dtype != new_dtype:
            names = {"index": index, "name": runs.new.names[index]}
            yield Judgement(Kind.COMPUTED, runs.steps[0], {"old": dtype, "new": new_dtype, **names})
            return


def judge_count(runs: Runs) -> Iterator[Judgement]:
    """Compares the numbers of steps of runs that ended by themselves."""
    old, new = runs.old.steps[-1] + 1, runs.new.steps[-1] + 1
    if old != new and all(runs.conditions.ended) and not runs.end_at_same_update:
        yield Judgement(Kind.STEPS, min(old, new), {"old": old, "new": new})


def judge_rates(runs: Runs) -> Iterator[Judgement]:
    """Compares the learning rates, up to where only one run skips a step.

    After it, optimizers that count skipped steps and those that do not may differ.
    """
    for step, (old, new) in zip(runs.steps[: runs.part + 1], runs.pairs("rate")):
        if (difference(old, new) or 0.0) > RATE.value:
            yield Judgement(Kind.RATE, step, {"old": old, "new": new})
            return


def judge_scales(runs: Runs) -> Iterator[Judgement]:
    """Replays the loss scales by their rules, and compares them up to where the runs part."""
    mismatches = [(name, replay(run)) for name, run in runs.both]
    found = [(name, mismatch) for name, mismatch in mismatches if mismatch is not None]
    # What both runs do is no difference: the program, or another optimizer, changes the scale.
    for name, mismatch in found if len(found) == 1 else []:
        yield Judgement(Kind.SCALE_RULE, mismatch.step, {"run": name, **mismatch._asdict()})
        return
    # The scale of a step depends on the skips before it, so the parting step's scale is included.
    for step, (old, new) in zip(runs.steps[: runs.part + 1], runs.pairs("scales")):
        if None not in (old, new) and not same_scale(old, new):
            yield Judgement(Kind.SCALES_PART, step, {"old": old, "new": new})
            return


def judge_applied(runs: Runs) -> Iterator[Judgement]:
    """Finds a step that only one run applies, although both or none are finite."""
    pairs = zip(runs.steps, runs.pairs("applied"))
    for index, (step, (old, new)) in enumerate(pairs):
        if None in (old, new) or old == new:
            continue
        which, run = runs.both[new]
        bad = runs.column(run, "bad")[index]
        is_wrong = bad is not None and 0 <= bad < len(run.names)
        if index < runs.part or is_wrong:
            name = run.names[bad] if is_wrong else None
            yield Judgement(Kind.APPLIED, step, {"run": which, "index": bad, "name": name})
        return


def judge_completeness(runs: Runs) -> Iterator[Judgement]:
    """Finds what is missing in a record: steps at its end, between others, or its numbers."""
    first = min(run.steps[0] for _, run in runs.both)
    last = max(run.steps[-1] for _, run in runs.both)
    for (name, run), has_ended in reversed(list(zip(runs.both, runs.conditions.ended))):
        is_shorter = run.steps[-1] < last and not runs.end_at_same_update
        if is_shorter or not has_ended:
            evidence = {"run": name, "end": run.steps[-1], "last": last, "ended": has_ended}
            yield Judgement(Kind.CUT_OFF, run.steps[-1], evidence)
        if run.gaps:
            gap = run.gaps[0]
            evidence = {"run": name, "end": gap.end - 1, "more": len(run.gaps) - 1}
            yield Judgement(Kind.GAP, gap.first, evidence)
        if run.steps[0] > first:
            yield Judgement(Kind.BEGINS_LATER, run.steps[0], {"run": name})
    yield from _missing_numbers(runs)
    yield from _missing_unscaling(runs)


def _missing_unscaling(runs: Runs) -> Iterator[Judgement]:
    """Finds that only the old run unscales its gradients where a record shows it.

    A program that clips by the global norm and forgets to unscale can apply the same gradients.
    """
    has_scale = any(scale not in (None, 1.0) for scale in runs.column(runs.new, "scales"))
    if runs.old.unscaled_by is not None and runs.new.unscaled_by is None and has_scale:
        yield Judgement(Kind.NOT_UNSCALED_HERE)


def _missing_numbers(runs: Runs) -> Iterator[Judgement]:
    """Finds updates at the end that no number shows: a number shows all updates before it."""
    known = [
        None not in loss or None not in norm
        for loss, norm in zip(runs.pairs("loss"), runs.pairs("norm"))
    ]
    end = len(known) - known[::-1].index(True)
    if any(False not in applied for applied in runs.pairs("applied")[end:]):
        yield Judgement(Kind.NUMBERS_MISSING, runs.steps[end])


def judge_bits(runs: Runs) -> Iterator[Judgement]:
    """Finds that all numbers are equal to the bit."""
    if first_unequal(runs) is None:
        known = any(None not in pair for name in ("loss", "norm") for pair in runs.pairs(name))
        if known:
            yield Judgement(Kind.BITS)


def first_unequal(runs: Runs) -> Optional[int]:
    """Returns the position of the first step with a number that is not equal to the bit."""
    columns: List[List[bool]] = [
        [bool(difference(old, new)) for old, new in runs.pairs(name)]
        for name in ("loss", "scales", "finite", "applied", "norm")
    ]
    return next((index for index, row in enumerate(zip(*columns)) if any(row)), None)
