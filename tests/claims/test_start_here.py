"""What docs/index.md says about mistakes of a migration by hand, and about its picture."""

import runpy

import pytest
from documents import ROOT

tf = pytest.importorskip("tensorflow")

import tf_lossscale as tfls  # noqa: E402 - needs TensorFlow


def losses(mistake):
    """Ten steps of Adam; the loss before each."""
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(
        tf.keras.optimizers.Adam(0.1, epsilon=1e-4)
    )
    weight, found = tf.Variable([1.0, -2.0]), []
    for _ in range(10):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight**2)
            scaled = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, [weight])
        if mistake != "not unscaled":
            gradients = optimizer.get_unscaled_gradients(gradients)
        if mistake == "unscaled twice":
            gradients = [gradient / optimizer.loss_scale for gradient in gradients]
        if mistake == "not unscaled":  # so that most of the penalty is lost
            gradients = [tf.clip_by_norm(gradient, 1e-5) for gradient in gradients]
        optimizer.apply_gradients(zip(gradients, [weight]))
        found.append(float(loss))
    return found


@pytest.mark.parametrize("mistake", ["unscaled twice", "not unscaled"])
def test_a_wrong_migration_still_trains_just_worse(mistake):
    right, wrong = losses(None), losses(mistake)
    assert all(later < earlier for earlier, later in zip(wrong, wrong[1:]))
    assert wrong[-1] > right[-1]


def test_the_run_of_the_picture_is_as_it_is_described():
    chart = runpy.run_path(str(ROOT / "examples" / "loss_scale_chart.py"))
    _, steps = chart["read_record"](chart["RECORDED"])
    run = chart["run_of"]("", steps)
    assert len(run.scales) == 120
    first = [number for number, skipped in enumerate(run.skipped) if number == skipped]
    assert len(first) > 1  # the first steps are skipped
    low = run.scales[len(first)]
    assert low < run.scales[0]
    highest = run.scales.index(max(run.scales[len(first) :]), len(first))
    assert low < run.scales[highest] > min(run.scales[highest:])
    for before, after in zip(run.scales, run.scales[1:]):
        assert after in (before, before * 2, before / 2)
