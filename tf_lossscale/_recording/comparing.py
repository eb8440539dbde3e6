"""Decides whether two recorded runs agree.

Where both were made under equal conditions, every number must be equal. Otherwise rounding differs,
and how much is measured before the first update: what differs more than that afterwards, all at
once or all the time to one side, is a mistake.
"""

import dataclasses
from typing import List, Optional, Tuple

from tf_lossscale._recording.aligned import Aligned, Verdict, align
from tf_lossscale._recording.causes import differing_settings
from tf_lossscale._recording.judges import JUDGES, judge_rest
from tf_lossscale._recording.record import OptimizerRecord, RunHeader
from tf_lossscale._recording.runs import Conditions, Runs

__all__ = ["Comparison", "Conditions", "Verdict", "compare", "equal_conditions"]


@dataclasses.dataclass
class Comparison:
    """The outcome for one optimizer.

    Attributes:
      verdict: the result.
      sentence: the result in one sentence.
      evidence: the reasons for it, a phrase each.
      step: the first step in which the runs diverge or differ; None if there is none.
      aligned: the runs; None if they cannot be compared.
    """

    verdict: Verdict
    sentence: str
    evidence: List[str]
    step: Optional[int] = None
    aligned: Optional[Aligned] = None


def equal_conditions(old: RunHeader, new: RunHeader) -> bool:
    """Returns whether two runs were made where equal programs give equal bits."""
    names = ("tensorflow", "keras", "devices", "replicas", "xla")
    known = old.tensorflow is not None
    return known and all(getattr(old, name) == getattr(new, name) for name in names)


def compare(
    old: OptimizerRecord, new: OptimizerRecord, conditions: Optional[Conditions] = None
) -> Comparison:
    """Compares two runs of one optimizer.

    Args:
      old: the reference run.
      new: the run to check.
      conditions: how they were made.
    """
    conditions = conditions or Conditions()
    reason = _why_not_comparable(old, new)
    aligned = align(old, new)
    if not reason and not aligned.pairs:
        reason = "they have no step in common"
    runs = Runs(aligned, conditions)
    if not reason and not (runs.has_loss or runs.has_norm):
        reason = "neither losses nor gradient norms are in both records"
    if reason:
        return Comparison(Verdict.NOT_COMPARABLE, f"The runs cannot be compared: {reason}.", [])
    for judge in JUDGES:
        found = judge(runs)
        if found:
            break
    else:
        found = judge_rest(runs)
    evidence = runs.evidence
    verdict, sentence, step = found
    doubts = _missing(aligned, conditions.ended)
    evidence[:0] = doubts
    settings = differing_settings(aligned)
    if settings and verdict is not Verdict.IDENTICAL:
        doubts.append(f"the inner optimizers have {', '.join(settings)}")
    if doubts and verdict.status == 0:
        sentence = f"Not shown to be the same: {doubts[0]}. Apart from that: {sentence}"
        verdict = Verdict.UNDECIDED
    return Comparison(verdict, sentence, evidence, step, aligned)


def _why_not_comparable(old: OptimizerRecord, new: OptimizerRecord) -> str:
    if len(old.shapes) != len(new.shapes):
        return f"the old run has {len(old.shapes)} variables and the new one {len(new.shapes)}"
    for index, (mine, theirs) in enumerate(zip(old.shapes, new.shapes)):
        if mine != theirs:
            return (
                f"variable {index} ({old.names[index]}, {new.names[index]}) has the shape {mine} "
                f"in the old run and {theirs} in the new one"
            )
    return ""


def _missing(aligned: Aligned, ended: Tuple[bool, bool]) -> List[str]:
    """Returns what one record lacks of the other, or of its own run."""
    old, new = aligned.old, aligned.new
    found = []
    for (name, run), has_ended in zip((("new", new), ("old", old)), ended[::-1]):
        last = max(old.steps[-1], new.steps[-1])
        cut = "" if has_ended else " (no end mark: it was cut off)"
        if run.steps[-1] < last:
            found.append(f"the {name} run ends after step {run.steps[-1]} of {last}{cut}")
        elif cut:
            found.append(f"the {name} run ends at step {last}{cut}")
        if run.gaps:
            first = run.gaps[0]
            more = f", and {len(run.gaps) - 1} more gaps" if len(run.gaps) > 1 else ""
            found.append(
                f"steps {first.first} to {first.end - 1} of the {name} run are missing{more}"
            )
        if run.steps[0] > min(old.steps[0], new.steps[0]):
            found.append(f"the {name} run begins at step {run.steps[0]}")
    return found
