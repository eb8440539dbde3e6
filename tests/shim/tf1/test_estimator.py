"""Estimators train with our optimizers as without, stop, and go on from their own checkpoints.

With `if use_tpu` in a `model_fn`, as written for TPUEstimator, also off the TPU.
"""

import pytest
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1

pytestmark = pytest.mark.skipif(
    support.TF_VERSION >= (2, 16), reason="TensorFlow has no Estimators from 2.16 on"
)

WRAPPERS = {
    "bare": lambda inner: inner,
    "contrib": lambda inner: support.contrib_optimizer(inner)[0],
    "v1": lambda inner: support.v1_optimizer(inner)[0],
    "cross-shard": tfls.contrib.tpu.CrossShardOptimizer,
}
LOSS_SCALES = {"contrib": "loss_scale", "v1": "current_loss_scale"}


def model_fn(features, labels, mode, params):
    weight = tf1.get_variable("w", initializer=[0.0])
    loss = tf.reduce_mean(tf.square(weight * features - labels))
    optimizer = WRAPPERS[params["wrapper"]](tf1.train.AdamOptimizer(0.1))
    step = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    spec = tf1.estimator.tpu.TPUEstimatorSpec if params["tpu"] else tf.estimator.EstimatorSpec
    return spec(mode, loss=loss, train_op=step)


def input_fn(params):
    data = tf1.data.Dataset.from_tensors((tf.constant([1.0]), tf.constant([2.0])))
    return data.repeat()


def trained(directory, tpu, wrapper):
    arguments = {"model_dir": str(directory), "params": {"tpu": tpu, "wrapper": wrapper}}
    if tpu:
        config = tf1.estimator.tpu.RunConfig()
        arguments.update(config=config, use_tpu=False, train_batch_size=1)
        estimator = tf1.estimator.tpu.TPUEstimator(model_fn, **arguments)
    else:
        estimator = tf.estimator.Estimator(model_fn, **arguments)
    estimator.train(input_fn, steps=4)
    estimator.train(input_fn, steps=2)  # from the checkpoint
    assert estimator.get_variable_value("global_step") == 6
    if wrapper in LOSS_SCALES:
        assert estimator.get_variable_value(LOSS_SCALES[wrapper]) == 64.0
    return estimator.get_variable_value("w")


@pytest.mark.parametrize("tpu", [False, True], ids=["Estimator", "TPUEstimator"])
def test_a_model_fn_trains_as_without(tpu, tmp_path):
    weights = {name: trained(tmp_path / name, tpu, name) for name in WRAPPERS}
    assert 0.5 < weights["bare"] < 0.7
    assert weights == dict.fromkeys(WRAPPERS, weights["bare"])


def test_a_monitor_counts_the_steps(tmp_path):
    monitors = []

    def model_fn(features, labels, mode):
        weight = tf1.get_variable("w", initializer=[4.0])
        optimizer = support.v1_optimizer(tf1.train.GradientDescentOptimizer(2.0))[0]
        monitors.append(tfls.monitoring.Monitor(optimizer))
        # The first gradient is 0.5, which leads to the root of 0.
        loss = tf.reduce_sum(tf.sqrt(weight * features - labels))
        counted = tf1.assign_add(tf1.train.get_global_step(), 1)
        with tf.control_dependencies([optimizer.minimize(loss)]):
            step = tf.identity(counted)
        hooks = [monitors[-1].session_hook()]
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, training_hooks=hooks)

    def data():
        return tf1.data.Dataset.from_tensors((tf.constant([1.0]), tf.constant([3.0]))).repeat()

    tf.estimator.Estimator(model_fn, model_dir=str(tmp_path)).train(data, steps=3)
    assert monitors[-1].counts() == (3, 2, 2)
