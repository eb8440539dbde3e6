"""One worker of a cluster: `worker.py STEPS`, prints JSON.

Trains two weights with the gradient (worker's number + step), through a loss scale on which the
last worker overflows in step 1.
"""

import json
import os
import sys

import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._versions.replicas import replica_id

tf1 = tf.compat.v1
STEPS = int(sys.argv[1])
TASK = json.loads(os.environ["TF_CONFIG"])
WORKERS, INDEX = len(TASK["cluster"]["worker"]), TASK["task"]["index"]

tf1.enable_eager_execution()
Strategy = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
STRATEGY = (Strategy or tf.distribute.experimental.MultiWorkerMirroredStrategy)()


cross_replica_sum = tfls.compat.v1.tpu.cross_replica_sum


def on_replicas(function):
    if hasattr(STRATEGY, "run"):
        return STRATEGY.run(function)
    return STRATEGY.experimental_run_v2(function)


def in_function(function):
    return tf.function(lambda: on_replicas(function), autograph=False)


def sums():
    def on_each():
        r = tf.cast(replica_id() + 1, tf.float32)
        singles = [[i] for i in reversed(range(WORKERS))]
        totals = [cross_replica_sum(r), cross_replica_sum(r, singles), cross_replica_sum(10 * r)]
        if WORKERS == 4:
            for groups in ([[0, 1], [2, 3]], [[0, 2], [3, 1]]):
                totals.append(cross_replica_sum(r, groups))
        return totals

    return [
        [float(x) for x in run()] for run in (in_function(on_each), lambda: on_replicas(on_each))
    ]


def train():
    with STRATEGY.scope():
        weights = tf1.get_variable("w", initializer=tf.ones([2]), use_resource=True)
        step = tf1.get_variable("s", initializer=0.0, trainable=False, use_resource=True)
        scale = tfls.compat.v1.mixed_precision.DynamicLossScale(8.0, 2)
        scaled = tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer
        inner = scaled(tf1.train.AdamOptimizer(0.1), scale)
        optimizer = tfls.compat.v1.tpu.CrossShardOptimizer(inner)

    def on_each():
        r = float(replica_id() + 1)
        overflows = tf.logical_and(tf.equal(step, 1.0), r == WORKERS)
        factor = tf.where(overflows, float("inf"), 1.0)

        def loss():
            return tf.reduce_sum(weights * [r + step, 2.0 * r - step]) * factor

        optimizer.apply_gradients(optimizer.compute_gradients(loss, [weights]))

    run = in_function(on_each)
    history = []
    for _ in range(STEPS):
        run()
        step.assign_add(1.0)
        history.append([float(x) for x in local(weights)])
    return history


def local(variable):
    return STRATEGY.experimental_local_results(variable)[0].numpy()


print(json.dumps({"sums": sums(), "trained": train()}))
