"""Turns judgements into sentences, for the text, the JSON and the page alike."""

from typing import Callable, Dict, Iterator, List, Optional

from tf_lossscale._compare import limits
from tf_lossscale._compare.facts import first_unequal
from tf_lossscale._compare.judgements import Cause, Comparison, Judgement, Kind, Verdict
from tf_lossscale._compare.runs import Runs, has_any
from tf_lossscale._records.format import Setting
from tf_lossscale._records.summary import LONGEST, Summary, shortened
from tf_lossscale._types import Json, JsonObject

_LISTED = 4
"""Of longer lists, the first so many items are named."""
_OF_FIRST_STEP = (Kind.FIRST_LOSS, Kind.FIRST_NORM, Kind.VARIABLE_NORM)
"""What is measured before the first update, with or without disturbed runs."""
_Phrase = Callable[[JsonObject], str]
_NAMES = {"loss": "losses", "norm": "gradient norms", "kept": "parts of the norms that are applied"}


def sentence(comparison: Comparison) -> str:
    """Returns what is found in one sentence, or a few short ones."""
    first, verdict = comparison.first, comparison.verdict
    if verdict is Verdict.NOT_COMPARABLE:
        return shortened(f"The runs cannot be compared: {phrase(first)}.")
    if verdict is Verdict.DIFFERENT:
        return shortened(f"Different: {phrase(first)}{_cause(comparison)}.")
    # What a shorter one leaves out is in the evidence.
    lengths = (_of_agreement(comparison, is_short) for is_short in (False, True))
    fitting = (text for text in lengths if len(text) <= LONGEST)
    return next(fitting, None) or shortened(_of_agreement(comparison, is_short=True))


def _of_agreement(comparison: Comparison, is_short: bool) -> str:
    """Returns in what runs agree, and what keeps them from being called the same."""
    states = _states(comparison.runs, is_short)
    if comparison.verdict is not Verdict.UNDECIDED:
        return " ".join(filter(None, [_sameness(comparison), states]))
    whole = _sameness(comparison, is_short)
    parts = [f"Not shown to be the same: {phrase(comparison.first)}.", states]
    parts.append(f"Apart from that: {whole}" if whole else "")
    return " ".join(filter(None, parts))


def advice(comparison: Comparison) -> str:
    """Returns what to do next, in one sentence; nothing if the verdict says all."""
    first, runs = comparison.first, comparison.runs
    is_measured = runs is None or bool(runs.conditions.again)
    if first.kind in _OF_FIRST_STEP and first.cause is None and not is_measured:
        return _MAY_BE_ROUNDING
    return _ADVICE.get(first.kind, "")


def evidence(comparison: Comparison) -> List[str]:
    """Returns the reasons for a verdict, a phrase each."""
    found = [phrase(judgement) for judgement in comparison.judgements[1:]]
    if comparison.runs is not None:
        found += _of_runs(comparison.runs)
    return [*map(shortened, found)]


def _of_runs(runs: Runs) -> Iterator[str]:
    """Yields what the records of two runs show, whatever the verdict is."""
    yield f"{len(runs.steps)} steps in common"
    if runs.old.initial_weights and runs.old.initial_weights == runs.new.initial_weights:
        yield "equal initial weights"
    for metric, name in (("loss", "losses"), ("norm", "gradient norms")):
        lacking = [which for which, run in runs.both if not has_any(runs.column(run, metric))]
        if lacking:
            where = f"the {lacking[0]} record" if len(lacking) == 1 else "either record"
            yield f"there are no {name} in {where}"
    unequal = first_unequal(runs) if runs.conditions.are_equal else None
    if unequal is not None:
        yield (
            f"the numbers differ from step {runs.steps[unequal]} on, although equal versions and "
            "devices usually give equal bits"
        )
    for name, run in runs.both:
        yield f"the {name} run: {Summary.of(run).sentence()}"


def table(comparison: Comparison) -> List[List[str]]:
    """Returns the steps around the one where the runs diverge or differ, as cells of a table."""
    runs, step = comparison.runs, comparison.step
    return [] if runs is None or step is None else runs.around(step)


def phrase(judgement: Judgement) -> str:
    """Returns a judgement in words, without a full stop."""
    values = {"step": judgement.step, **judgement.evidence}
    return _PHRASES[judgement.kind](values)


def as_json(judgement: Judgement) -> JsonObject:
    """Returns a judgement as JSON values."""
    return {
        "kind": judgement.kind.value,
        "verdict": judgement.verdict.value[0],
        "step": judgement.step,
        "evidence": {name: _json(value) for name, value in judgement.evidence.items()},
        "cause": None if judgement.cause is None else judgement.cause.value,
        "text": phrase(judgement),
    }


def _json(value: object) -> Json:
    """Returns a value of JSON, which has no infinities and no NaN."""
    if isinstance(value, Judgement):
        return as_json(value)
    if isinstance(value, dict):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    is_infinite = isinstance(value, float) and value - value != 0
    return str(value) if is_infinite else value


def _sameness(comparison: Comparison, is_short: bool = False) -> str:
    """Returns in what the runs are the same, if they are; a short text has no measure of it."""
    found = {judgement.kind: judgement for judgement in comparison.judgements}
    count = len(comparison.runs.steps)
    if Kind.BITS in found:
        return f"Same: {count} step{'' if count == 1 else 's'}, bit-identical."
    if Kind.WITHIN not in found:
        return ""
    within = "" if is_short else f" {_within(found[Kind.WITHIN].evidence)} would show."
    step = found[Kind.WITHIN].step
    if step is not None:
        return (
            f"Alike: {count} steps; from step {step} on one run skips steps that the other does "
            f"not.{within}"
        )
    return f"Same: {count} steps, the same steps skipped.{within}"


def _within(values: JsonObject) -> str:
    return (
        f"The new run is at most {values['ratio']:.2g} times as far from the old run as "
        f"{values['again']} disturbed runs are from each other; {_NAMES[values['metric']]} that "
        f"differ by {_percent(values['would_show'])}{_until(values)}"
    )


def _until(values: JsonObject) -> str:
    return f" in the first {values['until']} steps" if values["until"] < values["steps"] else ""


def _states(runs: Optional[Runs], is_short: bool = False) -> str:
    """Returns what is not right in both runs, although they agree in it.

    A short text says neither where, nor which variable it is.
    """
    if runs is None:
        return ""
    old, new = (Summary.of(run) for _, run in runs.both)
    parts = list(_counts(old, new, is_short))
    if not parts:
        return ""
    if new.first_bad is not None and not is_short:
        parts[-1] += f", first in {new.name(new.first_bad)}"
    if new.scale is not None and new.scale <= 1 and new.skipped.count:
        parts.append(f"the loss scale is {new.scale:g} at the end")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _counts(old: Summary, new: Summary, is_short: bool) -> Iterator[str]:
    """Yields how many steps of the new run are not right, in each way."""
    for name, words in (
        ("skipped", "skipped"),
        ("applied_not_finite", "applied though not finite"),
        ("unknown", "not finite"),
    ):
        series, before = getattr(new, name), getattr(old, name).count
        if series.count:
            who = "both runs" if before == series.count else f"the new run (old: {before})"
            verb = "is" if series.count == 1 else "are"
            where = "" if is_short else f", {series.place(new.last_step)}"
            yield f"in {who}, {_of(series.count, new.steps)} {verb} {words}{where}"


def _of(count: int, steps: int) -> str:
    return f"{count} of {steps} steps"


def _cause(comparison: Comparison) -> str:
    """Returns the cause, or what to look at."""
    first, runs = comparison.first, comparison.runs
    if first.cause is not None:
        return f"; cause: {_CAUSES[first.cause](first.evidence)}"
    if first.kind is not Kind.LEAVES and first.kind not in _OF_FIRST_STEP:
        return ""
    return f"; cause unknown: look at {_look_at(runs, first)}"


def _look_at(runs: Runs, first: Judgement) -> str:
    """Returns where to look for the cause of a difference that has no name of its own.

    By what differed first, and whether that was among the first updates: later ones go wrong by
    what changes during a run.
    """
    if first.kind is Kind.FIRST_LOSS:
        return "the initial weights, the data of this batch, and the forward pass"
    if first.kind in (Kind.FIRST_NORM, Kind.VARIABLE_NORM):
        return "clipping, and gradients that are missing (a replica, a part of the batch)"
    place = 0 if first.step is None else runs.steps.index(first.step)
    if place - runs.updated < 2 * limits.WINDOW.value:
        return (
            "the first updates: learning rate, momentum, betas, decay, clipping, and sparse "
            "(embeddings), missing or summed gradients"
        )
    return (
        "what begins there: a learning-rate schedule, decay, a restart without the optimizer's "
        "state, the order of the data"
    )


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %"


def _more(items: List[str]) -> str:
    more = f" and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return ", ".join(items[:_LISTED]) + more


def _setting(value: Setting) -> str:
    return "none" if value is None else str(value) if isinstance(value, bool) else f"{value:.4g}"


def _settings(values: JsonObject) -> str:
    return _more(
        [f"{name} {_setting(old)} and {_setting(new)}" for name, old, new in values["settings"]]
    )


def _cut_off(values: JsonObject) -> str:
    cut = "" if values["ended"] else " (no end mark: it was cut off)"
    if values["end"] < values["last"]:
        return f"the {values['run']} run ends after step {values['end']} of {values['last']}{cut}"
    return f"the {values['run']} run ends at step {values['end']}{cut}"


def _gap(values: JsonObject) -> str:
    more = f", and {values['more']} more gaps" if values["more"] else ""
    return f"steps {values['step']} to {values['end']} of the {values['run']} run are missing{more}"


def _applied(values: JsonObject) -> str:
    if values["name"] is None:
        return f"only the {values['run']} run applies the gradients of step {values['step']}"
    return (
        f"in step {values['step']}, the {values['run']} run applies gradients although the "
        f"gradient of variable {values['index']} ({values['name']}) is not finite; the other run "
        "skips the step"
    )


def _scale_rule(values: JsonObject) -> str:
    return (
        f"the loss scale of the {values['run']} run breaks its update rule at step "
        f"{values['step']}, with {values['recorded']:g} in place of {values['expected']:g}; cause: "
        f"{values['parameter']}"
    )


def _leaves(values: JsonObject) -> str:
    how = f"{values['ratio']:.3g} times as far from the old run as"
    if values["ratio"] <= limits.LEAVES.value:
        how = f"{values['on_average']:.3g} times as far from the old run on average as"
    return (
        f"from step {values['step']} on, {_NAMES[values['metric']]} are {how} the old program's "
        f"{values['again']} disturbed runs are from each other"
    )


def _first_norm(values: JsonObject) -> str:
    if values["metric"] == "kept":
        return (
            f"at step {values['step']}, before an update, the old run applies {values['old']:.4g} "
            f"of its gradient norm and the new one {values['new']:.4g}"
        )
    return (
        f"the gradient norms differ at step {values['step']}, before an update "
        f"({values['old']:.6g} and {values['new']:.6g})"
    )


def _baseline(values: JsonObject) -> str:
    return (
        f"the run {values['number']} of the old program that is to measure rounding is not a run "
        f"of it: between these two, {phrase(values['reason'])}"
    )


def _no_baseline(values: JsonObject) -> str:
    parts = [f"{_NAMES[name]} by {error:.2g}" for name, error in values["largest"].items()]
    where = ""
    if values["step"] is not None:
        where = f" before step {values['step']}, which only one run skips"
    differ = f" ({' and '.join(parts)} at most{where})" if parts else ""
    return f"the runs differ{differ}, and how much rounding matters is not measured"


_PHRASES: Dict[Kind, _Phrase] = {
    Kind.OTHER_COUNT: lambda v: f"the old run has {v['old']} variables and the new one {v['new']}",
    Kind.OTHER_SHAPE: lambda v: (
        f"variable {v['index']} ({v['old_name']}, {v['new_name']}) has the shape {v['old']} in the "
        f"old run and {v['new']} in the new one"
    ),
    Kind.NO_COMMON_STEP: lambda v: "they have no step in common",
    Kind.NO_NUMBERS: lambda v: "neither losses nor gradient norms are in both records",
    Kind.OTHER_BASELINE: _baseline,
    Kind.WEIGHTS: lambda v: (
        "the runs start from other initial weights; restore the same checkpoint in both, as equal "
        "seeds do not give equal weights on every version"
    ),
    Kind.SLOTS: lambda v: (
        f"the inner optimizer of the {v['fresh']} run begins with fresh slots (such as momentum), "
        "and the other run's inner optimizer with restored ones"
    ),
    Kind.PARAMETERS: lambda v: f"the loss scales are declared with {_more(v['parameters'])}",
    Kind.SETTINGS: lambda v: f"the inner optimizers have {_settings(v)}",
    Kind.COMPUTED: lambda v: (
        f"the gradient of variable {v['index']} ({v['name']}) is computed in {v['old']} in the old "
        f"run and in {v['new']} in the new one"
    ),
    Kind.STEPS: lambda v: f"the old run makes {v['old']} steps and the new one {v['new']}",
    Kind.RATE: lambda v: (
        f"the learning rates differ from step {v['step']} on ({v['old']:.6g} and {v['new']:.6g})"
    ),
    Kind.SCALE_RULE: _scale_rule,
    Kind.SCALES_PART: lambda v: (
        f"the loss scales part at step {v['step']} ({v['old']:g} and {v['new']:g}), and no skip "
        "explains it"
    ),
    Kind.APPLIED: _applied,
    Kind.FIRST_LOSS: lambda v: (
        f"the losses differ at step {v['step']}, before an update ({v['old']:.6g} and "
        f"{v['new']:.6g})"
    ),
    Kind.FIRST_NORM: _first_norm,
    Kind.VARIABLE_NORM: lambda v: (
        f"in the first step, the gradient norm of variable {v['index']} ({v['name']}) is "
        f"{v['old']:.4g} in the old run and {v['new']:.4g} in the new one"
    ),
    Kind.LEAVES: _leaves,
    Kind.SKIPS: lambda v: (
        f"the new run skips {v['new']} steps, and the runs of the old program {v['least']} to "
        f"{v['most']}"
    ),
    Kind.CUT_OFF: _cut_off,
    Kind.BEGINS_LATER: lambda v: f"the {v['run']} run begins at step {v['step']}",
    Kind.GAP: _gap,
    Kind.NUMBERS_MISSING: lambda v: (
        f"neither losses nor norms from step {v['step']} on are in both records"
    ),
    Kind.NOT_UNSCALED_HERE: lambda v: (
        "only the old run shows where its gradients are unscaled; the new program does not unscale "
        "them with its loss-scale optimizer"
    ),
    Kind.NO_BASELINE: _no_baseline,
    Kind.FEW_STEPS: lambda v: f"{v['steps']} steps are too few to compare",
    Kind.NO_SCALE_RUNS: lambda v: (
        f"only one run skips step {v['step']}, and no disturbed run has another loss scale"
    ),
    Kind.NOTHING_MEASURED: lambda v: (
        "after the first step, the records have neither losses nor norms of gradients that are not "
        "clipped"
    ),
    Kind.UNSTEADY: lambda v: (
        "the old program varies so much that a difference of the losses below "
        f"{_percent(v['would_show'])} would not show"
    ),
    Kind.SCALE_LEVEL: lambda v: (
        f"the loss scale of the new run is {v['factor']:.2g} times as large on average: look at "
        "the precision of its gradients"
    ),
    Kind.BITS: lambda v: "all numbers are equal",
    Kind.WITHIN: lambda v: f"{_within(v)} would show",
}

_RECORD = (
    "record the old program by `tf-lossscale record --disturb 5 FILE SCRIPT`, and compare again: "
    "its disturbed runs show how far rounding carries it."
)
# A small gradient can be rounded by more than the precision of the computation: LayerNormalization
# in float16, by 3 % from TensorFlow 2.4 to 2.21.
_MAY_BE_ROUNDING = (
    "there are no disturbed runs of the old program, which could show that this is rounding: "
    "record it by `tf-lossscale record --disturb 5 FILE SCRIPT`, and compare again."
)
_ADVICE = {
    Kind.NO_BASELINE: _RECORD,
    Kind.NO_SCALE_RUNS: _RECORD,
    Kind.NOT_UNSCALED_HERE: (
        "call `get_unscaled_gradients` (v1: `compute_gradients`) in the new program, too."
    ),
    Kind.FEW_STEPS: f"record at least {limits.FEW.value:g} steps.",
    Kind.NOTHING_MEASURED: (
        "record both programs with one scaled loss for each step, or without clipping."
    ),
    Kind.UNSTEADY: "record both programs in float32, or with dropout off.",
}

_CAUSES: Dict[Cause, _Phrase] = {
    Cause.REDUCED: lambda v: (
        f"only the {v['reduces']} run makes its gradients smaller before it applies them, as "
        "clipping and weight decay do"
    ),
    Cause.NOT_UNSCALED: lambda v: (
        "the new one is larger by the loss scale: scaled twice, or not unscaled"
    ),
    Cause.NOT_SCALED: lambda v: (
        "the new one is smaller by the loss scale: its loss is not scaled, "
        "or its gradients are unscaled twice"
    ),
    Cause.SCALED_SQUARED: lambda v: (
        "they differ by the square of the loss scale: scaled or unscaled twice too often"
    ),
    Cause.SCALED_LOSS: lambda v: (
        "they differ by the loss scale, so one run recorded its scaled loss"
    ),
    Cause.WHOLE_FACTOR: lambda v: (
        "their ratio is a whole number, as of a sum over replicas or batches in place of a mean"
    ),
    Cause.OTHER_DATA: lambda v: (
        "other data in this batch, another forward pass or another loss function (the initial "
        "weights are equal)"
    ),
}
