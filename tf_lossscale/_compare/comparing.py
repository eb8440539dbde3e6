"""Decides whether two recorded runs agree.

Where both were made under equal conditions, every number must be equal. Otherwise rounding differs,
and how much is measured before the first update: what differs more than that afterwards, all at
once or all the time to one side, is a mistake.
"""

from typing import List, Optional

from tf_lossscale._compare import jumps
from tf_lossscale._compare.on_average import judge_on_average
from tf_lossscale._compare.runs import Comparison, Conditions, Runs, Verdict, largest
from tf_lossscale._compare.scale_rules import parameters_that_differ, replay, same_scale
from tf_lossscale._records.format import OptimizerRecord, RunHeader


def equal_conditions(old: RunHeader, new: RunHeader) -> bool:
    """Returns whether two runs were made where equal programs give equal bits."""
    names = ("tensorflow", "keras", "devices", "replicas", "xla")
    equal = all(getattr(old, name) == getattr(new, name) for name in names)
    return equal and old.tensorflow is not None


def compare(
    old: OptimizerRecord, new: OptimizerRecord, conditions: Optional[Conditions] = None
) -> Comparison:
    """Compares two runs of one optimizer, of which the old one is right."""
    runs = Runs(old, new, conditions)
    reason = _why_not_comparable(runs)
    if reason:
        return Comparison(Verdict.NOT_COMPARABLE, f"The runs cannot be compared: {reason}.")
    runs.evidence.append(f"{len(runs.pairs)} steps in common")
    if old.initial_weights and new.initial_weights:
        which = "equal" if old.initial_weights == new.initial_weights else "different"
        runs.evidence.append(f"{which} initial weights")
    differing = parameters_that_differ(old.scale, new.scale)
    if differing:
        runs.evidence.append(f"parameters of the loss scale differ: {', '.join(differing)}")
    if runs.settings:
        runs.evidence.append(f"settings of the inner optimizers differ: {runs.settings}")
    found = next(filter(None, (judge(runs) for judge in _JUDGES)))
    doubts = _missing(runs)
    found.evidence = doubts + runs.evidence
    if runs.settings and found.verdict is not Verdict.IDENTICAL:
        doubts.append(f"the inner optimizers have {runs.settings}")
    if doubts and found.verdict.status == 0:
        found.sentence = f"Not shown to be the same: {doubts[0]}. Apart from that: {found.sentence}"
        found.verdict = Verdict.UNDECIDED
    return found


def _why_not_comparable(runs: Runs) -> str:
    old, new = runs.old, runs.new
    if len(old.shapes) != len(new.shapes):
        return f"the old run has {len(old.shapes)} variables and the new one {len(new.shapes)}"
    for index, (mine, theirs) in enumerate(zip(old.shapes, new.shapes)):
        if mine != theirs:
            return (
                f"variable {index} ({old.names[index]}, {new.names[index]}) has the shape {mine} "
                f"in the old run and {theirs} in the new one"
            )
    if not runs.pairs:
        return "they have no step in common"
    if all(each is None for each in runs.loss + runs.norm):
        return "neither losses nor gradient norms are in both records"
    return ""


def _missing(runs: Runs) -> List[str]:
    first = min(run.steps[0] for _, run in runs.both)
    last = max(run.steps[-1] for _, run in runs.both)
    found = []
    for (name, run), has_ended in reversed(list(zip(runs.both, runs.conditions.ended))):
        cut = "" if has_ended else " (no end mark: it was cut off)"
        if run.steps[-1] < last:
            found.append(f"the {name} run ends after step {run.steps[-1]} of {last}{cut}")
        elif cut:
            found.append(f"the {name} run ends at step {last}{cut}")
        if run.gaps:
            gap = run.gaps[0]
            more = f", and {len(run.gaps) - 1} more gaps" if len(run.gaps) > 1 else ""
            found.append(f"steps {gap.first} to {gap.end - 1} of the {name} run are missing{more}")
        if run.steps[0] > first:
            found.append(f"the {name} run begins at step {run.steps[0]}")
    # A number shows all updates before it.
    known = [pair != (None, None) for pair in zip(runs.loss, runs.norm)]
    end = len(known) - known[::-1].index(True)
    if any(False not in applied for applied in runs.column("applied", end)):
        step = runs.step(end)
        found.append(f"neither losses nor norms from step {step} on are in both records")
    return found


def _judge_weights(runs: Runs) -> Optional[Comparison]:
    old, new = runs.old.initial_weights, runs.new.initial_weights
    text = (
        "the runs start from other initial weights; restore the same checkpoint in both, as equal "
        "seeds do not give equal weights on every version"
    )
    return runs.different(text, runs.step(0)) if old and new and old != new else None


def _judge_scales(runs: Runs) -> Optional[Comparison]:
    differing = parameters_that_differ(runs.old.scale, runs.new.scale)
    if differing:
        text = f"the loss scales are declared with {', '.join(differing)}"
        return runs.different(text, runs.step(0))
    mismatches = [(name, replay(run)) for name, run in runs.both]
    found = [(name, mismatch) for name, mismatch in mismatches if mismatch]
    for name, mismatch in found if len(found) == 1 else []:
        runs.evidence.append(
            f"step {mismatch.step} of the {name} run uses the scale {mismatch.recorded:g}, "
            f"where the update rule gives {mismatch.expected:g}"
        )
        text = (
            f"the loss scale of the {name} run breaks its update rule at step {mismatch.step}; "
            f"cause: {mismatch.parameter}"
        )
        return runs.different(text, mismatch.step)
    # What both runs do is no difference: the program, or another optimizer, changes the scale.
    follow = "neither loss scale follows its update rule"
    if not found:
        known = (zip(run.scales, run.finite) for _, run in runs.both)
        counts = " and ".join(str(sum(None not in each for each in steps)) for steps in known)
        follow = f"both loss scales follow their update rules ({counts} steps)"
    runs.evidence.append(follow)
    # The scale of a step depends on the skips before it, so that of the parting step is included.
    for index, (old, new) in enumerate(runs.column("scales", 0, runs.part + 1)):
        if None not in (old, new) and not same_scale(old, new):
            step = runs.step(index)
            runs.evidence.append(f"at step {step} the scales are {old:g} and {new:g}")
            text = f"the loss scales part at step {step}, and no skip explains it"
            return runs.different(text, step)
    for index, (old, new) in enumerate(runs.column("applied", 0, runs.part)):
        if None not in (old, new) and old != new:
            step, which = runs.step(index), "old" if old else "new"
            text = f"only the {which} run applies the gradients of step {step}"
            return runs.different(text, step)
    return None


def _judge_bits(runs: Runs) -> Optional[Comparison]:
    """Compares runs that were made under equal conditions, where nothing rounds differently."""
    index = runs.first_unequal()
    if index is None:
        # Without losses, gradient norms show that the runs are equal.
        known = any(each is not None for each in runs.loss[: runs.part] + runs.norm)
        sentence = f"Same: {len(runs.pairs)} steps, bit-identical."
        return runs.finding(Verdict.IDENTICAL, sentence) if known else None
    if not runs.conditions.are_equal or runs.conditions.loss_tolerance:
        return None
    if runs.again is not None and runs.again.first_unequal() is not None:
        runs.evidence.append("the old program is not equal to its own second run (--baseline)")
        return None
    found = jumps.judge_start(runs) or jumps.judge_update(runs) or jumps.judge_norms(runs)
    step = runs.step(index)
    end = index + jumps.WINDOW
    error = max(largest(runs.loss[:end])[0], largest(runs.norm[:end])[0])
    text = (
        "both runs were made with the same versions and devices, and their numbers differ from "
        f"step {step} on (by {error:.1g})"
    )
    if found:
        text += found.sentence[len("Different") :].rstrip(".")
    elif runs.declared:
        text += f"; {runs.declared}"
    elif runs.again is None:
        text += (
            "; to see whether the old program itself gives other numbers when it is run again, "
            "record it twice and use --baseline"
        )
    else:
        text += "; the old program gives equal numbers when it is run again"
    return runs.different(text, step)


def _judge_baseline(runs: Runs) -> Optional[Comparison]:
    """Refuses a baseline that is not a second run of the old program: it would excuse mistakes."""
    if runs.again is None:
        return None
    reason = _why_not_comparable(runs.again) or runs.again.declared
    if not reason:
        judges = (_judge_weights, _judge_scales, jumps.judge_start)
        found = next(filter(None, (judge(runs.again) for judge in judges)), None)
        if found is None:
            return None
        reason = found.sentence[len("Different: ") :].rstrip(".")
    text = f"the baseline is not a second run of the old program. Between these two, {reason}"
    return Comparison(Verdict.NOT_COMPARABLE, f"The runs cannot be compared: {text}.")


_JUDGES = (
    _judge_weights,
    _judge_scales,
    jumps.judge_clipping,
    _judge_bits,
    _judge_baseline,
    jumps.judge_start,
    jumps.judge_update,
    jumps.judge_norms,
    jumps.judge_later,
    jumps.judge_drift,
    lambda runs: jumps.judge_clipping(runs, is_above=False),
    judge_on_average,
)
"""The questions about two runs, in order; the first that is answered decides. The last one is."""
