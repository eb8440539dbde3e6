"""`compare` where the runs part: by rounding, by a loss that is not scaled, by a wrong test."""

import math

from simulated import Run, record

from tf_lossscale._recording.comparing import Verdict, compare
from tf_lossscale._recording.record import ScaleParameters
from tf_lossscale._recording.scale_rules import parameters_that_differ

# A scale that never changes: the runs part by nothing but what a test does.
CALM = Run(steps=600, initial_scale=8.0, growth_steps=10_000)


def with_losses(factor):
    """The record of a run whose losses are changed by a function of the step."""
    run = record(CALM)
    run.loss = [loss * factor(step) for step, loss in enumerate(run.loss)]
    return run


def test_errors_that_grow_slowly_are_rounding():
    # As in a recurrent network in float16: larger by e every 40 steps, up to a tenth.
    new = with_losses(lambda step: 1 + min(1e-6 * math.exp(step / 20), 0.1) * (-1) ** step)
    found = compare(record(CALM), new)
    assert found.verdict is Verdict.ALIKE
    assert "where rounding errors have grown large" in found.sentence
    assert 190 < found.step < 210


def test_errors_that_jump_are_a_mistake():
    new = with_losses(lambda step: 1.1 if step == 300 else 1.0)
    found = compare(record(CALM), new)
    assert found.sentence.startswith("Different: the losses differ at step 300")


def test_a_drift_that_goes_one_way_is_different():
    new = with_losses(lambda step: 1 + min(1e-6 * math.exp(step / 20), 0.1))
    found = compare(record(CALM), new)
    assert found.verdict is Verdict.DIFFERENT
    # Rounding can do the same to a sensitive program, and the sentence says what to do.
    assert "compare on one version first, and see --baseline" in found.sentence


def test_a_loss_that_is_not_scaled_is_found_in_few_steps():
    old, new = record(Run(steps=60, initial_scale=2.0**22)), record(Run(steps=60))
    new.scales = [2.0**22 * 2.0 ** (step // 20) for step in range(60)]
    new.scale = old.scale
    new.finite = new.applied = [True] * 60
    new.loss = [None] * 60
    found = compare(old, new)
    assert found.verdict is Verdict.DIFFERENT
    assert "likely cause: loss that is not scaled in the new run" in found.sentence


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
