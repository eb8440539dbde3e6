"""`if use_tpu` in the `model_fn` of an Estimator, as written for TPUEstimator, off the TPU."""

import os

import numpy as np
import pytest
import support
import tensorflow as tf
from processes import run_program

import tf_lossscale as tfls

tf1 = tf.compat.v1
PROGRAM = os.path.join(os.path.dirname(__file__), "programs", "estimator.py")

pytestmark = pytest.mark.skipif(
    support.TF_VERSION >= (2, 16),
    reason="TensorFlow has no Estimators from 2.16 on",
)


def model_fn(features, labels, mode, params):
    weight = tf1.get_variable("w", initializer=[0.0])
    loss = tf.reduce_mean(tf.square(weight * features - labels))
    optimizer = tf1.train.AdamOptimizer(0.1)
    if params["wrap"]:
        optimizer = tfls.contrib.tpu.CrossShardOptimizer(optimizer)
    step = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    spec = tf1.estimator.tpu.TPUEstimatorSpec if params["tpu"] else tf.estimator.EstimatorSpec
    return spec(mode, loss=loss, train_op=step)


def input_fn(params):
    data = tf1.data.Dataset.from_tensors((tf.constant([1.0]), tf.constant([2.0])))
    return data.repeat()


def trained(directory, tpu, wrap):
    params = {"tpu": tpu, "wrap": wrap}
    if tpu:
        estimator = tf1.estimator.tpu.TPUEstimator(
            model_fn,
            model_dir=str(directory),
            config=tf1.estimator.tpu.RunConfig(),
            params=params,
            use_tpu=False,
            train_batch_size=1,
        )
    else:
        estimator = tf.estimator.Estimator(model_fn, model_dir=str(directory), params=params)
    estimator.train(input_fn, steps=3)
    estimator.train(input_fn, steps=2)  # from the checkpoint
    assert estimator.get_variable_value("global_step") == 5
    return estimator.get_variable_value("w")


@pytest.mark.parametrize("tpu", [False, True], ids=["Estimator", "TPUEstimator"])
def test_a_model_fn_with_use_tpu_trains_as_without(tpu, tmp_path):
    bare = trained(tmp_path / "bare", tpu, False)
    assert bare[0] > 0.3
    np.testing.assert_array_equal(trained(tmp_path / "wrapped", tpu, True), bare)


def test_an_estimator_with_a_strategy_takes_the_mean_once():
    found = run_program(PROGRAM)
    assert sorted(found) == ["bare", "mean", "sum"]
    # The losses of the four replicas have the gradients 1, 2, 3 and 4; the rate is 0.1.
    np.testing.assert_allclose(found["bare"], [-0.5], rtol=1e-5)  # an Estimator takes the mean
    np.testing.assert_allclose(found["mean"], [-0.5], rtol=1e-5)
    np.testing.assert_allclose(found["sum"], [-2.0], rtol=1e-5)
