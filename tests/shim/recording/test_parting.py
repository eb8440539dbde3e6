"""`compare` where the runs part: by rounding, by a loss that is not scaled, by a wrong test."""

import math

from simulated import Run, record

from tf_lossscale._compare.comparing import Verdict, compare
from tf_lossscale._compare.scale_rules import parameters_that_differ
from tf_lossscale._records.format import ScaleParameters

# A scale that never changes: the runs part by nothing but what a test does.
CALM = Run(steps=600, initial_scale=8.0, growth_steps=10_000)


def with_losses(factor):
    """The record of a run whose losses are changed by a function of the step."""
    run = record(CALM)
    run.loss = [loss * factor(step) for step, loss in enumerate(run.loss)]
    return run


def test_errors_that_grow_slowly_are_rounding():
    # As in a recurrent network in float16: larger by e every 20 steps.
    new = with_losses(lambda step: 1 + min(1e-6 * math.exp(step / 20), 0.01) * (-1) ** step)
    assert compare(record(CALM), new).verdict is Verdict.SAME
    new = with_losses(lambda step: 1 + min(1e-6 * math.exp(step / 20), 0.1) * (-1) ** step)
    found = compare(record(CALM), new)
    assert found.verdict is Verdict.UNDECIDED  # too large to be called rounding on these grounds
    assert "compare on one version first, in float32, or with --baseline" in found.sentence


def test_losses_that_mostly_differ_to_one_side_are_a_doubt():
    # As with a learning rate 1.1 times as large, among batches that differ much.
    def drifting(mean):
        sides = [min(3e-5 * step, 4e-3) * (-1) ** step for step in range(CALM.steps)]
        return with_losses(lambda step: 1 + min(1e-7 * step**2, mean) + sides[step])

    assert compare(record(CALM), drifting(3e-3)).verdict is Verdict.SAME
    found = compare(record(CALM), drifting(6e-3))
    assert found.verdict is Verdict.UNDECIDED
    assert "losses of 40 steps differ by 0.6% on average, mostly to one side" in found.sentence
    # A skip that differs late does not excuse what precedes it.
    for mean, verdict in ((3e-3, Verdict.ALIKE), (6e-3, Verdict.UNDECIDED)):
        new = drifting(mean)
        new.finite[570] = new.applied[570] = False
        new.scale = ScaleParameters("unknown", new.scale.initial_scale)
        found = compare(record(CALM), new)
        assert found.verdict is verdict
    assert "mostly to one side" in found.sentence


def test_a_drift_that_goes_one_way_is_different():
    new = with_losses(lambda step: 1 + min(1e-6 * math.exp(step / 20), 0.1))
    for first in (CALM.steps, 1):  # from there on, every second loss is not known
        new.loss[first::2] = [None] * len(new.loss[first::2])
        found = compare(record(CALM), new)
        assert found.verdict is Verdict.DIFFERENT
        assert "to one side" in found.sentence


def test_an_update_that_differs_by_more_than_the_noise_before_it_is_a_mistake():
    noise = [1e-5 * (-1) ** step for step in range(600)]
    new = with_losses(lambda step: 1 + noise[step])
    assert compare(record(CALM), new).verdict is Verdict.SAME
    new = with_losses(lambda step: 1 + noise[step] * (600 if step > 1 else 1))
    found = compare(record(CALM), new)
    assert found.sentence.startswith("Different: the losses differ from step 2 on, by 0.006;")
    assert "look at momentum" in found.sentence


def test_a_limit_of_norms_that_only_one_run_has_is_named():
    old, new = record(CALM), record(CALM)
    limit = sorted(new.norm)[-20]
    new.norm = [min(each, limit) for each in new.norm]
    found = compare(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert f"the new run clips gradients to a norm of {limit:.4g}, and" in found.sentence
    assert "the old run clips" in compare(new, old).sentence
    assert compare(new, new).verdict is Verdict.IDENTICAL
    # A gradient that is missing after clipping: the norms are smaller, not larger.
    old.norm = [limit] * len(old.norm)
    new.norm = [limit * (0.989 - 3e-5 * step) for step in range(len(new.norm))]
    assert "smaller, from step 0 on" in compare(old, new).sentence


def test_a_loss_that_is_not_scaled_is_found_in_few_steps():
    old, new = record(Run(steps=60, initial_scale=2.0**22)), record(Run(steps=60))
    new.scales = [2.0**22 * 2.0 ** (step // 20) for step in range(60)]
    new.scale = old.scale
    new.finite = new.applied = [True] * 60
    new.loss = [None] * 60
    found = compare(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert "cause: loss that is not scaled in the new run" in found.sentence


def test_gradients_of_which_half_is_missing_are_found_after_a_skip():
    old, new = record(Run(steps=60)), record(Run(steps=60, norm_factor=0.5))
    new.norm[0] = None
    new.finite[0] = new.applied[0] = False
    new.scale = ScaleParameters("unknown", old.scale.initial_scale)
    found = compare(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert "gradient norms differ by a factor of 0.5" in found.sentence


def test_a_run_that_applies_what_is_not_finite_is_named():
    old, new = record(RIGHT_SCALE), record(RIGHT_SCALE)
    step = new.finite.index(False)
    new.finite[step] = new.applied[step] = True
    assert new.bad[step] == 0
    found = compare(old, new)
    assert found.sentence == (
        f"Different: in step {step}, the new run applies gradients of which that of variable 0 "
        "(weights) is not finite; the other run skips the step."
    )


RIGHT_SCALE = Run(steps=300, initial_scale=2.0**17, rule="unknown")


def test_a_fixed_scale_has_no_other_parameters():
    fixed, dynamic = ScaleParameters("fixed", 8.0), ScaleParameters("dynamic", 8.0, 20)
    assert parameters_that_differ(fixed, dynamic) == ["rule fixed and dynamic"]
    assert parameters_that_differ(ScaleParameters("unknown", 8.0), dynamic) == []
    keras_3 = ScaleParameters("keras3", 8.0, 10)
    assert parameters_that_differ(dynamic, keras_3) == ["growth_steps 20 and 10"]
