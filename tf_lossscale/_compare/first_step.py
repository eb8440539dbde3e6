"""Judges what comes from equal weights: the loss and the norms before the first update.

Rounding changes these by little more than the precision of the computation, which bounds them even
without another run of the old program. With disturbed runs, the bound is what those show.
"""

from typing import Iterator, List, Optional, Sequence

from tf_lossscale._compare.causes import cause_of_first_loss, cause_of_ratio
from tf_lossscale._compare.judgements import Cause, Judgement, Kind
from tf_lossscale._compare.limits import FIRST, FIRST_AT_LEAST, first_loss, first_norm
from tf_lossscale._compare.runs import Runs, Values, are_positive, difference
from tf_lossscale._records.format import OptimizerRecord

_PRECISIONS = ("bfloat16", "float16", "float32", "float64")
"""The least precise one first."""


def dtype_of(runs: Runs) -> Optional[str]:
    """Returns the least precise dtype that a run computes in; None if no record has it."""
    known = {dtype for _, run in runs.both for dtype in run.computed or () if dtype}
    return next((dtype for dtype in _PRECISIONS if dtype in known), None)


def judge_first_loss(runs: Runs) -> Iterator[Judgement]:
    """Compares the losses up to the first update."""
    errors = runs.differences("loss", runs.old, runs.new)
    limit = _allowed(runs, "loss", first_loss(dtype_of(runs)).value)
    for index, error in enumerate(errors[: runs.updated + 1]):
        if (error or 0.0) > limit:
            old, new = runs.at("loss", index)
            evidence = {"old": old, "new": new, "error": error, "limit": limit}
            cause = cause_of_first_loss(runs, index)
            yield Judgement(Kind.FIRST_LOSS, runs.steps[index], evidence, cause)
            return


def judge_first_norm(runs: Runs) -> Iterator[Judgement]:
    """Compares the gradient norms up to the first update, and what clipping leaves of them."""
    bound = first_norm(dtype_of(runs)).value
    for metric in ("norm", "kept"):
        limit = _allowed(runs, metric, bound)
        errors = runs.differences(metric, runs.old, runs.new)
        for index, error in enumerate(errors[: runs.updated + 1]):
            if (error or 0.0) > limit:
                yield _of_norm(runs, metric, index, error, limit)
                return


def _of_norm(
    runs: Runs, metric: str, index: int, error: Optional[float], limit: float
) -> Judgement:
    old, new = (runs.values(metric, run)[index] for _, run in runs.both)
    evidence = {"metric": metric, "old": old, "new": new, "error": error, "limit": limit}
    cause = cause_of_ratio(old, new, runs.at("scales", index)[1])
    if metric == "kept" and cause is Cause.WHOLE_FACTOR:
        cause = None  # a limit can leave any part of a norm
    return Judgement(Kind.FIRST_NORM, runs.steps[index], evidence, cause)


def judge_variables(runs: Runs) -> Iterator[Judgement]:
    """Compares the norm of each variable's gradient in the first step."""
    old, new = runs.old.norms, runs.new.norms
    if old is None or new is None or runs.steps[0] != 0:
        return
    bound = first_norm(dtype_of(runs)).value
    for index, errors in enumerate(zip(*_of_variables(runs))):
        error, *again = errors
        measured = [FIRST.value * distance for distance in again if distance is not None]
        if (error or 0.0) > max([bound, *measured]):
            evidence = {"old": old[index], "new": new[index], "name": runs.new.names[index]}
            evidence = {**evidence, "index": index, "error": error}
            yield Judgement(Kind.VARIABLE_NORM, 0, evidence, _cause_in_all(runs))
            return


def _cause_in_all(runs: Runs) -> Optional[Cause]:
    """Returns the cause that the norms of all variables show; None if one of them denies it."""
    scale = runs.at("scales", 0)[1]
    pairs = [
        pair for pair in zip(runs.old.norms or [], runs.new.norms or []) if are_positive(*pair)
    ]
    causes = {cause_of_ratio(old, new, scale) for old, new in pairs}
    return causes.pop() if len(causes) == 1 else None


def _of_variables(runs: Runs) -> Iterator[Values]:
    """Yields the differences of the variables' norms: new from old, and each run again from old.

    A part of the largest norm is the least that they are divided by: what is nearly zero in one
    run, such as the bias before a normalization, is so by rounding only.
    """
    old = runs.old.norms or []
    least = max((norm for norm in old if norm is not None and norm < float("inf")), default=0.0)
    for run in (runs.new, *(again.run for again in runs.again)):
        if run.norms is not None and len(run.norms) == len(old):
            yield [_finite(difference(a, b, least / 100)) for a, b in zip(old, run.norms)]


def _finite(error: Optional[float]) -> Optional[float]:
    return None if error == float("inf") else error


def _allowed(runs: Runs, metric: str, bound: float) -> float:
    """Returns by how much the runs may differ before an update.

    That is measured, or else what the precision of the computation allows.
    """
    found = [_largest(runs, metric, again.run) for again in runs.again]
    measured = [error for error in found if error is not None]
    if not measured:
        return bound
    return max(FIRST.value * max(measured), FIRST_AT_LEAST.value * bound)


def _largest(runs: Runs, metric: str, run: OptimizerRecord) -> Optional[float]:
    # With another loss scale, it may apply a step that the old run skips, and so be ahead of it.
    end = min(runs.updated, runs.first_update(run)) + 1
    errors: Sequence[Optional[float]] = runs.differences(metric, runs.old, run)
    known: List[float] = [
        error for error in errors[:end] if error is not None and error < float("inf")
    ]
    return max(known, default=None)
