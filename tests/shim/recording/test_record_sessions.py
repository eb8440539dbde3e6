"""Recording of contrib and v1 optimizers in Sessions: the record is right, the run the same."""

import gc
import hashlib
import weakref

import numpy as np
import pytest
import replicated
import tensorflow as tf
from recordings import Recording, check_steps, v1_optimizer, v1_variable

import tf_lossscale as tfls
from tf_lossscale._cli.main import main
from tf_lossscale._records.reading import read_record

tf1 = tf.compat.v1
NAMES = ["contrib-ours", "v1-ours", "v1-original"]
if tf.__version__.startswith("1."):
    NAMES.append("contrib-original")
# A fixed scale is another column of the record, whatever the mode.
CASES = [f"{name}:{mode}" for name in NAMES for mode in ("graph-v2-monitored", "graph-references")]
CASES += [f"fixed-{name}:graph-v2" for name in NAMES]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", CASES)
def test_recording_changes_nothing_and_says_what_happened(what):
    check_steps(replicated.of_one(what, "record"), what, 1)


def compare(folder, *cases):
    """Compares the records of two trainings."""
    paths = [str(folder / case.partition(":")[0]) for case in cases]
    for what, path in zip(cases, paths):
        replicated.of_one(what, "record", path)
    return main(["compare", *paths])


@pytest.mark.parametrize(
    "name",
    [name_of_original for name_of_original in NAMES if name_of_original.endswith("original")],
)
@pytest.mark.parametrize("fixed", ["", "fixed-"])
def test_compare_finds_the_original_and_ours_identical(fixed, name, tmp_path, capsys):
    names = name, name.replace("original", "ours")
    assert compare(tmp_path, *(f"{fixed}{name}:graph-references" for name in names)) == 0
    assert "bit-identical" in capsys.readouterr().out


def test_compare_finds_another_loss_scale(tmp_path, capsys):
    assert compare(tmp_path, "contrib-ours:graph", "fixed-contrib-ours:graph") == 1
    assert "declared with rule exponential and fixed" in capsys.readouterr().out


def test_a_loss_that_may_be_of_another_step_is_unknown(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        weight, optimizer = v1_variable(), v1_optimizer()
        pairs = optimizer.compute_gradients(weight * 1.0, [weight])
        pairs_of_other = optimizer.compute_gradients(weight * 2.0, [weight])
        steps = [
            optimizer.apply_gradients(pairs_of_step) for pairs_of_step in (pairs, pairs_of_other)
        ]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for step in steps:
                session.run(step)
    assert recording.record.loss == [None, None]
    np.testing.assert_allclose(recording.record.norm, [1.0, 2.0])


def test_without_norm_the_gradients_are_not_read(tmp_path):
    with Recording(tmp_path, norm=False) as recording:
        strategy = tf.distribute.get_strategy()
        replicated.run(strategy, "contrib-ours:graph-references", 0.5, 1, "nothing")
    record, steps = recording.record, replicated.expected(1, 0.5)
    assert record.norm == record.bad == [None] * len(steps)
    assert record.finite == [step.applied for step in steps]
    assert record.scales == [replicated.SCALE, *(step.scale for step in steps[:-1])]


def test_steps_after_stop_are_not_recorded(tmp_path):
    path = tmp_path / "record.jsonl"
    tfls.recording.start(path)
    with tf.Graph().as_default():
        step = v1_optimizer().minimize(v1_variable() * 1.0)
        with tf1.Session(None) as session:  # runs in this process, too
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
        assert not list(tmp_path.glob("*other*"))
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


@pytest.mark.parametrize("is_kept", [True, False])
def test_weights_are_known_although_the_program_does_not_keep_its_optimizer(is_kept, tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        optimizer = v1_optimizer(tf1.train.MomentumOptimizer(0.5, 0.9))
        weight = v1_variable()
        step = optimizer.minimize(weight * weight)
        if not is_kept:
            del optimizer
            gc.collect()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
    assert recording.record.initial_weights == hashlib.sha256(np.float32(1.0)).hexdigest()[:16]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_running", [False, True], ids=["after stop", "while it goes on"])
def test_a_recording_keeps_no_graph_alive(tmp_path, is_running):
    """The program goes on with the optimizer in another graph, and drops the one before."""
    namespace, references = tfls.compat.v1.mixed_precision, []
    inner = tf1.train.GradientDescentOptimizer(0.5)
    optimizer = namespace.MixedPrecisionLossScaleOptimizer(inner, 8.0)
    with Recording(tmp_path) as recording:
        for _ in range(2):
            with tf.Graph().as_default() as graph, tf1.Session() as session:
                step = optimizer.minimize(v1_variable() * 1.0)
                session.run(tf1.global_variables_initializer())
                session.run(step)
            references.append(weakref.ref(graph))
            del graph, session, step
        if is_running:
            gc.collect()
            assert references[0]() is None
    gc.collect()
    assert references[0]() is None
    del optimizer, inner
    gc.collect()
    assert references[1]() is None
    assert len(recording.record.steps) == 2


def test_the_callables_of_a_session_are_its_own_again(tmp_path):
    """Two hooks replace their `__call__`, which are undone in the order in which they began."""
    cls = tf1.Session._Callable
    before = dict(vars(cls))
    with Recording(tmp_path), tf.Graph().as_default(), tf1.Session() as session:
        step = v1_optimizer().minimize(v1_variable() * 1.0)
        session.run(tf1.global_variables_initializer())
        session.run(step)
        assert dict(vars(cls)) != before
    assert dict(vars(cls)) == before
