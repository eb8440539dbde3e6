"""`compare`: what are facts, what is measured by disturbed runs, and what is not shown."""

import copy
import dataclasses
import json
import math
import os
import pathlib
import random
import time

import pytest
from processes import LONG
from simulated import Run, record

from tf_lossscale._compare import facts, limits, rendering
from tf_lossscale._compare.command import main
from tf_lossscale._compare.comparing import compare, equal_conditions
from tf_lossscale._compare.envelope import measures
from tf_lossscale._compare.judgements import Cause, Kind, Verdict
from tf_lossscale._compare.runs import Again, Conditions, Runs
from tf_lossscale._records.destination import Destination
from tf_lossscale._records.disturbed import disturbance, path_of, paths_of
from tf_lossscale._records.format import COLUMNS, RunHeader, ScaleParameters
from tf_lossscale._records.writing import RecordFile

pytestmark = pytest.mark.by_file

RIGHT = Run()
CALM = Run(steps=300, initial_scale=8.0, growth_steps=10_000, rounding=1e-5)
"""A run without a skipped step."""
FACTOR = 1.37


def again(run):
    """Five disturbed runs of a program, two of them with another loss scale."""
    factors = (1.0, 1.0, FACTOR, 1.0, 1 / FACTOR)
    return [
        Again(
            record(dataclasses.replace(run, disturbed=seed, scale_factor=factor)),
            has_other_scale=factor != 1.0,
        )
        for seed, factor in enumerate(factors, 1)
    ]


def measured(old, new):
    return compare(record(old), record(new), Conditions(again=again(old)))


FACTS = [
    (Run(obeyed=10), Kind.SCALE_RULE, "breaks its update rule at step 10", "before growth"),
    (Run(growth_steps=10), Kind.PARAMETERS, "declared with", "growth_steps 20 and 10"),
    (Run(growth_factor=4.0), Kind.PARAMETERS, "declared", "growth_factor 2 and 4"),
    (Run(shrink_factor=0.25), Kind.PARAMETERS, "declared", "shrink_factor 0.5 and 0.25"),
    (Run(shrink_steps=2, rule="exponential"), Kind.PARAMETERS, "", "shrink_steps 1 and 2"),
    (Run(initial_scale=2048.0), Kind.PARAMETERS, "", "initial_scale 4096 and 2048"),
    (Run(rule="fixed", obeyed=10**6), Kind.PARAMETERS, "", "rule dynamic and fixed"),
    (Run(weights=2), Kind.WEIGHTS, "other initial weights", "restore the same checkpoint"),
    (Run(rate=0.024), Kind.RATE, "learning rates differ from step 0 on", "(0.02 and 0.024)"),
    (Run(changes_rate_at=500), Kind.RATE, "from step 500 on", "(0.02 and 0.01)"),
    (Run(weights=2, known_weights=False), Kind.FIRST_LOSS, "at step 0", "initial weights"),
    (Run(data=2), Kind.FIRST_LOSS, "losses differ at step 0", "other data in this batch"),
    (Run(norm_by_scale=1), Kind.FIRST_NORM, "step 0", "scaled twice, or not unscaled"),
    (Run(norm_by_scale=-1), Kind.FIRST_NORM, "step 0", "unscaled twice"),
    (Run(norm_factor=0.5), Kind.FIRST_NORM, "step 0", "a sum over replicas or batches"),
    (Run(clip=1.0), Kind.FIRST_NORM, "the old run applies 1 of", "and the new one 0.6"),
    (Run(steps=999), Kind.STEPS, "makes 1000 steps and the new one 999", ""),
]


@pytest.mark.parametrize(("run", "kind", "where", "what"), FACTS)
def test_a_fact_needs_no_disturbed_run(run, kind, where, what):
    found = compare(record(RIGHT), record(run))
    assert found.verdict is Verdict.DIFFERENT
    assert found.first.kind is kind
    sentence = rendering.sentence(found)
    assert sentence.startswith("Different: ")
    assert where in sentence
    assert what in sentence


def test_other_settings_slots_and_dtypes_are_facts():
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    for run, settings in ((old, {"clipnorm": None, "beta_1": 0.9}), (new, {"clipnorm": 0.5})):
        run.settings, run.shapes = settings, [[2, 4]]
    found = compare(old, new)
    assert rendering.sentence(found) == (
        "Different: the inner optimizers have clipnorm none and 0.5."
    )
    old.settings = new.settings
    old.slots, new.slots = "trained", "fresh"
    assert "of the new run begins with fresh slots" in rendering.sentence(compare(old, new))
    old.slots = None
    old.computed, new.computed = ["float16"], ["float32"]
    found = compare(old, new)
    assert "(weights) is computed in float16 in the old run and in float32" in (
        rendering.sentence(found)
    )
    old.shapes = new.shapes = [[8]]  # Keras computes normalizations in other dtypes
    assert compare(old, new).first.kind is Kind.NO_BASELINE


@pytest.mark.parametrize("run", [Run(), Run(rule="exponential"), Run(initial_scale=2.0**17)])
def test_equal_runs_are_identical(run):
    found = compare(record(run), record(run))
    assert found.verdict is Verdict.IDENTICAL
    assert rendering.sentence(found).startswith("Same: 1000 steps, bit-identical.")


def test_equal_bits_are_the_same_whatever_the_settings_are():
    # Such as a limit of norms that no gradient reaches.
    old, new = record(CALM), record(CALM)
    old.settings, new.settings = {"clipnorm": None}, {"clipnorm": 100.0}
    old.slots, new.slots = "trained", "fresh"
    found = compare(old, new)
    assert found.verdict is Verdict.IDENTICAL
    assert "the inner optimizers have clipnorm none and 100" in rendering.evidence(found)


@pytest.mark.parametrize(
    "settings",
    [
        ({"learning_rate": 0.1}, {"learning_rate": 0.10000000149}),  # in float32
        ({"momentum": 0.9}, {}),
        ({"clipnorm": None}, {"clipnorm": None}),
    ],
)
def test_settings_that_are_equal_or_unknown_say_nothing(settings):
    old, new = record(CALM), record(CALM)
    old.settings, new.settings = settings
    assert list(facts.judge_settings(Runs(old, new))) == []


@pytest.mark.parametrize("rounding", [1e-7, 1e-5, 1e-3])
def test_without_disturbed_runs_nothing_is_called_rounding(rounding):
    # Nothing is the same because it is small, and nothing different because it is large.
    found = compare(record(RIGHT), record(Run(rounding=rounding)))
    assert found.verdict is Verdict.UNDECIDED
    assert found.first.kind is Kind.NO_BASELINE
    assert "how much rounding matters is not measured" in rendering.sentence(found)
    assert "record --disturb 5" in rendering.advice(found)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_is_within_what_disturbed_runs_vary_by(seed):
    old = Run(weights=seed, data=seed, rounding=1e-4)
    found = measured(old, dataclasses.replace(old, kernel=1))
    assert found.verdict in (Verdict.SAME, Verdict.ALIKE), rendering.sentence(found)
    assert "5 disturbed runs" in rendering.sentence(found)


MISTAKES = {
    "rate": {"rate": 0.0215, "knows_rate": False},
    "schedule": {"changes_rate_at": 100, "knows_rate": False},
    "clipped": {"clip": 0.8},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_leaves_what_disturbed_runs_vary_by(name):
    old = dataclasses.replace(CALM, knows_rate=False)
    new = dataclasses.replace(old, kernel=1, **MISTAKES[name])
    found = measured(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert found.first.kind in (Kind.LEAVES, Kind.FIRST_NORM)


def moved_away(old, others, factor):
    """A run that is in each window so many times as far away as the other runs on average."""
    (loss, *_) = measures(Runs(old, others[0].run, Conditions(again=others)))
    least = limits.LEAST_LOSS.value * old.loss[0]
    new = copy.deepcopy(old)
    for window, following in zip(loss.windows, [*loss.windows[1:], None]):
        end = len(old.loss) if following is None else following.first
        for step in range(max(window.first, 1), end):  # the first loss is judged by itself
            new.loss[step] += factor * window.mean * max(old.loss[step], least)
    return new


@pytest.mark.parametrize(("factor", "leaves"), [(1.8, False), (3.2, True)])
def test_a_run_that_is_a_little_too_far_away_everywhere_leaves_on_average(factor, leaves):
    old, others = record(CALM), again(CALM)
    new = moved_away(old, others, factor)
    conditions = Conditions(again=others)
    (loss, *_) = measures(Runs(old, new, conditions))
    assert len(loss.windows) >= limits.AVERAGED.value
    assert loss.largest.ratio < limits.LEAVES.value, "one window decides"
    found = compare(old, new, conditions)
    assert (found.first.kind is Kind.LEAVES) is leaves
    assert found.verdict is (Verdict.DIFFERENT if leaves else Verdict.SAME)


def test_what_begins_late_is_found_where_it_begins():
    old = dataclasses.replace(CALM, knows_rate=False)
    found = measured(old, dataclasses.replace(old, kernel=1, changes_rate_at=100))
    assert found.first.kind is Kind.LEAVES
    assert 90 <= found.step <= 120
    assert "look at what begins there" in rendering.sentence(found)
    found = measured(old, dataclasses.replace(old, kernel=1, rate=0.021))
    sentence = rendering.sentence(found)
    assert "look at the first updates" in sentence
    assert "sparse (embeddings), missing or summed gradients" in sentence
    assert found.first.cause is None


def test_clipping_is_the_cause_only_where_the_other_run_does_not_clip():
    clipped = dataclasses.replace(CALM, clip=1.2)
    late = dataclasses.replace(clipped, clip=None, weights=clipped.weights)
    # The first gradients are larger than the limit, so that already the first step differs.
    assert compare(record(clipped), record(late)).first.kind is Kind.FIRST_NORM
    old, new = record(clipped), record(dataclasses.replace(clipped, rate=0.03, knows_rate=False))
    old.rate = new.rate
    found = compare(old, new, Conditions(again=again(clipped)))
    assert found.verdict is Verdict.DIFFERENT
    assert all(judgement.cause is not Cause.REDUCED for judgement in found.judgements)
    assert measured(clipped, dataclasses.replace(clipped, kernel=1)).verdict is Verdict.SAME


def test_a_limit_that_begins_to_matter_late_is_no_jump():
    # Norms at a limit are all equal, so the first one below it looks sudden.
    old = dataclasses.replace(CALM, clip=0.6)
    new = record(dataclasses.replace(old, kernel=1))
    everyone = [record(old), new, *(disturbed.run for disturbed in again(old))]
    for run in everyone:
        run.unscaled_norm = [None] * len(run.steps)
    others = [Again(run) for run in everyone[2:]]
    assert compare(everyone[0], new, Conditions(again=others)).verdict is Verdict.SAME


def test_runs_that_part_need_a_disturbed_run_with_another_scale():
    old = Run(steps=400, rounding=5e-2)
    new = dataclasses.replace(old, kernel=1)
    runs = [record(old), record(new)]
    assert Runs(*runs).part < 400
    plain = [disturbed for disturbed in again(old) if not disturbed.has_other_scale]
    found = compare(*runs, Conditions(again=plain))
    assert found.first.kind is Kind.NO_SCALE_RUNS
    assert "record --disturb" in rendering.advice(found)
    found = compare(*runs, Conditions(again=again(old)))
    assert found.verdict is Verdict.ALIKE
    assert f"from step {found.step} on one run skips steps that the other does not" in (
        rendering.sentence(found)
    )


def test_runs_that_count_updates_end_in_different_steps():
    """`StopAtStepHook` of contrib's class makes one step more for each one that is skipped."""
    old = Run(steps=400, rounding=5e-2, updates=300)
    runs = record(old), record(dataclasses.replace(old, kernel=1))
    ends = {len(run.steps) for run in (*runs, *(disturbed.run for disturbed in again(old)))}
    assert len(ends) > 1
    assert compare(*runs, Conditions(again=again(old))).verdict is Verdict.ALIKE
    shorter = record(dataclasses.replace(old, kernel=1, updates=280))
    found = compare(runs[0], shorter, Conditions(again=again(old)))
    assert (found.verdict, found.first.kind) == (Verdict.DIFFERENT, Kind.STEPS)


def test_what_follows_when_no_disturbed_run_skips_the_same_steps_is_measured():
    # The new run skips the same steps as the old one to the end. Disturbed runs do not.
    old = Run(steps=400, rounding=5e-2)
    new = record(old)
    new.loss[390:] = [loss * 3.0 for loss in new.loss[390:]]
    parts = [Runs(record(old), other.run).part for other in again(old)]
    assert max(parts) < 390
    found = compare(record(old), new, Conditions(again=again(old)))
    assert found.verdict is Verdict.DIFFERENT
    assert found.step == 390
    plain = [other for other in again(old) if not other.has_other_scale]
    found = compare(record(old), new, Conditions(again=plain))
    assert (found.verdict, found.first.kind) == (Verdict.UNDECIDED, Kind.NO_SCALE_RUNS)


def test_records_without_losses_that_are_clipped_in_all_steps_show_nothing():
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    others = again(CALM)
    for run in (old, new, *(repeated.run for repeated in others)):
        run.loss = [None] * len(run.steps)
        run.unscaled_norm = [None] * len(run.steps)
        run.norm = [0.5] * len(run.steps)
    new.norm[3] = 0.4
    for repeated, norm in zip(others, (0.41, 0.42, 0.43, 0.44, 0.45)):
        repeated.run.norm[3] = norm
    found = compare(old, new, Conditions(again=others))
    assert (found.verdict, found.first.kind) == (Verdict.UNDECIDED, Kind.NOTHING_MEASURED)
    assert "inf" not in rendering.sentence(found)
    assert "have neither losses nor norms" in rendering.sentence(found)


def test_a_difference_that_is_tolerated_would_not_show():
    new = record(dataclasses.replace(CALM, kernel=1))
    conditions = Conditions(again=again(CALM), loss_tolerance=0.1)
    found = compare(record(CALM), new, conditions)
    assert found.verdict is Verdict.SAME
    assert "losses that differ by 10 % in the first 240 steps" in rendering.sentence(found)


def test_many_more_skips_are_different():
    old = Run(steps=400)
    new = record(old)
    fine = [i for i, finite in enumerate(new.finite) if finite][50:150]
    new.scale = ScaleParameters("unknown", old.initial_scale)
    for index in fine:
        new.finite[index] = new.applied[index] = False
    found = compare(record(old), new, Conditions(again=again(old)))
    assert found.verdict is Verdict.DIFFERENT
    texts = [*rendering.evidence(found), rendering.sentence(found)]
    assert any("skips" in text for text in texts)


@pytest.mark.parametrize(("factor", "kind"), [(1.0, Kind.WITHIN), (4.0, Kind.SCALE_LEVEL)])
def test_a_scale_that_is_larger_on_average_is_not_shown_to_be_right(factor, kind):
    old = Run(steps=400, rounding=5e-2)
    runs = [record(old), record(dataclasses.replace(old, kernel=1))]
    part = Runs(*runs).part
    for run in runs:
        run.scale = ScaleParameters("unknown")
    new = runs[1]
    new.scales[part + 1 :] = [scale * factor for scale in new.scales[part + 1 :]]
    found = compare(*runs, Conditions(again=again(old)))
    assert kind in [judgement.kind for judgement in found.judgements]
    assert (found.verdict is Verdict.UNDECIDED) is (kind is Kind.SCALE_LEVEL)


def test_a_program_that_varies_much_hides_mistakes():
    old, new = record(CALM), record(CALM)
    others = [Again(record(dataclasses.replace(CALM, data=seed))) for seed in (2, 3)]
    for run in (*(disturbed.run for disturbed in others), new):
        run.loss[0], run.norm[0], run.unscaled_norm[0] = (
            old.loss[0],
            old.norm[0],
            old.unscaled_norm[0],
        )
    new.loss[50] *= 1.001
    found = compare(old, new, Conditions(again=others))
    assert found.verdict is Verdict.UNDECIDED
    assert found.first.kind is Kind.UNSTEADY
    assert "varies so much" in rendering.sentence(found)


def test_few_steps_show_little():
    old = dataclasses.replace(CALM, steps=12)
    found = measured(old, dataclasses.replace(old, kernel=1))
    assert found.first.kind is Kind.FEW_STEPS


def test_the_measure_is_the_ratio_of_distances():
    old = dataclasses.replace(CALM, steps=40)
    base = record(old)

    def shifted(part):
        run = record(old)
        run.loss = [loss * (1 - part) for loss in run.loss]
        run.initial_weights = "other"
        return run

    new = shifted(3e-3)
    new.initial_weights = base.initial_weights
    conditions = Conditions(again=[Again(shifted(1e-3)), Again(shifted(-1e-3))])
    (loss, *_) = measures(Runs(base, new, conditions))
    assert loss.metric == "loss"
    assert loss.largest.ratio == pytest.approx(3 / 2, rel=0.01)
    assert loss.on_average == pytest.approx(3 / (4 / 3), rel=0.01)
    assert loss.would_show == pytest.approx(2.5 * 4e-3 / 3, rel=0.01)


NOT_FINITE = (False, True)


def test_what_is_not_right_in_both_runs_is_named():
    runs = [record(CALM), record(CALM)]
    for run in runs:
        for step in range(60, 300):
            run.finite[step], run.applied[step] = NOT_FINITE
            run.loss[step], run.norm[step], run.bad[step] = math.nan, None, 0
    sentence = rendering.sentence(compare(*runs))
    assert sentence == (
        "Same: 300 steps, bit-identical. In both runs, 240 of 300 steps are applied though not "
        "finite, from step 60 on, first in weights."
    )
    for run in runs:
        run.applied = list(run.finite)
        run.scales[60:] = [1.0] * 240
        run.scale = ScaleParameters("unknown")
    sentence = rendering.sentence(compare(*runs))
    assert "240 of 300 steps are skipped, from step 60 on" in sentence
    assert "the loss scale is 1 at the end" in sentence


SHORTER = [
    (440, (True, False), "new run ends after step 439 of 999 (no end mark: it was cut off)"),
    (1000, (True, False), "new run ends at step 999 (no end mark: it was cut off)"),
    (1000, (False, True), "old run ends at step 999 (no end mark: it was cut off)"),
]


@pytest.mark.parametrize(("count", "ended", "message"), SHORTER)
def test_a_run_that_was_cut_off_is_never_the_same(count, ended, message):
    found = compare(record(RIGHT), some_steps(record(RIGHT), count), Conditions(ended=ended))
    assert found.verdict is Verdict.UNDECIDED
    assert message in rendering.sentence(found)
    assert "bit-identical" in rendering.sentence(found)


def some_steps(run, end):
    """The first steps of a run."""
    found = {column.name: getattr(run, column.name)[:end] for column in COLUMNS}
    return dataclasses.replace(run, steps=run.steps[:end], gaps=[], **found)


def test_numbers_that_are_missing_are_said():
    for first in (1, 500):
        other = record(RIGHT)
        other.norm[first:] = other.unscaled_norm[first:] = [None] * (1000 - first)
        other.loss[first:] = [None] * (1000 - first)
        found = compare(record(RIGHT), other)
        assert found.verdict is Verdict.UNDECIDED
        assert f"norms from step {first} on" in rendering.sentence(found)
    other = record(RIGHT)
    other.loss = [None] * 1000
    found = compare(record(RIGHT), other)
    assert found.verdict is Verdict.IDENTICAL
    assert "there are no losses in the new record" in rendering.evidence(found)


def test_a_scale_that_the_program_changes_is_compared_as_it_is():
    runs = [record(Run(obeyed=obeyed)) for obeyed in (10, 10, 9)]
    assert compare(runs[0], runs[1]).verdict is Verdict.IDENTICAL
    found = compare(runs[0], runs[2])
    assert found.first.kind is Kind.SCALES_PART
    assert "the loss scales part at step 9" in rendering.sentence(found)


def test_equal_versions_usually_give_equal_bits():
    old, new = record(RIGHT), record(RIGHT)
    new.loss[400] *= 1 + 1e-7
    found = compare(old, new, Conditions(are_equal=True))
    assert found.verdict is Verdict.UNDECIDED
    assert any("differ from step 400 on" in text for text in rendering.evidence(found))


def test_conditions_are_those_of_both_headers():
    right = RunHeader("2.15.1", "2.15.0", "3.11", ["CPU"], 1, None)
    assert equal_conditions(right, dataclasses.replace(right, python="3.12"))
    others = {"tensorflow": "2.16.1", "keras": None, "devices": ["CPU", "GPU"], "replicas": 2}
    for name, value in {**others, "xla": True}.items():
        assert not equal_conditions(right, dataclasses.replace(right, **{name: value}))
    assert not equal_conditions(RunHeader(), RunHeader())


def test_other_shapes_cannot_be_compared():
    other = record(RIGHT)
    other.shapes = [[2, 4]]
    found = compare(record(RIGHT), other)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "[8] in the old run and [2, 4] in the new one" in rendering.sentence(found)
    other.shapes, other.names = [[8], [8]], ["a", "b"]
    assert "1 variables and the new one 2" in rendering.sentence(compare(record(RIGHT), other))
    nothing = [record(RIGHT) for _ in range(2)]
    for run in nothing:
        run.loss, run.norm = [None] * 1000, [None] * 1000
    assert compare(*nothing).first.kind is Kind.NO_NUMBERS


def test_a_step_that_only_one_run_applies_is_different():
    other = record(RIGHT)
    skipped = other.finite.index(False)
    other.applied[skipped], other.bad[skipped] = True, None
    assert rendering.sentence(compare(record(RIGHT), other)) == (
        f"Different: only the new run applies the gradients of step {skipped}."
    )
    other.bad[skipped], other.finite[skipped] = 0, True
    other.scale = ScaleParameters("unknown", RIGHT.initial_scale)
    assert rendering.sentence(compare(record(RIGHT), other)) == (
        f"Different: in step {skipped}, the new run applies gradients although the gradient of "
        "variable 0 (weights) is not finite; the other run skips the step."
    )


def test_a_variable_without_a_gradient_is_found_in_the_first_step():
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    for run, norms in ((old, [1.0, 0.5]), (new, [1.0, 0.0])):
        run.names, run.shapes, run.norms = ["kernel", "bias"], [[8], [1]], norms
    found = compare(old, new)
    assert found.first.kind is Kind.VARIABLE_NORM
    assert "variable 1 (bias) is 0.5 in the old run and 0 in the new one" in (
        rendering.sentence(found)
    )
    new.norms = [1.0, 0.4999]
    assert compare(old, new).first.kind is Kind.NO_BASELINE
    old.norms, new.norms = [1.0, 1e-6], [1.0, 3e-6]  # zero but for rounding
    assert compare(old, new).first.kind is Kind.NO_BASELINE


def test_a_difference_in_the_first_step_may_be_rounding_if_no_disturbed_run_measures_it():
    """The gradient of a LayerNormalization in float16, of TensorFlow 2.4 and 2.21."""
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    disturbed = again(CALM)
    beta = [0.01789, 0.01735, *(0.01789 * (1 + 0.01 * number) for number in range(1, 6))]
    for run, norm in zip([old, new, *(other.run for other in disturbed)], beta):
        run.names, run.shapes, run.norms = ["kernel", "beta"], [[8], [1]], [0.5, norm]
    found = compare(old, new)
    assert (found.first.kind, found.first.cause) == (Kind.VARIABLE_NORM, None)
    assert rendering.advice(found).startswith("there are no disturbed runs of the old program")
    assert compare(old, new, Conditions(again=disturbed)).verdict is Verdict.SAME
    new.norms = [0.5, 0.0]
    found = compare(old, new, Conditions(again=disturbed))
    assert (found.first.kind, rendering.advice(found)) == (Kind.VARIABLE_NORM, "")


@pytest.mark.parametrize(
    ("factor", "cause"), [(8.0, Cause.NOT_UNSCALED), (1 / 8.0, Cause.NOT_SCALED), (2.0, None)]
)
def test_gradients_that_change_after_they_were_unscaled_have_a_cause(factor, cause):
    old, new = record(CALM), record(CALM)
    new.norm = [norm * factor for norm in new.norm]
    found = compare(old, new)
    assert found.first.kind is Kind.FIRST_NORM
    assert found.first.evidence["metric"] == "kept"
    assert found.first.cause is cause
    assert f"the old run applies 1 of its gradient norm and the new one {factor:g}" in (
        rendering.sentence(found)
    )


@pytest.mark.parametrize(
    ("norms", "cause"),
    [([8.0, 16.0], Cause.NOT_UNSCALED), ([2.0, 4.0], Cause.WHOLE_FACTOR), ([2.0, 7.0], None)],
)
def test_a_cause_in_the_norms_of_variables_must_be_that_of_all(norms, cause):
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    for run, values in ((old, [1.0, 2.0]), (new, norms)):
        run.names, run.shapes, run.norms = ["a", "b"], [[4], [4]], values
    found = compare(old, new)
    assert found.first.kind is Kind.VARIABLE_NORM
    assert found.first.cause is cause


def test_a_disturbed_run_that_is_ahead_does_not_widen_the_limit():
    # With a smaller scale, it applies steps that both other runs skip.
    old = record(Run(steps=60, initial_scale=2.0**18))
    assert old.applied[:3] == [False] * 3
    ahead = record(Run(steps=60, initial_scale=2.0**18, scale_factor=2.0**-8, disturbed=1))
    assert ahead.applied[0]
    new = copy.deepcopy(old)
    new.loss[1] *= 1.05
    found = compare(old, new, Conditions(again=[Again(ahead, has_other_scale=True)]))
    assert (found.first.kind, found.step) == (Kind.FIRST_LOSS, 1)


@pytest.mark.parametrize(("measured_error", "limit"), [(3e-4, 3e-3), (1e-6, 2.5e-4), (None, 1e-3)])
def test_losses_before_the_first_update(measured_error, limit):
    """Ten times what is measured, or a part of what the precision allows without a measurement."""
    others = [] if measured_error is None else again(CALM)
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    for other in others:
        other.run.loss[0] = old.loss[0] * (1 + measured_error)
    for factor in (0.95, 1.05):
        new.loss[0] = old.loss[0] * (1 + factor * limit)
        found = compare(old, new, Conditions(again=others))
        assert (found.first.kind is Kind.FIRST_LOSS) is (factor > 1)


def test_a_program_that_nowhere_unscales_is_not_shown_to_be_the_same():
    # If it clips by the global norm, it may apply equal gradients.
    old, new = record(CALM), record(dataclasses.replace(CALM, kernel=1))
    old.unscaled_by = "program"
    conditions = Conditions(again=again(CALM))
    found = compare(old, new, conditions)
    assert found.verdict is Verdict.UNDECIDED
    assert found.first.kind is Kind.NOT_UNSCALED_HERE
    assert "get_unscaled_gradients" in rendering.advice(found)
    for unscaled_by in ("program", "step"):
        new.unscaled_by = unscaled_by
        assert compare(old, new, conditions).verdict is Verdict.SAME
    old.unscaled_by = new.unscaled_by = None  # as where gradients are accumulated in variables
    assert compare(old, new, conditions).verdict is Verdict.SAME


def test_a_long_run_is_not_less_certain_than_its_beginning():
    def noisy(run, seed):
        """The run, with losses that are no more alike after 240 steps."""
        noise = random.Random(seed)
        run.loss[240:] = [loss * noise.uniform(0.5, 1.5) for loss in run.loss[240:]]
        return run

    long = dataclasses.replace(CALM, steps=1200, knows_rate=False)
    others = [
        Again(noisy(repeated.run, seed), repeated.has_other_scale)
        for seed, repeated in enumerate(again(long))
    ]
    conditions = Conditions(again=others)
    old, new = noisy(record(long), 7), noisy(record(dataclasses.replace(long, kernel=1)), 8)
    found = compare(old, new, conditions)
    assert found.verdict is Verdict.SAME
    assert "in the first 240 steps would show" in rendering.sentence(found)
    wrong = noisy(record(dataclasses.replace(long, kernel=1, rate=0.021)), 8)
    assert compare(old, wrong, conditions).verdict is Verdict.DIFFERENT


def test_optimizers_are_compared_with_those_of_equal_shapes(tmp_path, capsys):
    first, second = record(CALM), record(dataclasses.replace(CALM, data=3))
    second.shapes = [[4, 2]]
    old = write(tmp_path / "old.jsonl", first, second)
    new = write(tmp_path / "new.jsonl", second, first)
    assert main([old, new]) == 0
    assert capsys.readouterr().out.startswith("2 optimizers: 2 identical.")


def test_a_fact_about_one_optimizer_comes_before_what_is_measured_about_another(tmp_path, capsys):
    second = dataclasses.replace(CALM, data=3)
    old = write(tmp_path / "old.jsonl", record(CALM), record(second), header=HEADERS[0])
    for number, runs in enumerate(zip(again(CALM), again(second)), 1):
        header = RunHeader("2.8.4", id=str(number), disturbed=disturbance("a", number, 2.0**-11))
        write(path_of(old, number), *(repeated.run for repeated in runs), header=header)
    wrong = [record(dataclasses.replace(CALM, kernel=1)), record(second)]
    wrong[0].loss[5:] = [loss * 1.2 for loss in wrong[0].loss[5:]]
    wrong[1].rate[0] = 1.0
    new = write(tmp_path / "new.jsonl", *wrong, header=HEADERS[1])
    assert main([old, new]) == 1
    first_line = capsys.readouterr().out.splitlines()[0]
    assert first_line.endswith("Optimizer 1 (Simulated) differs first, at step 0.")


def test_notes_about_files_with_long_names_are_short(tmp_path, capsys):
    folder = tmp_path / ("long " * 40) / ("name " * 40)
    folder.mkdir(parents=True)
    old = write(folder / "old.jsonl", record(CALM), header=HEADERS[0])
    new = write(folder / "new.jsonl", record(dataclasses.replace(CALM, kernel=1)))
    (folder / "old.disturbed-1.jsonl").write_text("{}\n" * 3)
    main([old, new])
    (folder / "new.jsonl").write_text("[]")
    main([old, new])
    out, err = capsys.readouterr()
    assert "is not used" in out
    assert max(map(len, (out + err).splitlines())) <= 300


OTHER_PROGRAMS = [
    (dataclasses.replace(CALM, growth_steps=10), "growth_steps"),
    (dataclasses.replace(CALM, data=6), "losses differ at step 0"),
    (dataclasses.replace(CALM, steps=40), "300 steps and the new one 40"),
]


@pytest.mark.parametrize(("run", "message"), OTHER_PROGRAMS)
def test_a_run_of_another_program_excuses_nothing(run, message):
    conditions = Conditions(again=[*again(CALM), Again(record(run))])
    found = compare(record(CALM), record(dataclasses.replace(CALM, kernel=1)), conditions)
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert message in rendering.sentence(found)


# ----------------------------------------------------------------------------------- the command


def write(path, *runs, header=None, keep=None):
    """Writes a record, of the steps for which `keep` is true, and returns its path."""
    destination = Destination(str(path))
    destination.hold()
    file = RecordFile(destination)
    for run in runs:
        number = file.add_optimizer(header or RunHeader(tensorflow="2.21.0", devices=["CPU"]), run)
        names = [column.name for column in COLUMNS if getattr(run, column.name)]
        columns = zip(*[getattr(run, name) for name in names])
        for step, values in zip(run.steps, columns):
            if keep is None or keep(step):
                file.add_step(number, step, **dict(zip(names, values)))
    file.close(has_ended=True)
    return str(path)


def write_disturbed(path, run, header):
    """Writes the disturbed runs of a program beside its record."""
    for number, other in enumerate(again(run), 1):
        change = disturbance(header.id, number, 2.0**-11)
        of_this = RunHeader(header.tensorflow, id=str(number), disturbed=change)
        write(path_of(path, number), other.run, header=of_this)


HEADERS = RunHeader("2.8.4", id="a"), RunHeader("2.21.0", id="b")


def test_disturbed_runs_are_found_beside_the_record(tmp_path, capsys):
    old = write(tmp_path / "old.jsonl", record(CALM), header=HEADERS[0])
    rounded = record(dataclasses.replace(CALM, kernel=1))
    new = write(tmp_path / "new.jsonl", rounded, header=HEADERS[1])
    assert main([old, new]) == 1
    assert "next: record the old program by" in capsys.readouterr().out
    write_disturbed(old, CALM, HEADERS[0])
    assert main([old, new]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Same: 300 steps, the same steps skipped. The new run is at most ")
    assert "note" not in out
    # Not those of another record of the same name.
    other = write(tmp_path / "other.jsonl", record(CALM), header=RunHeader("2.8.4", id="c"))
    os.replace(other, old)
    assert main([old, new]) == 1
    out = capsys.readouterr().out
    assert out.count("is not used: it was not made with this record") == 5


def test_disturbed_runs_are_those_of_the_name_and_in_order(tmp_path):
    path = str(tmp_path / "lr[1].jsonl")
    names = [path_of(path, 2), path_of(path, 10) + ".gz"]
    for name in (*names, path_of(str(tmp_path / "lr1.jsonl"), 3), path_of(path, 4) + ".old"):
        pathlib.Path(name).touch()
    assert paths_of(path) == names


def test_disturbed_runs_that_began_elsewhere_are_not_used(tmp_path, capsys):
    # A program that continues from its own checkpoint begins where the first run has ended.
    old = write(tmp_path / "old.jsonl", record(CALM), header=HEADERS[0])
    new = write(tmp_path / "new.jsonl", record(dataclasses.replace(CALM, kernel=1)))
    write_disturbed(old, dataclasses.replace(CALM, weights=5), HEADERS[0])
    assert main([old, new]) == 1
    out = capsys.readouterr().out
    assert "no run of the same program from the same start" in out


def test_the_command_reports_and_exits_by_the_verdict(tmp_path, capsys):
    old, same = (write(tmp_path / name, record(RIGHT)) for name in ("old", "same"))
    other = write(tmp_path / "other", record(Run(obeyed=10)))
    assert main([old, same]) == 0
    assert capsys.readouterr().out.startswith("Same: 1000 steps, bit-identical.")
    report, page = tmp_path / "report.json", tmp_path / "page.html"
    assert main([old, other, "--json", str(report), "--html", str(page)]) == 1
    assert "> 10" in capsys.readouterr().out
    (values,) = json.loads(report.read_text())["optimizers"]
    assert (values["verdict"], values["step"]) == ("different", 10)
    (judgement, *_) = values["judgements"]
    assert judgement["kind"] == "rule of the loss scale"
    assert judgement["evidence"]["expected"] == 4096.0
    assert page.read_text().count("<svg") == 6  # loss and norm once more where the runs part
    assert page.read_text().count("<tr class='here'>") == 1  # of the rows around that step
    assert "http" not in page.read_text()  # nothing comes from a network


def test_a_baseline_is_another_run_of_the_old_program(tmp_path, capsys):
    right, noisy, threads = record(CALM), record(CALM), record(CALM)
    for run, part in ((noisy, 1.002), (threads, 1.001)):
        run.loss[1:] = [loss * part for loss in run.loss[1:]]
    paths = [
        write(tmp_path / name, run)
        for name, run in (("old", right), ("new", noisy), ("second", threads))
    ]
    old, new, second = paths
    assert main([old, new]) == 1
    assert main([old, new, "--baseline", second]) == 0
    assert main([old, new, "--baseline", second, "--baseline", second]) == 0
    assert main([old, new, "--baseline", new]) == 2
    capsys.readouterr()
    assert main([old, new, "--baseline", write(tmp_path / "equal", record(CALM))]) == 1
    assert "how much rounding matters is not measured" in capsys.readouterr().out
    assert main([old, old, "--loss-tolerance", "0"]) == 0
    capsys.readouterr()


def test_a_file_that_is_compared_with_itself_is_noted(tmp_path, capsys):
    old, same = (write(tmp_path / name, record(CALM)) for name in ("old", "same"))
    assert main([old, same]) == 0
    assert "note: " not in capsys.readouterr().out
    os.link(old, str(tmp_path / "linked"))
    for path in (old, str(tmp_path / "linked")):
        assert main([old, path, "--json", str(tmp_path / "json")]) == 0
        out = capsys.readouterr().out
        assert out.startswith("Same: 300 steps, bit-identical.")
        assert out.count("note: OLD and NEW are the same file") == 1
        (note,) = json.loads((tmp_path / "json").read_text())["notes"]
        assert note.startswith("OLD and NEW are the same file")


def test_a_replaced_class_is_named_in_the_first_line(tmp_path, capsys):
    replaced = RunHeader("2.21.0", replaced=["tf.keras.A"], supplied=["tf.contrib"])
    old = write(tmp_path / "old", record(RIGHT))
    new = write(tmp_path / "new", record(RIGHT), header=replaced)
    page, report = tmp_path / "page.html", tmp_path / "report.json"
    assert main([old, new, "--html", str(page), "--json", str(report)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Same: 1000 steps, bit-identical.")
    assert first.endswith(
        "The new run had tf.keras.A replaced by the shim and tf.contrib supplied by the shim."
    )
    assert "tf.keras.A replaced by the shim" in page.read_text()
    assert json.loads(report.read_text())["replaced"] == {"old": [], "new": ["tf.keras.A"]}


def test_a_long_verdict_keeps_its_cause_and_the_replaced_class(tmp_path, capsys):
    supplied = [f"tf.keras.mixed_precision.experimental.Name{number}" for number in range(9)]
    replaced = ["tf.keras.mixed_precision.LossScaleOptimizer"]
    header = RunHeader("2.21.0", replaced=replaced, supplied=supplied)
    wrong = record(CALM)
    wrong.norm = [norm / 32768 for norm in wrong.norm]
    wrong.unscaled_norm = [norm / 32768 for norm in wrong.unscaled_norm]
    runs = record(CALM), wrong
    for run in runs:
        run.scales = [32768.0] * len(run.steps)
        run.scale.initial_scale = 32768.0
    files = [tmp_path / "old", tmp_path / "new"]
    old, new = (write(file, run, header=header) for file, run in zip(files, runs))
    assert main([old, new]) == 1
    first, note = capsys.readouterr().out.splitlines()[:2]
    assert first.endswith(
        "or its gradients are unscaled twice. Both runs had "
        "tf.keras.mixed_precision.LossScaleOptimizer replaced by the shim."
    )
    assert "and 7 more supplied by the shim" in note
    assert max(len(first), len(note)) <= 300


def test_no_line_is_longer_than_300_characters(tmp_path, capsys):
    names = [f"tf.{'x' * 40}{number}" for number in range(30)]
    header = RunHeader("2.21.0", supplied=names, replaced=names)
    runs = [record(RIGHT), record(Run(rounding=1e-3))]
    for run in runs:
        run.names = ["n" * 90]
    old = write(tmp_path / "old", *runs, header=header)
    new = write(tmp_path / "new", *reversed(runs), header=header)
    assert main([old, new]) == 1
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 300


def test_each_optimizer_is_compared(tmp_path, capsys):
    old = write(tmp_path / "old", record(RIGHT), record(RIGHT), record(Run(weights=5)))
    new = write(tmp_path / "new", record(RIGHT), record(Run(obeyed=10)), record(Run(weights=6)))
    page = tmp_path / "page.html"
    assert main([old, new, "--html", str(page)]) == 1
    out, text = capsys.readouterr().out, page.read_text()
    summary = "3 optimizers: 1 identical, 2 different. Optimizer 2 (Simulated) differs first, at "
    assert out.startswith(summary + "step 0.")
    assert out.index("Different") < out.index("Same: ")
    places = [summary, *(f"<h2 id='{place}'>Optimizer {2 - place}" for place in range(3))]
    assert sorted(places, key=text.index) == places
    one = write(tmp_path / "one", record(RIGHT))
    assert main([old, one]) == 2
    assert "has 3 loss-scale optimizers, and the new one has 1" in capsys.readouterr().err


def test_a_gap_is_left_out(tmp_path, capsys):
    old = write(tmp_path / "old", record(RIGHT))
    new = write(tmp_path / "new", record(RIGHT), keep=lambda step: not 30 <= step < 75)
    assert main([old, new]) == 1
    out = capsys.readouterr().out
    assert "Same: 955 steps" in out
    assert "Not shown to be the same: steps 30 to 74 of the new run are missing" in out


HEADER = '{"tf_lossscale_record": 2}\n'
OPTIMIZER = (
    '{"optimizer": 0, "class": "A", "scale": {"rule": "fixed"}, "variables": [["w", [2]]]}\n'
)
STEP = '{"optimizer": 0, "step": 0}\n'
BAD_FILES = [
    (None, "cannot be read: No such file"),
    ("", "is empty"),
    ("\x7fELF", "is not a record of tf-lossscale"),
    ('{"step": 1}\n', "is not a record of tf-lossscale"),
    ('{"tf_lossscale_record": 4}\n', "has format 4, and this version of tf-lossscale reads"),
    (HEADER, "has no step"),
    (HEADER + "hello\n", "line 2: not a JSON object"),
    (HEADER + STEP, "line 2: 0 is missing"),
    (HEADER + "[]\n", "line 2: "),
    (HEADER + OPTIMIZER + '{"optimizer": 0, "norms": [1, 2]}\n' + STEP, "norms has not one value"),
    (HEADER[:-2] + ', "disturbed": {"number": 1}}\n', "line 1: "),
]
BAD_STEPS = [
    ('"step": 1, "loss": "much"', "'much' is not a number"),
    ('"step": 1.5', "step 1.5 is not a whole number"),
    ('"step": 1' + "0" * 400, "step (huge) is not a whole number"),
    ('"step": 1, "loss": 1' + "0" * 400, "a number is too large for a float"),
    ('"step": 1, "loss": ' + "[" * 5000, "not a JSON object"),
    ('"step": 1, "finite": 1', "1 is neither true nor false nor null"),
    ('"step": 1, "replica_norms": ["x"]', "'x' is not a number"),
    ('"step": 0', "step 0 follows step 0: two runs in one file?"),
]
for _step, _message in BAD_STEPS:
    _lines = HEADER + OPTIMIZER + STEP + STEP.replace('"step": 0', _step)
    BAD_FILES.append((_lines, "line 4: " + _message))
BAD_SCALES = [
    ('{"rule": "linear"}', "rule 'linear' is none of dynamic"),
    ('{"rule": "dynamic", "growth_steps": "many"}', "growth_steps 'many' is not a whole number"),
    ('{"rule": "dynamic", "growth_factor": null}', "growth_factor is null"),
    ('{"rule": "dynamic", "good_steps": true}', "good_steps True is not a whole number"),
    ('["rule"]', ""),
    ('{"rule": "fixed"}, "slots": "old"', "slots is none of fresh, trained"),
    ('{"rule": "fixed"}, "computed": ["a", "b"]', "computed has not one value"),
    *(
        ('{"rule": "fixed"}, "settings": ' + settings, "")
        for settings in ("[]", "3", '{"a": "much"}', '{"a": {}}')
    ),
]
for _scale, _message in BAD_SCALES:
    _lines = HEADER + OPTIMIZER.replace('{"rule": "fixed"}', _scale) + STEP
    BAD_FILES.append((_lines, "line 2: " + _message))


@pytest.mark.parametrize(("content", "message"), BAD_FILES)
def test_what_is_no_record_is_refused_with_a_sentence(tmp_path, capsys, content, message):
    path = tmp_path / "bad"
    if content is not None:
        path.write_text(content)
    assert main([str(path), str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tf-lossscale compare: {path}")
    assert message in error


def test_infinities_survive_the_file(tmp_path, capsys):
    right = record(RIGHT)
    right.loss[5] = math.nan
    right.loss[6] = math.inf
    assert main([write(tmp_path / "old", right), write(tmp_path / "new", right)]) == 0
    assert "bit-identical" in capsys.readouterr().out


def test_long_records_take_seconds(tmp_path, capsys):
    path = tmp_path / "long"
    count = 1_000_000 if LONG else 50_000
    with open(str(path), "w") as file:
        scale = f'{{"rule": "dynamic", "initial_scale": 8.0, "growth_steps": {2 * count}}}'
        file.write('{"tf_lossscale_record": 2}\n')
        file.write(OPTIMIZER.replace('{"rule": "fixed"}', scale))
        for step in range(count):
            file.write(
                '{"optimizer": 0, "step": ' + str(step) + ', "loss": 1.5, "scale": 8.0, '
                '"finite": true, "applied": true, "norm": 0.25, "bad": null}\n'
            )
        file.write(f'{{"end": {count}}}\n')
    started = time.process_time()
    assert main([str(path), str(path), "--html", str(tmp_path / "page.html")]) == 0
    assert time.process_time() - started < 120  # of the processor; a million takes 25
    assert os.path.getsize(str(tmp_path / "page.html")) < 200_000
    assert f"{count} steps, bit-identical" in capsys.readouterr().out


ODD = [None, True, "x", "nan", "inf", -1, 0, 1.5, 10**400, 1e308, [], {}, [1], {"a": 1}]
ODD += ["\x1b[31m", {"rule": "keras3", "initial_scale": None}, {"rule": "dynamic"}, [["w", ["a"]]]]
KEYS = ("gap", "bad", "norms", "computed", "slots", "rate", "replica_norms", "disturbed")


def mutated(lines, source):
    """The lines with one to three values replaced or left out."""
    lines = copy.deepcopy(lines)
    for _ in range(source.randint(1, 3)):
        line = source.choice(lines)
        if isinstance(line.get("scale"), dict):
            line = source.choice([line, line["scale"]])
        key = source.choice([*line, *KEYS])
        if key in line and source.random() < 0.2:
            del line[key]
        else:
            line[key] = copy.deepcopy(source.choice(ODD))
    return lines


@pytest.mark.parametrize("seed", range(4))
def test_mutated_records_are_read_or_refused(tmp_path, capsys, seed):
    source = random.Random(seed)
    short = Run(steps=12, growth_steps=4)
    header = RunHeader("2.21.0", id="a")
    right = write(tmp_path / "right.jsonl", record(short), header=header)
    write_disturbed(right, short, header)
    with open(right) as file:
        lines = [json.loads(line) for line in file]
    for number in range(100):
        other = tmp_path / str(number)
        other.write_text("".join(json.dumps(line) + "\n" for line in mutated(lines, source)))
        page, result = tmp_path / "page.html", tmp_path / "result.json"
        pair = source.choice([(right, str(other)), (str(other), right), (str(other), str(other))])
        assert main([*pair, "--html", str(page), "--json", str(result)]) in (0, 1, 2)
        assert "\x1b" not in capsys.readouterr().out


def test_one_spike_does_not_flatten_the_page(tmp_path, capsys):
    run = record(RIGHT)
    run.loss[500], run.loss[501] = 1e9, -1e8
    run.finite[500] = not run.finite[500]  # where the page draws the steps by themselves
    old, new = write(tmp_path / "old", record(RIGHT)), write(tmp_path / "new", run)
    page = tmp_path / "page.html"
    assert main([old, new, "--html", str(page)]) == 1
    text = page.read_text()
    assert "&#9650; 1 above, up to 1e+09" in text
    assert "&#9660; 1 below, to -1e+08" in text
    assert "2<sup>12</sup>" in text  # the scale
    assert "Loss, steps 47" in text
    assert "1e+09</span>" not in text.replace("up to 1e+09</span>", "")
    # Text within the drawings would shrink with them on a narrow page; only tables may be wider.
    assert "<text" not in text
    assert "width=device-width" in text
    assert text.count("<table>") == text.count("<div class='scroll'><table>") > 0
    capsys.readouterr()
