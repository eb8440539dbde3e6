"""An Estimator trains with our optimizers, stops, and goes on from its own checkpoint."""

import pytest
import support
import tensorflow as tf

tf1 = tf.compat.v1

pytestmark = pytest.mark.skipif(
    support.TF_VERSION >= (2, 16), reason="TensorFlow has no Estimators from 2.16 on"
)


@pytest.mark.parametrize(
    ("make", "scale"),
    [(support.contrib_optimizer, "loss_scale"), (support.v1_optimizer, "current_loss_scale")],
)
def test_model_fn(make, scale, tmp_path):
    def model_fn(features, labels, mode):
        weight = tf1.get_variable("w", initializer=[0.0])
        loss = tf.reduce_mean(tf.square(weight * features - labels))
        optimizer, _ = make(tf1.train.AdamOptimizer(0.1))
        step = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    def input_fn():
        data = tf1.data.Dataset.from_tensors((tf.constant([1.0]), tf.constant([2.0])))
        return data.repeat()

    estimator = tf.estimator.Estimator(model_fn, model_dir=str(tmp_path))
    estimator.train(input_fn, steps=4)
    estimator.train(input_fn, steps=2)
    assert estimator.get_variable_value("global_step") == 6
    assert estimator.get_variable_value(scale) == 64.0
    assert 0.5 < estimator.get_variable_value("w")[0] < 0.7
