"""Steps that cannot be recorded are refused with a sentence, and not recorded wrongly."""

import contextlib
import importlib

import pytest
import tensorflow as tf
from recordings import Recording, v1_optimizer, v1_variable

import tf_lossscale as tfls

tf1 = tf.compat.v1
TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])


@contextlib.contextmanager
def refused(folder, match):
    with pytest.raises(tfls.recording.RecordingError, match=match), Recording(folder):
        yield


def step():
    return v1_optimizer().apply_gradients([(tf.constant(1.0), v1_variable())])


def test_a_session_on_a_server(tmp_path):
    server = tf1.train.Server.create_local_server()
    with refused(tmp_path, r"Session on grpc://.* without a target"), tf.Graph().as_default():
        train = step()
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


def test_parameter_servers(tmp_path):
    strategy = tf1.distribute.experimental.ParameterServerStrategy()
    run = getattr(strategy, "run", None) or strategy.experimental_run_v2
    refusal = refused(tmp_path, "under ParameterServerStrategy")
    with tf.Graph().as_default(), refusal, strategy.scope():
        run(step)


def test_a_tpu(tmp_path):
    replication = importlib.import_module(
        "tensorflow.python.tpu.tpu_replication"
        if TF_VERSION >= (2, 12)
        else "tensorflow.python.tpu.tpu"
    )
    with refused(tmp_path, "on a TPU"), tf.Graph().as_default():
        context = replication.TPUReplicateContext("cluster", 2, tf.no_op())
        context.Enter()
        try:
            step()
        finally:
            context.Exit()
