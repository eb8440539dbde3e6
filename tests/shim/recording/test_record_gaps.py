"""What is easily missed: steps built earlier, in threads, or that end with an error.

Steps that cannot be recorded are refused with a sentence, and not recorded wrongly.
"""

import contextlib
import importlib
import os
import threading

import numpy as np
import pytest
import recorded
import replicas
import replicated
import tensorflow as tf
from processes import run_python
from recordings import Recording, v1_optimizer, v1_variable

import tf_lossscale as tfls
from tf_lossscale._recorder import recorder
from tf_lossscale._records.reading import read_record

tf1 = tf.compat.v1
INF = float("inf")
TF1 = tf.__version__.startswith("1.")

eager_only = pytest.mark.skipif(TF1, reason="TensorFlow 1.15 records Sessions in this file")


class Program:
    """Steps of one weight; remembers what each did, as the program itself sees it."""

    def __init__(self, scale=8.0, inner=None):
        self.weight = tf.Variable(1.0, name="weight")
        self.optimizer = v1_optimizer(inner, scale)
        self.scale = self.optimizer._loss_scale
        self.function = tf.function(self.step)
        self.seen = []

    def step(self, factor):
        self.optimizer.minimize(lambda: self.weight * factor, var_list=[self.weight])

    def run(self, factors, how=None):
        for factor in factors:
            scale, loss = float(self.scale()), float(self.weight) * factor
            (how or self.function)(tf.constant(factor))
            self.seen.append((loss, scale, factor != INF))


def rows(path, number=0):
    record = read_record(str(path)).optimizers[number]
    return list(zip(record.loss, record.scales, record.applied))


@eager_only
@pytest.mark.parametrize("options", [{}, replicated.JIT], ids=["function", "xla"])
def test_a_function_of_an_earlier_recording_is_recorded_again(options, tmp_path):
    program = Program()
    program.function = tf.function(program.step, **options)
    for name in ("first", "second"):
        tfls.recording.start(tmp_path / name)
        program.seen.clear()
        program.run([1.0, INF, 1.0])
        program.run([2.0], program.step)
        program.run([1.0])
        tfls.recording.stop()
        assert rows(tmp_path / name) == program.seen
        assert len(read_record(str(tmp_path / name)).optimizers) == 1
        program.run([1.0, 1.0])  # between the recordings


def test_a_graph_of_an_earlier_recording_is_recorded_again(tmp_path):
    with tf.Graph().as_default():
        factor, optimizer = tf1.placeholder(tf.float32, []), v1_optimizer()
        loss = v1_variable() * factor
        scale = optimizer._loss_scale()
        tfls.recording.start(tmp_path / "none")
        with pytest.warns(RuntimeWarning, match="No step was recorded"):
            tfls.recording.stop()
        tfls.recording.start(tmp_path / "first")
        step = optimizer.minimize(loss)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for name in ("first", "second"):
                if name == "second":
                    tfls.recording.start(tmp_path / name)
                seen = []
                for value in (1.0, INF, 2.0):
                    before = session.run([loss, scale], {factor: value})
                    session.run(step, {factor: value})
                    seen.append((*before, value != INF))
                tfls.recording.stop()
                assert rows(tmp_path / name) == seen
                session.run(step, {factor: 1.0})


@eager_only
def test_a_function_that_was_built_before_recording_is_noticed(tmp_path):
    program, other = Program(), Program()
    program.run([1.0])
    tfls.recording.start(tmp_path / "record")
    program.run([1.0, 1.0])
    other.run([1.0])
    with pytest.warns(RuntimeWarning, match="created before recording began"):
        tfls.recording.stop()
    assert rows(tmp_path / "record") == other.seen


def test_a_graph_that_was_built_before_recording_is_noticed(tmp_path):
    with tf.Graph().as_default():
        namespace = tfls.contrib.mixed_precision
        optimizer = namespace.LossScaleOptimizer(
            tf1.train.GradientDescentOptimizer(0.5), namespace.FixedLossScaleManager(8)
        )
        step = optimizer.minimize(v1_variable() * 1.0)
        tfls.recording.start(tmp_path / "record")
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
    with pytest.warns(RuntimeWarning, match="LossScaleOptimizer was created before"):
        tfls.recording.stop()


@pytest.mark.parametrize(
    "namespace",
    [tfls.contrib.mixed_precision]
    + ([importlib.import_module("tensorflow.contrib.mixed_precision")] if TF1 else []),
    ids=["ours", "original"][: 1 + TF1],
)
def test_an_iterator_of_pairs_is_as_empty_as_without_recording(tmp_path, namespace):
    """TensorFlow's class of contrib reads the pairs twice, and so it refuses an iterator."""

    def outcome():
        with tf.Graph().as_default():
            optimizer = namespace.LossScaleOptimizer(
                tf1.train.GradientDescentOptimizer(0.5), namespace.FixedLossScaleManager(8)
            )
            variable = v1_variable()
            pairs = zip([tf.ones_like(variable)], [variable])
            try:
                optimizer.apply_gradients(pairs)
            except ValueError as error:
                return str(error)
            return "built"

    without = outcome()
    tfls.recording.start(tmp_path / "record")
    with_recording = outcome()
    with pytest.warns(RuntimeWarning):  # no step was run
        tfls.recording.stop()
    assert with_recording == without


@eager_only
def test_steps_that_are_missing_in_between_are_noticed(tmp_path):
    program = Program()
    program.run([1.0])
    tfls.recording.start(tmp_path / "record")
    program.run([1.0], program.step)
    program.run([1.0])  # not recorded
    program.run([1.0], program.step)
    with pytest.warns(RuntimeWarning, match="between the recorded steps 0 and 1"):
        tfls.recording.stop()


@eager_only
def test_a_step_that_ends_with_an_error_is_not_recorded(tmp_path):
    class Failing(tf1.train.GradientDescentOptimizer):
        fails = False

        def apply_gradients(self, *args, **kwargs):
            if self.fails:
                raise ValueError("on purpose")
            return super().apply_gradients(*args, **kwargs)

    inner = Failing(0.5)
    program = Program(inner=inner)
    tfls.recording.start(tmp_path / "record")
    program.run([1.0], program.step)
    inner.fails = True
    with pytest.raises(ValueError, match="on purpose"):
        program.step(tf.constant(1.0))
    inner.fails = False
    program.run([INF, 2.0], program.step)
    tfls.recording.stop()
    assert rows(tmp_path / "record") == program.seen


@eager_only
def test_threads_with_an_optimizer_each(tmp_path):
    inner = tf1.train.GradientDescentOptimizer(0.5)  # the same one for both
    programs = [Program(inner=inner), Program(16.0, inner=inner)]
    factors = [[1.0, INF, 2.0] * 10, [INF, 2.0, 1.0] * 10]
    tfls.recording.start(tmp_path / "record")
    for program in programs:
        program.run([1.0], program.step)
    threads = [
        threading.Thread(target=program.run, args=(values, program.step))
        for program, values in zip(programs, factors)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tfls.recording.stop()
    for number, program in enumerate(programs):
        np.testing.assert_equal(rows(tmp_path / "record", number), program.seen)


@eager_only
def test_the_loss_of_another_thread_is_not_taken(tmp_path):
    program = Program()
    program.run([1.0], program.step)
    noted, applied = threading.Event(), threading.Event()

    def only_loss():
        with tf.GradientTape():
            program.optimizer.compute_gradients(lambda: program.weight * 7.0, [program.weight])
        noted.set()
        applied.wait(60)

    tfls.recording.start(tmp_path / "record")
    thread = threading.Thread(target=only_loss)
    thread.start()
    assert noted.wait(60)
    program.optimizer.apply_gradients([(tf.constant(1.0), program.weight)])
    applied.set()
    thread.join()
    tfls.recording.stop()
    assert [loss for loss, _, _ in rows(tmp_path / "record")] == [None]


def accumulating():
    """Applies the sum of the gradients of two batches; returns the batches and weights it saw."""
    seen = []
    with tf.Graph().as_default():
        data = tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(1, 100)).get_next()
        weight, optimizer = v1_variable(), v1_optimizer()
        total = tf1.get_variable("total", initializer=0.0, use_resource=True, trainable=False)
        fed = tf1.placeholder(tf.float32, [])
        batch = tf.cast(data, tf.float32)
        (pair,) = optimizer.compute_gradients(weight * batch * fed, [weight])
        add = total.assign_add(pair[0])
        step = optimizer.apply_gradients([(total.read_value(), weight)])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for number in range(4):
                seen.append(float(session.run([batch, add], {fed: 1.0})[0]))
                if number % 2:
                    session.run(step)
                    seen.append(float(session.run(weight)))
                    session.run(total.assign(0.0))
    return seen


def test_accumulated_gradients_read_no_other_batch(tmp_path):
    with Recording(tmp_path) as recording:
        seen = accumulating()
    assert seen == accumulating()
    record = recording.record
    assert record.loss == [None, None]
    assert record.applied == [True, True]
    assert record.norm == [3.0, 7.0]


FORKING = """
import os, sys
from tf_lossscale import recording
from tf_lossscale._recorder import session
from tf_lossscale._records.format import OptimizerRecord, RunHeader
recording.start(sys.argv[1])
file = session._recording.file
file.add_optimizer(RunHeader(), OptimizerRecord())
child = os.fork()
if child == 0:
    file.add_step(0, 0)
    file.add_step(0, 1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_says_that_it_is_not_recorded(tmp_path):
    path = tmp_path / "record"
    done = run_python("-W", "ignore", "-c", FORKING, str(path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("was forked from one that records") == 1
    assert "nothing was recorded" in done.stderr  # of the process itself
    assert not path.exists()


@contextlib.contextmanager
def refused(folder, match):
    with pytest.raises(tfls.recording.RecordingError, match=match), Recording(folder):
        yield


def step_of_one():
    return v1_optimizer().apply_gradients([(tf.constant(1.0), v1_variable())])


def test_a_session_on_a_server(tmp_path):
    server = tf1.train.Server.create_local_server()
    with refused(tmp_path, r"Session on grpc://.* without a target"), tf.Graph().as_default():
        train = step_of_one()
        with tf1.Session(server.target) as session:
            session.run(tf1.global_variables_initializer())
            session.run(train)


@pytest.mark.filterwarnings("ignore:No step was recorded")
def test_a_session_on_a_server_without_recorded_steps(tmp_path):
    server = tf1.train.Server.create_local_server()
    tfls.recording.start(tmp_path / "record.jsonl")
    try:
        with tf.Graph().as_default(), tf1.Session(server.target) as session:
            assert session.run(tf.constant(1)) == 1
    finally:
        tfls.recording.stop()


@pytest.mark.filterwarnings("ignore:No step was recorded")
def test_sessions_are_as_before_after_stop(tmp_path):
    cls = importlib.import_module("tensorflow.python.client.session").BaseSession
    before = cls._extend_graph
    tfls.recording.start(tmp_path / "record.jsonl")
    assert cls._extend_graph is not before
    tfls.recording.stop()
    assert cls._extend_graph is before


def test_a_graph_that_is_finalized(tmp_path):
    with refused(tmp_path, "The graph is finalized"), tf.Graph().as_default() as graph:
        optimizer, pairs = v1_optimizer(), [(tf.constant(1.0), v1_variable())]
        graph.finalize()
        optimizer.apply_gradients(pairs)


def test_several_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "has_several_workers", lambda strategy: True)
    strategy = tf.distribute.MirroredStrategy(["cpu:0"])
    refusal = refused(tmp_path, "A step on several workers cannot be recorded")
    with tf.Graph().as_default(), refusal, strategy.scope():
        replicas.run(strategy, step_of_one)


@eager_only
def test_xla_on_several_replicas(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "replica_count", lambda: 2)
    program = Program()
    program.function = tf.function(program.step, autograph=False, **replicated.JIT)
    with refused(tmp_path, "on several replicas that XLA compiles"):
        program.run([1.0])


@pytest.mark.skipif(not hasattr(tf.keras, "Operation"), reason="Keras 2 has one backend")
def test_another_backend_of_keras_3(tmp_path, monkeypatch):
    weight = tf.keras.Variable(1.0)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
    with refused(tmp_path, "with the TensorFlow backend only"):
        monkeypatch.setattr(importlib.import_module("keras").config, "backend", lambda: "jax")
        optimizer.apply([tf.constant(1.0)], [weight])


def test_a_loss_that_is_no_scalar_is_unknown(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        step = v1_optimizer().minimize(v1_variable() * [1.0, 2.0])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
    assert (recording.record.loss, recording.record.norm) == ([None], [3.0])


def test_a_saver_writes_what_records_into_the_graph(tmp_path):
    def size(folder):
        folder.mkdir()
        with tf.Graph().as_default(), tf1.Session() as session:
            step = v1_optimizer().minimize(v1_variable() * 1.0)
            session.run(tf1.global_variables_initializer())
            session.run(step)
            tf1.train.Saver().save(session, str(folder / "model"))
        return os.path.getsize(str(folder / "model.meta"))

    with Recording(tmp_path):
        recorded_size = size(tmp_path / "recorded")
    assert recorded_size > size(tmp_path / "plain")


def test_parameter_servers(tmp_path):
    strategy = tf1.distribute.experimental.ParameterServerStrategy()
    refusal = refused(tmp_path, "under ParameterServerStrategy")
    with tf.Graph().as_default(), refusal, strategy.scope():
        replicas.run(strategy, step_of_one)


def test_a_tpu(tmp_path):
    replication = importlib.import_module(
        "tensorflow.python.tpu.tpu_replication"
        if recorded.TF >= (2, 12)
        else "tensorflow.python.tpu.tpu"
    )
    with refused(tmp_path, "on a TPU"), tf.Graph().as_default():
        context = replication.TPUReplicateContext("cluster", 2, tf.no_op())
        context.Enter()
        try:
            step_of_one()
        finally:
            context.Exit()
