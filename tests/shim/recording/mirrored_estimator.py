"""An Estimator under MirroredStrategy with two logical CPU devices, recorded; prints JSON.

Replica r (from 1) has the loss `r * weight`, and the weight is 1 at first.
"""

import json
import os
import tempfile

import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._records.reading import read_record

tf1 = tf.compat.v1
REPLICAS = 2
tf1.disable_eager_execution()
STRATEGY = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(REPLICAS)])


def model_fn(features, labels, mode):
    weight = tf1.get_variable("w", initializer=[1.0])
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    loss = tf.reduce_mean(weight * tf.cast(number + 1, tf.float32) * features)
    namespace = tfls.compat.v1.mixed_precision
    optimizer = namespace.MixedPrecisionLossScaleOptimizer(
        tf1.train.GradientDescentOptimizer(0.1), namespace.DynamicLossScale(8.0)
    )
    step = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def input_fn():
    return tf1.data.Dataset.from_tensors((tf.ones([REPLICAS]), tf.ones([REPLICAS]))).repeat()


found = {}
for name, strategy in (("alone", None), ("mirrored", STRATEGY)):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "record.jsonl")
        session_config = tf1.ConfigProto(device_count={"CPU": REPLICAS})
        config = tf.estimator.RunConfig(train_distribute=strategy, session_config=session_config)
        tfls.recording.start(path)
        tf.estimator.Estimator(model_fn, directory, config).train(input_fn, steps=2)
        tfls.recording.stop()
        (record,) = read_record(path).optimizers
        found[name] = [record.steps, record.loss, record.norm]
print(json.dumps(found))
