"""An Estimator under MirroredStrategy with four logical CPU devices; prints JSON.

The weight after two steps of rate 0.1, where replica r (from 1) has the gradient r.
"""

import json
import tempfile

import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
REPLICAS = 4
tf1.disable_eager_execution()
STRATEGY = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(REPLICAS)])
CrossShardOptimizer = tfls.contrib.tpu.CrossShardOptimizer
CASES = {
    "bare": lambda inner: inner,
    "mean": CrossShardOptimizer,
    "sum": lambda inner: CrossShardOptimizer(inner, tf1.losses.Reduction.SUM),
}


def model_fn(features, labels, mode, params):
    weight = tf1.get_variable("w", initializer=[0.0])
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    r = tf.cast(number + 1, tf.float32)
    loss = tf.reduce_mean(weight * r * features)
    optimizer = CASES[params["case"]](tf1.train.GradientDescentOptimizer(0.1))
    step = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def input_fn():
    return tf1.data.Dataset.from_tensors((tf.ones([REPLICAS]), tf.ones([REPLICAS]))).repeat()


found = {}
for case in CASES:
    config = tf.estimator.RunConfig(
        train_distribute=STRATEGY,
        session_config=tf1.ConfigProto(device_count={"CPU": REPLICAS}),
    )
    with tempfile.TemporaryDirectory() as directory:
        estimator = tf.estimator.Estimator(
            model_fn, model_dir=directory, config=config, params={"case": case}
        )
        estimator.train(input_fn, steps=2)
        found[case] = estimator.get_variable_value("w").tolist()
print(json.dumps(found))
