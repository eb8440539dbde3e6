"""Recording of contrib and v1 optimizers in Sessions: the record is right, the run the same."""

import numpy as np
import pytest
import tensorflow as tf
from recorded_sessions import NOT_FINITE, STEPS, classes, train
from recordings import Recording, v1_optimizer, v1_variable

import tf_lossscale as tfls
from tf_lossscale._cli.main import main
from tf_lossscale._recording.reading import read_record

tf1 = tf.compat.v1


def check(outcome, record, name):
    """Asserts that a record says what the program printed."""
    assert record.names == ["kernel", "bias"]
    assert record.shapes == [[4, 3], [3]]
    assert record.steps == list(range(STEPS))
    np.testing.assert_array_equal(record.loss, [row[0] for row in outcome.rows])
    assert record.scales == [row[1] for row in outcome.rows]
    counts = [0, *(row[2] for row in outcome.rows)]
    assert record.applied == [later > earlier for earlier, later in zip(counts, counts[1:])]
    if name.startswith("v1 fixed"):
        assert all(record.applied)  # this class applies what is not finite, so all weights are NaN
        assert record.finite == [step < NOT_FINITE[0] for step in range(STEPS)]
        assert record.scale.rule == "fixed"
    else:
        assert record.finite == [step not in NOT_FINITE for step in range(STEPS)]
        assert record.applied == record.finite
        assert [each is None for each in record.norm] == [not each for each in record.finite]
        assert [each == 0 for each in record.bad] == [not each for each in record.finite]


# The global step of TensorFlow 1.15 is a reference variable, which control flow v2 cannot take.
MODES = [(True, True, not tf.__version__.startswith("1.")), (False, False, False)]
# A fixed scale is another column of the record, whatever the mode.
CASES = [(name, *mode) for name in classes() for mode in MODES[: 1 if "fixed" in name else 2]]


@pytest.mark.parametrize("args", CASES, ids=lambda args: "-".join(map(str, args)))
def test_recording_changes_nothing_and_says_what_happened(args, tmp_path):
    with Recording(tmp_path) as recording:
        outcome = train(*args)
    np.testing.assert_equal(outcome.kept, train(*args).kept)
    check(outcome, recording.record, args[0])


def records(folder, *names):
    """Yields the records of trainings with some classes."""
    for name in names:
        with Recording(folder / name) as recording:
            train(name, True, False, False)
        yield recording.path


@pytest.mark.parametrize(
    ("original", "ours"),
    [(each, each.replace(" original", "")) for each in classes() if each.endswith("original")],
)
def test_compare_finds_the_original_and_ours_identical(original, ours, tmp_path, capsys):
    assert main(["compare", *records(tmp_path, original, ours)]) == 0
    assert "bit-identical" in capsys.readouterr().out


def test_compare_finds_another_loss_scale(tmp_path, capsys):
    assert main(["compare", *records(tmp_path, "contrib", "v1")]) == 1
    assert "declared with shrink_steps 2 and 1" in capsys.readouterr().out


def test_a_loss_that_may_be_of_another_step_is_unknown(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        weight, optimizer = v1_variable(), v1_optimizer()
        pairs = optimizer.compute_gradients(weight * 1.0, [weight])
        pairs_of_other = optimizer.compute_gradients(weight * 2.0, [weight])
        steps = [optimizer.apply_gradients(each) for each in (pairs, pairs_of_other)]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for step in steps:
                session.run(step)
    assert recording.record.loss == [None, None]
    np.testing.assert_allclose(recording.record.norm, [1.0, 2.0])


def test_without_norm_the_gradients_are_not_read(tmp_path):
    with Recording(tmp_path, norm=False) as recording:
        outcome = train("contrib", True, False, False)
    record = recording.record
    assert record.norm == [None] * STEPS
    assert record.bad == [None] * STEPS
    assert record.finite == [step not in NOT_FINITE for step in range(STEPS)]
    assert record.scales == [row[1] for row in outcome.rows]


def test_steps_after_stop_are_not_recorded(tmp_path):
    path = tmp_path / "record.jsonl"
    tfls.recording.start(path)
    with tf.Graph().as_default():
        step = v1_optimizer().minimize(v1_variable() * 1.0)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
            tfls.recording.stop()
            session.run(step)
    assert read_record(str(path)).optimizers[0].steps == [0]


@pytest.mark.filterwarnings("ignore:No step was recorded")
def test_a_second_recording_is_refused(tmp_path):
    tfls.recording.start(tmp_path / "record.jsonl")
    try:
        with pytest.raises(tfls.recording.RecordingError, match="already recording"):
            tfls.recording.start(tmp_path / "other.jsonl")
    finally:
        tfls.recording.stop()
    tfls.recording.stop()


@pytest.mark.filterwarnings("ignore:No step was recorded")
def test_only_the_originals_are_changed_and_as_before_after_stop(tmp_path):
    namespace = getattr(tf1, "mixed_precision", None)
    if not hasattr(namespace, "MixedPrecisionLossScaleOptimizer"):
        namespace = tf1.train.experimental
    originals = [namespace.MixedPrecisionLossScaleOptimizer]
    ours = [
        tfls.contrib.mixed_precision.LossScaleOptimizer,
        tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer,
        tfls.keras.mixed_precision.LossScaleOptimizer,
    ]

    def methods(classes):
        names = ("apply_gradients", "compute_gradients", "get_scaled_loss", "apply")
        return [getattr(cls, name, None) for cls in classes for name in names]

    before = [methods(originals), methods(ours)]
    tfls.recording.start(tmp_path / "record.jsonl")
    during = [methods(originals), methods(ours)]
    tfls.recording.stop()
    assert during[0] != before[0]
    assert during[1] == before[1]
    assert [methods(originals), methods(ours)] == before


class Estimators:
    """Training with an Estimator."""

    @staticmethod
    def train(name, folder):
        def model(features, labels, mode):
            weight = tf1.get_variable("weight", initializer=[[0.5]])
            loss = tf.reduce_mean(tf.square(tf.matmul(features, weight) - labels))
            optimizer, _ = classes()[name](tf1.train.GradientDescentOptimizer(0.1))
            step = optimizer.minimize(loss, tf1.train.get_global_step())
            return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

        def data():
            rows = tf1.data.Dataset.from_tensor_slices(
                (np.arange(8, dtype=np.float32)[:, None], np.ones([8, 1], np.float32))
            )
            return rows.batch(2)

        estimator = tf1.estimator.Estimator(
            model, folder, tf1.estimator.RunConfig(tf_random_seed=3, log_step_count_steps=None)
        )
        estimator.train(data)
        names = sorted(estimator.get_variable_names())
        return {each: estimator.get_variable_value(each).tolist() for each in names}


if hasattr(tf1, "estimator"):

    def test_an_estimator_trains_the_same(tmp_path):
        unrecorded = Estimators.train("v1", str(tmp_path / "unrecorded"))
        with Recording(tmp_path) as recording:
            assert Estimators.train("v1", str(tmp_path / "recorded")) == unrecorded
        record = recording.record
        assert record.applied == [True] * 4
        assert record.loss[0] == pytest.approx(0.625)
        assert record.scale.growth_steps == 3
