"""A disturbed run: its weights change a little where they are initialized or restored."""

import numpy as np
import pytest
import recorded
import tensorflow as tf
from recordings import v1_optimizer

from tf_lossscale._recorder import session as recordings
from tf_lossscale._records.destination import Destination
from tf_lossscale._records.disturbed import disturbance, size_for
from tf_lossscale._records.format import OptimizerRecord
from tf_lossscale._records.reading import read_record

tf1 = tf.compat.v1
SIZE = 2.0**-11
START = np.linspace(1.0, 2.0, 64).astype("float32")
STEPS = 6
KERAS = recorded.ours()[-1:] + recorded.originals()[-1:]
TF1 = recorded.TF < (2, 0)


@pytest.fixture(autouse=True)
def in_eager_mode():
    with recorded.eagerly():
        yield


def recording_of(train, path, number=0):
    """Trains, and returns what is recorded; with a number, in the disturbed run of this number."""
    destination = Destination(str(path) + str(number), overwrite=True)
    destination.hold()
    recordings.start(destination, disturbed=disturbance("", number, SIZE) if number else None)
    try:
        train()
    finally:
        recordings.stop()
    record = read_record(str(path) + str(number))
    (run,) = record.optimizers
    return record.header, run


def check(train, path):
    """Asserts that disturbed runs differ from the plain one by their weights or scale only."""
    _, plain = recording_of(train, path)
    assert plain.initial_weights is not None
    hashes = {plain.initial_weights}
    for number, factor in ((1, 1.0), (2, 1.37), (3, 1.0), (4, 0.73)):
        header, run = recording_of(train, path, number)
        assert header.disturbed == disturbance("", number, SIZE)
        hashes.add(run.initial_weights)
        assert run.steps == plain.steps
        assert run.finite == plain.finite
        expected = np.float32(factor) * np.float32(plain.scales)
        np.testing.assert_allclose(run.scales, expected, rtol=1e-6)
        errors = np.abs(np.array(run.loss) / np.array(plain.loss) - 1)
        # A loss of 64 weights averages over their changes; and it is not changed again.
        assert SIZE / 1000 < errors[0] < SIZE, errors
        assert np.all(errors < 3 * SIZE), errors
        repeated = recording_of(train, path, number)[1]
        assert repeated.loss == run.loss
    assert len(hashes) == 5


def in_session(restores):
    """Makes steps in a Session; the variables are restored from a file, or set, if asked for."""

    def train():
        with tf.Graph().as_default():
            weight = tf1.get_variable("weight", initializer=0 * START, use_resource=not TF1)
            other = tf1.get_variable("other", initializer=1.0, trainable=False)
            optimizer = v1_optimizer(tf1.train.GradientDescentOptimizer(0.01), 8.0)
            step = optimizer.minimize(tf.reduce_sum(tf.square(weight)) * other)
            saver = tf1.train.Saver([weight])
            with tf1.Session() as session:
                session.run(tf1.global_variables_initializer())
                weight.load(START, session)
                if restores:
                    saver.save(session, restores)
                    session.run(tf1.global_variables_initializer())
                    saver.restore(session, restores)
                tf1.get_default_graph().finalize()
                for _ in range(STEPS):
                    session.run(step)
                assert session.run(other) == 1.0  # it is not trained

    return train


def test_a_session(tmp_path):
    check(in_session(""), tmp_path / "record")


def test_a_session_that_restores_a_checkpoint(tmp_path):
    check(in_session(str(tmp_path / "model")), tmp_path / "record")


def test_a_monitored_session(tmp_path):
    def train():
        with tf.Graph().as_default():
            weight = tf1.get_variable("weight", initializer=START)
            tf1.train.get_or_create_global_step()
            optimizer = v1_optimizer(tf1.train.GradientDescentOptimizer(0.01), 8.0)
            step = optimizer.minimize(tf.reduce_sum(tf.square(weight)))
            with tf1.train.MonitoredTrainingSession() as session:
                for _ in range(STEPS):
                    session.run(step)

    check(train, tmp_path / "record")


def loop(subject, in_function, prepare):
    """A custom loop; `prepare` gets the variable before the first step."""

    def train():
        weight = recorded.make_variable(subject.kind, START, "weight")
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.01), 8.0, 3)
        if hasattr(optimizer, "build"):
            optimizer.build([weight])

        def step():
            subject.minimize(optimizer, [weight], lambda w: tf.reduce_sum(tf.square(w[0])))

        step = tf.function(step) if in_function else step
        prepare(weight, step)
        for _ in range(STEPS):
            step()

    return train


@pytest.mark.sampled(2, each="subject")
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("subject", KERAS, ids=str)
def test_a_loop(subject, in_function, tmp_path):
    check(loop(subject, in_function, lambda weight, step: None), tmp_path / "record")


@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_weights_that_are_set_after_a_step_are_disturbed_again(in_function, tmp_path):
    """A program may make a step of zeros before it restores the weights."""

    def prepare(weight, step):
        weight.assign(0 * START)
        step()
        weight.assign(START)

    train = loop(KERAS[0], in_function, prepare)
    plain = recording_of(train, tmp_path / "record")[1]
    run = recording_of(train, tmp_path / "record", 1)[1]
    assert run.loss[0] == plain.loss[0] == 0.0
    errors = np.abs(np.array(run.loss[1:]) / np.array(plain.loss[1:]) - 1)
    assert np.all(errors > SIZE / 1000), errors
    assert np.all(errors < 3 * SIZE), errors


@pytest.mark.sampled(2, each="subject")
@pytest.mark.parametrize("subject", KERAS, ids=str)
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_fit_after_weights_were_restored(subject, run_eagerly, tmp_path):
    if subject.kind.keras is not tf.keras and recorded.TF >= (2, 16):
        pytest.skip("the model is of the other Keras")
    keras = tf.keras
    inputs = np.random.RandomState(0).randn(STEPS * 8, 4).astype("float32")
    more = {"jit_compile": False} if hasattr(keras, "Operation") else {}

    def train():
        keras.backend.clear_session()
        model = keras.Sequential([keras.layers.Dense(16), keras.layers.Dense(1)])
        model.build([None, 4])
        kernel = np.linspace(-1.0, 1.0, 64).reshape([4, 16])
        model.set_weights([kernel, np.ones(16), np.ones([16, 1]), np.ones(1)])
        optimizer = subject.dynamic(subject.inner("SGD", learning_rate=1e-3), 8.0, 3)
        model.compile(optimizer, "mse", run_eagerly=run_eagerly, **more)
        model.fit(inputs, inputs[:, :1], batch_size=8, shuffle=False, verbose=0)

    check(train, tmp_path / "record")


@pytest.mark.skipif(TF1, reason="TensorFlow 1.15 restores into variables that exist only")
@pytest.mark.parametrize("deferred", [False, True])
def test_an_object_checkpoint(deferred, tmp_path):
    saved = tf.train.Checkpoint(weight=tf.Variable(START)).save(str(tmp_path / "model"))

    def train():
        checkpoint = tf.train.Checkpoint()
        if deferred:
            checkpoint.restore(saved)
        checkpoint.weight = weight = tf.Variable(0 * START)
        if not deferred:
            checkpoint.restore(saved)
        optimizer = v1_optimizer(tf1.train.GradientDescentOptimizer(0.01), 8.0)

        @tf.function
        def step():
            optimizer.minimize(lambda: tf.reduce_sum(weight * weight), var_list=[weight])

        for _ in range(STEPS):
            step()

    check(train, tmp_path / "record")


def test_the_size_is_that_of_the_least_precise_dtype():
    def size(*dtypes):
        return size_for([OptimizerRecord(computed=list(dtypes))])

    assert size(None, None) == size("float16", "float32") == 2.0**-11
    assert size("bfloat16", "float32") == 2.0**-8
    assert size("float32", None) < 2.0**-16
    assert size_for([OptimizerRecord()]) == 2.0**-11
