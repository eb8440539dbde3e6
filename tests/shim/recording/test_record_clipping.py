"""Gradients are seen where they are unscaled, before the program clips them, and as applied."""

import clipping
import numpy as np
import pytest
import recorded
import tensorflow as tf
from recordings import Recording, v1_optimizer, v1_variable

import tf_lossscale as tfls

tf1 = tf.compat.v1
NORM = np.sqrt(4 + 16 + 0 + 64)


@pytest.fixture(autouse=True)
def in_eager_mode():
    with recorded.eagerly():
        yield


CASES = [(name, None) for name in clipping.V1]
CASES += [(subject, mode) for subject in clipping.KERAS for mode in ("eager", "function")]


def run(case, loss_of, watch=None):
    """Makes three steps; see `clipping`."""
    subject, mode = case
    if mode is None:
        return clipping.in_session(subject, loss_of, watch)
    return clipping.in_loop(subject, loss_of, mode == "function", watch)


def of_case(case):
    return "-".join(str(part) for part in case if part)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_two_norms_show_that_gradients_are_clipped(case, tmp_path):
    with Recording(tmp_path) as recording:
        run(case, clipping.finite)
    record = recording.record
    np.testing.assert_allclose(record.unscaled_norm, [NORM] * 3, rtol=1e-6)
    np.testing.assert_allclose(record.norm, [clipping.CLIP] * 3, rtol=1e-6)
    np.testing.assert_allclose(record.norms, [np.sqrt(20), 8], rtol=1e-6)
    assert record.unscaled_by == "program"
    assert record.bad == [None] * 3
    assert record.rate == [0.0] * 3
    assert record.slots == "fresh"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_the_first_bad_variable_is_the_one_before_clipping(case, tmp_path):
    with Recording(tmp_path) as recording:
        run(case, clipping.second_is_infinite)
    record = recording.record
    assert record.applied == [False] * 3
    assert (record.bad, record.bad_count) == ([1] * 3, [1] * 3)
    assert record.unscaled_norm == [None] * 3


OURS = [case for case in CASES if "ours" in str(case[0])]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", OURS, ids=of_case)
def test_the_monitor_names_the_variable_before_clipping(case):
    counts, bad = run(case, clipping.second_is_infinite, tfls.monitoring.Monitor)
    assert counts == (3, 3, 3)
    assert bad.split("/")[-1] == "second"


def test_gradients_that_are_accumulated_in_one_graph_are_all_looked_at(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        variables = [tf1.get_variable(n, initializer=[1.0, 0.0], use_resource=True) for n in "ab"]
        optimizer = v1_optimizer()
        losses = [tf.reduce_sum(variables[0]), tf.reduce_sum(tf.sqrt(variables[1]))]
        parts = [
            [gradient for gradient, _ in optimizer.compute_gradients(loss + 0.0 * other, variables)]
            for loss, other in (losses, losses[::-1])
        ]
        sums = [tf.add_n(gradients) for gradients in zip(*parts)]
        step = optimizer.apply_gradients(zip(clipping.clipped(sums), variables))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
    assert recording.record.bad == [1]
    assert recording.record.unscaled_norm == [None]  # of a part of the batch


def test_what_was_unscaled_elsewhere_is_not_taken(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        weight, optimizer = v1_variable(), v1_optimizer()
        (pair,) = optimizer.compute_gradients(weight * 3.0, [weight])
        total = tf1.get_variable("total", initializer=0.0, use_resource=True, trainable=False)
        add = total.assign_add(pair[0])
        step = optimizer.apply_gradients([(total.read_value(), weight)])
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for _ in range(2):
                session.run(add)
                session.run(step)
    assert recording.record.norm == [3.0, 6.0]
    assert recording.record.unscaled_norm == [None, None]  # the step does not compute it


@pytest.mark.skipif(recorded.TF < (2, 0), reason="TensorFlow 1.15 has no such loops by default")
def test_gradients_that_the_program_computes_itself_have_one_norm(tmp_path):
    with Recording(tmp_path) as recording:
        weight, optimizer = tf.Variable([3.0, 4.0]), v1_optimizer()
        for _ in range(2):
            optimizer.apply_gradients([(tf.constant([3.0, 4.0]), weight)])
    assert recording.record.norm == [5.0, 5.0]
    assert recording.record.unscaled_norm == [None, None]
    assert recording.record.unscaled_by is None


@pytest.mark.skipif(not hasattr(tf.keras, "Operation"), reason="of Keras 3")
@pytest.mark.parametrize("ours", [False, True])
def test_in_keras_3_the_step_itself_unscales(ours, tmp_path):
    owner = tfls if ours else tf
    with Recording(tmp_path) as recording:
        weight = tf.keras.Variable([3.0, 4.0])
        inner = tf.keras.optimizers.SGD(0.0)
        optimizer = owner.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
        optimizer.build([weight])

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(weight))) / 2
                scaled = optimizer.scale_loss(loss)
            optimizer.apply(tape.gradient(scaled, [weight.value]), [weight])

        step()
    record = recording.record
    assert (record.norm, record.unscaled_norm, record.unscaled_by) == ([5.0], [5.0], "step")


@pytest.mark.skipif(not hasattr(tf.keras, "Operation"), reason="of Keras 3")
@pytest.mark.parametrize("ours", [False, True])
def test_in_keras_3_clipping_comes_before_unscaling(ours, tmp_path):
    owner = tfls if ours else tf
    with Recording(tmp_path) as recording:
        weights = [tf.keras.Variable([3.0, 4.0]), tf.keras.Variable([0.0, 4.0])]
        inner = tf.keras.optimizers.SGD(0.0)
        optimizer = owner.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
        optimizer.build(weights)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = clipping.second_is_infinite([weight.value for weight in weights])
                scaled = optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled, [weight.value for weight in weights])
            optimizer.apply(clipping.clipped(gradients), weights)

        step()
    record = recording.record
    assert (record.applied, record.bad, record.bad_count) == ([False], [1], [1])


def test_gradients_that_the_program_computes_and_clips_itself(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        variables = [tf1.get_variable(n, initializer=[1.0, 0.0], use_resource=True) for n in "ab"]
        optimizer = v1_optimizer()
        loss = tf.reduce_sum(variables[0]) + tf.reduce_sum(tf.sqrt(variables[1]))
        gradients = clipping.clipped(tf1.gradients(loss, variables))
        step = optimizer.apply_gradients(list(zip(gradients, variables)))
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
    assert (recording.record.bad, recording.record.bad_count) == ([1], [1])


def test_the_norm_of_gradients_that_the_program_made_finite(tmp_path):
    with Recording(tmp_path) as recording, tf.Graph().as_default():
        variables = [tf1.get_variable(n, initializer=[1.0, 0.0], use_resource=True) for n in "ab"]
        optimizer = v1_optimizer()
        pairs = optimizer.compute_gradients(clipping.second_is_infinite(variables), variables)
        zeroed = [
            (tf.where(tf1.is_finite(gradient), gradient, tf.zeros_like(gradient)), variable)
            for gradient, variable in pairs
        ]
        step = optimizer.apply_gradients(zeroed)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(step)
    record = recording.record
    assert (record.applied, record.finite) == ([True], [True])
    assert record.norm == [pytest.approx(np.sqrt(2.0**2 + 0.5**2))]
    assert record.unscaled_norm == [None]
