"""One worker of a cluster whose Session's graph is not that of the others: `... CASE`, prints JSON.

A case is `WHAT:OPTIMIZER`. The last worker builds its steps in another order, in `order`, and in
`late`, where the first worker also comes to its second step seconds after the others. The last
worker sums a scalar where the others sum a vector, in `sum`, and a tensor of another shape with as
many elements, in `shape`. Prints the error that this raised, and after how many seconds.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
TASK = json.loads(os.environ["TF_CONFIG"])
WORKERS, INDEX = len(TASK["cluster"]["worker"]), TASK["task"]["index"]
WHAT, NAME = sys.argv[1].split(":")
OTHER = INDEX == WORKERS - 1

tf1.disable_eager_execution()
STRATEGY = tf1.distribute.experimental.MultiWorkerMirroredStrategy()
RUN = getattr(STRATEGY, "run", None) or STRATEGY.experimental_run_v2
CONFIG = STRATEGY.update_config_proto(tf1.ConfigProto())
SERVER = tf1.train.Server(
    tf1.train.ClusterSpec(TASK["cluster"]), job_name="worker", task_index=INDEX, config=CONFIG
)
tpu = tfls.compat.v1.tpu


class Assigning(tf1.train.Optimizer):
    """Does the whole step by itself, as the optimizer of BERT does."""

    def __init__(self):
        super().__init__(False, "Assigning")

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        return tf.group([variable.assign_sub(each) for each, variable in grads_and_vars])


OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(1.0),
    "assigning": Assigning,
}


def weight(name, shape):
    return tf1.get_variable(name, initializer=tf.zeros(shape), use_resource=True)


with STRATEGY.scope():
    weights = [weight("a", [2]), weight("b", [])]
    if WHAT in ("order", "late"):
        first, second = [tpu.CrossShardOptimizer(OPTIMIZERS[NAME]()) for _ in range(2)]


def update_first():
    return first.apply_gradients([(tf.ones([2]), weights[0])])


def one_after_seconds():
    time.sleep(4.0)
    return np.float32(1.0)


def update_second():
    gradient = tf.ones([])
    if WHAT == "late" and INDEX == 0:
        gradient = tf.reshape(tf.numpy_function(one_after_seconds, [], tf.float32), [])
    return second.apply_gradients([(gradient, weights[1])])


def step():
    if WHAT == "sum":
        return tf.reduce_sum(tpu.cross_replica_sum(tf.ones([] if OTHER else [2])))
    if WHAT == "shape":
        return tf.reduce_sum(tpu.cross_replica_sum(tf.ones([3, 2] if OTHER else [2, 3])))
    steps = [update_second, update_first] if OTHER else [update_first, update_second]
    done = tf.group([each() for each in steps])
    with tf.control_dependencies([done]):
        return tf.constant(0.0)


train = STRATEGY.experimental_local_results(RUN(step))[0]
local = [STRATEGY.experimental_local_results(each)[0] for each in weights]
with tf1.Session(SERVER.target, config=CONFIG) as session:
    session.run(tf1.global_variables_initializer())
    error, started = "", time.monotonic()
    try:
        session.run(train)
    except tf.errors.OpError as raised:
        error = raised.message
    seconds = time.monotonic() - started
    kept = sorted({x for each in session.run(local) for x in each.ravel().tolist()})
    print(json.dumps({"error": error, "weights": kept, "seconds": seconds}))
