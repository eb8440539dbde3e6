"""A dynamic loss scale with a minimum of its own: its rule is recorded, and replayed."""

import pytest
import recorded
import support
import tensorflow as tf
from recordings import Recording

import tf_lossscale as tfls
from tf_lossscale._compare.scale_rules import replay

tf1 = tf.compat.v1
MINIMUM = 2.0**-3
SUBJECTS = [subject for subject in recorded.ours() if subject.api == "final"]
FACTORS = (*[float("nan")] * 5, 1.0, 1.0)
SCALES = [1.0, 0.5, 0.25, 0.125, 0.125, 0.125, 0.125]


def check(record, rule):
    assert record.scales == SCALES
    assert (record.scale.rule, record.scale.minimum_scale) == (rule, MINIMUM)
    assert replay(record) is None
    record.scale.minimum_scale = 1.0
    assert replay(record).step == 1


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_the_keras_class(subject, tmp_path):
    with support.eager():
        inner = subject.inner("SGD", learning_rate=0.5)
        optimizer = subject.cls(inner, initial_scale=1.0, minimum_scale=MINIMUM)
        weight = recorded.make_variable(subject.kind, 1.0, "weight")
        with Recording(tmp_path) as recording:
            for factor in FACTORS:
                optimizer.apply_gradients([(tf.constant(factor), weight)])
    check(recording.record, "dynamic")


def v1():
    namespace = tfls.compat.v1.mixed_precision
    scale = namespace.DynamicLossScale(1.0, 9, minimum_scale=MINIMUM)
    inner = tf1.train.GradientDescentOptimizer(0.5)
    return namespace.MixedPrecisionLossScaleOptimizer(inner, scale)


def contrib():
    namespace = tfls.contrib.mixed_precision
    manager = namespace.ExponentialUpdateLossScaleManager(
        1.0, 9, 1, decr_ratio=0.5, minimum_scale=MINIMUM
    )
    return namespace.LossScaleOptimizer(tf1.train.GradientDescentOptimizer(0.5), manager)


@pytest.mark.parametrize(("make", "rule"), [(v1, "dynamic"), (contrib, "exponential")])
def test_in_a_session(make, rule, tmp_path):
    with Recording(tmp_path) as recording, support.graph() as session:
        factor = tf1.placeholder(tf.float32, [])
        weight = tf1.get_variable("weight", initializer=1.0, use_resource=True)
        step = make().minimize(weight * factor, var_list=[weight])
        session.run(tf1.global_variables_initializer())
        for value in FACTORS:
            session.run(step, {factor: value})
    check(recording.record, rule)
