"""One worker of a cluster with a Session: `graph_worker.py STEPS`, prints JSON.

Sums, and the training of `worker.py`: two weights with the gradient (worker's number + step),
through a loss scale on which the last worker overflows in step 1.
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

tf1.disable_eager_execution()
STRATEGY = tf1.distribute.experimental.MultiWorkerMirroredStrategy()
CONFIG = STRATEGY.update_config_proto(tf1.ConfigProto())
SERVER = tf1.train.Server(
    tf1.train.ClusterSpec(TASK["cluster"]), job_name="worker", task_index=INDEX, config=CONFIG
)


cross_replica_sum = tfls.compat.v1.tpu.cross_replica_sum


def on_replicas(function):
    if hasattr(STRATEGY, "run"):
        return STRATEGY.run(function)
    return STRATEGY.experimental_run_v2(function)


def local(value):
    return STRATEGY.experimental_local_results(value)[0]


def sums():
    r = tf.cast(replica_id() + 1, tf.float32)
    singles = [[i] for i in reversed(range(WORKERS))]
    return [cross_replica_sum(r), cross_replica_sum(r, singles), cross_replica_sum(10 * r)]


with STRATEGY.scope():
    weights = tf1.get_variable("w", initializer=tf.ones([2]), use_resource=True)
    namespace = tfls.compat.v1.mixed_precision
    inner = namespace.MixedPrecisionLossScaleOptimizer(
        tf1.train.AdamOptimizer(0.1), namespace.DynamicLossScale(8.0, 2)
    )
    optimizer = tfls.compat.v1.tpu.CrossShardOptimizer(inner)
number = tf1.placeholder(tf.float32, [])


def step():
    r = float(replica_id() + 1)
    overflows = tf.logical_and(tf.equal(number, 1.0), r == WORKERS)
    loss = tf.reduce_sum(weights * [r + number, 2.0 * r - number])
    loss *= tf.where(overflows, float("inf"), 1.0)
    return optimizer.apply_gradients(optimizer.compute_gradients(loss, [weights]))


summed = [local(each) for each in on_replicas(sums)]
train = STRATEGY.experimental_local_results(on_replicas(step))
result = {"trained": []}
with tf1.Session(SERVER.target, config=CONFIG) as session:
    session.run(tf1.global_variables_initializer())
    result["sums"] = [[float(x) for x in session.run(summed)] for _ in range(2)]
    for each in range(STEPS):
        session.run(train, {number: each})
        result["trained"].append([float(x) for x in session.run(local(weights))])
print(json.dumps(result))
