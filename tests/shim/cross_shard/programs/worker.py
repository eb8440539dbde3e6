"""One worker of a cluster: `worker.py STEPS function|session`, prints JSON.

Sums, in a Session also in a loop of each control flow; and the training of two weights with the
gradient (worker number + step), through a loss scale on which the last worker overflows in step 1.
"""

import json
import sys

import support
import tensorflow as tf
from cluster import CONFIG, IN_SESSION, RUN, SERVER, STRATEGY, WORKERS, local, namespace

from tf_lossscale._versions.replicas import replica_id

tf1 = tf.compat.v1
STEPS = int(sys.argv[1])


def sums():
    r = tf.cast(replica_id() + 1, tf.float32)
    groups = [None, [[i] for i in reversed(range(WORKERS))]]
    if WORKERS == 4:
        groups += [[[0, 1], [2, 3]], [[0, 2], [3, 1]]]
    return [namespace.cross_replica_sum(10 * r)] + [
        namespace.cross_replica_sum(r, group) for group in groups
    ]


with STRATEGY.scope():
    weights = tf1.get_variable("w", initializer=tf.ones([2]), use_resource=True)
    inner, _ = support.v1_optimizer(tf1.train.AdamOptimizer(0.1))
    optimizer = namespace.CrossShardOptimizer(inner)


def step(number):
    r = float(replica_id() + 1)
    overflows = tf.logical_and(tf.equal(number, 1.0), r == WORKERS)
    factor = tf.where(overflows, float("inf"), 1.0)

    def loss():
        return tf.reduce_sum(weights * [r + number, 2.0 * r - number]) * factor

    pairs = optimizer.compute_gradients(loss() if IN_SESSION else loss, [weights])
    return optimizer.apply_gradients(pairs)


def looped():
    def body(i, total):
        return i + 1, total + tf.add_n([local(value) for value in RUN(sums)[:2]])

    return tf.while_loop(lambda i, _: i < 5, body, [0, 0.0])[1]


def in_session():
    loops = [looped()]
    tf1.disable_control_flow_v2()
    loops.append(looped())
    number = tf1.placeholder(tf.float32, [])
    summed = [local(total) for total in RUN(sums)]
    train = STRATEGY.experimental_local_results(RUN(step, (number,)))
    with tf1.Session(SERVER.target, config=CONFIG) as session:
        session.run(tf1.global_variables_initializer())
        yield from ([session.run(loop) for _ in range(4)] for loop in loops)
        yield from (session.run(summed) for _ in range(2))
        for value in range(STEPS):
            session.run(train, {number: value})
            yield session.run(local(weights))


def eagerly():
    yield tf.function(lambda: RUN(sums), autograph=False)()
    yield RUN(sums)
    train = tf.function(lambda number: (RUN(step, (number,)), 0)[1], autograph=False)
    for value in range(STEPS):
        train(tf.constant(float(value)))
        yield local(weights).numpy()


found = [[float(value) for value in values] for values in (in_session if IN_SESSION else eagerly)()]
looped_sums = [found.pop(0) for _ in range(2)] if IN_SESSION else []
print(json.dumps({"loops": looped_sums, "sums": found[:2], "trained": found[2:]}))
