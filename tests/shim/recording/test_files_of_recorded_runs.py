"""The checkpoint files of a recorded run and of an unrecorded one are equal, byte for byte."""

import os

import pytest
import tensorflow as tf
from recorded_sessions import classes
from test_record_keras import in_eager_mode, wrappers

import tf_lossscale as tfls

tf1 = tf.compat.v1
keras = tf.keras

__all__ = ["in_eager_mode"]


def contents(folder):
    found = {}
    for each in sorted(os.listdir(folder)):
        with open(os.path.join(folder, each), "rb") as file:
            found[each] = file.read()
    return found


def files(folder, train, name, is_recorded):
    """Trains in a folder of its own, with or without recording; returns the files written."""
    os.makedirs(folder)
    if is_recorded:
        tfls.recording.start(folder + ".jsonl")
    try:
        train(name, folder)
    finally:
        tfls.recording.stop()
    assert os.path.exists(folder + ".jsonl") == is_recorded
    return contents(folder)


def train_in_session(name, folder):
    with tf.Graph().as_default():
        weight = tf1.get_variable("weight", initializer=[3.0, 2.0])
        optimizer, _ = classes()[name](tf1.train.AdamOptimizer(0.1))
        step = optimizer.minimize(tf.reduce_sum(weight * weight))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(4):
                session.run(step)
            # The graph in `.meta` does hold the operations that record (docs/prove.md).
            path = os.path.join(folder, "model")
            tf1.train.Saver().save(session, path, write_meta_graph=False, write_state=False)


def train_keras(name, folder):
    keras.backend.clear_session()
    weight = tf.Variable([3.0, 2.0], name="weight")
    optimizer = wrappers()[name](keras.optimizers.Adam(0.1))
    for _ in range(4):
        if hasattr(optimizer, "get_scaled_loss"):
            with tf.GradientTape() as tape:
                scaled = optimizer.get_scaled_loss(tf.reduce_sum(weight * weight))
            gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled, [weight]))
            optimizer.apply_gradients(list(zip(gradients, [weight])))
        else:
            with tf.GradientTape() as tape:
                scaled = optimizer.scale_loss(tf.reduce_sum(weight * weight))
            optimizer.apply(tape.gradient(scaled, [weight]), [weight])
    tf.train.Checkpoint(weight=weight, optimizer=optimizer).write(os.path.join(folder, "model"))


@pytest.mark.parametrize("name", [each for each in classes() if "fixed" not in each])
def test_files_of_sessions(name, tmp_path):
    one = files(str(tmp_path / "one"), train_in_session, name, True)
    assert one == files(str(tmp_path / "two"), train_in_session, name, False)
    assert len(one) == 2


@pytest.mark.parametrize("name", list(wrappers()))
def test_files_of_keras(name, tmp_path):
    one = files(str(tmp_path / "one"), train_keras, name, True)
    assert one == files(str(tmp_path / "two"), train_keras, name, False)
    assert len(one) == 2
