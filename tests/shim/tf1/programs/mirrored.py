"""Trains under a `MirroredStrategy` over logical CPUs; prints what happened as JSON.

Usage: mirrored.py CLASSES MODES [REPLICAS]; CLASSES of contrib-ours, v1-ours, v1-original and
contrib-original, joined by commas; MODES graph, or of eager,function. Each trains three variables
with each optimizer.
"""

import json
import os
import sys

import replicas
import support
import tensorflow as tf

tf1 = tf.compat.v1
INF, NAN = float("inf"), float("nan")

# The gradients of the replicas in each step; 3e38 + 3e38 overflows although neither does.
STEPS = [
    ("fine", [1.0, 3.0, 1.0]),
    ("one bad", [1.0, INF, 1.0]),
    ("other bad", [NAN, 1.0, 1.0]),
    ("cancel", [INF, -INF, 1.0]),
    ("sum overflows", [3e38, 3e38, 1.0]),
    ("fine again", [2.0, 2.0, 1.0]),
]


# What each variable starts at, and its gradient where a replica's is 1. The sum overflows for the
# first alone.
VARIABLES = [([1.0, 1.0], 1.0), (2.0, 0.5), ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], -0.25)]
OPTIMIZERS = {"momentum": lambda: tf1.train.MomentumOptimizer(1.0, 0.5)}
if os.environ.get("TFLS_TEST_SIZE") == "long":
    OPTIMIZERS["sgd"] = lambda: tf1.train.GradientDescentOptimizer(1.0)


def make(cls, optimizer):
    """Returns a loss-scale optimizer and the tensor or variable of its scale."""
    family, whose = cls.split("-")
    inner = OPTIMIZERS[optimizer]()
    if family == "contrib":
        opt, scale = support.contrib_optimizer(inner, 1024.0, 100, 1, 2, 0.5, whose=whose)
        return opt, scale()
    opt, scale = support.v1_optimizer(inner, 1024.0, 100, whose=whose)
    return opt, scale._current_loss_scale


def make_variables():
    return [tf1.Variable(value, use_resource=True) for value, _ in VARIABLES]


def gradients(optimizer, variables, factor):
    """The gradients of a replica, and the variables.

    Gradients are scaled down again before they are added up, so an overflow has to be made by the
    gradients themselves: the pairs are computed, then multiplied.
    """

    def loss():
        parts = zip(variables, VARIABLES)
        return tf.add_n([gradient * tf.reduce_sum(each) for each, (_, gradient) in parts])

    pairs = optimizer.compute_gradients(loss, variables)
    return [(gradient * factor, each) for gradient, each in pairs]


def train(strategy, cls, optimizer, mode):
    """Returns a row for each step: name, weights and scale of every replica, `global_step`."""
    with strategy.scope():
        variables = make_variables()
        global_step = tf1.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            use_resource=True,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        opt, scale = make(cls, optimizer)

    def replica_step(factors):
        context = tf.distribute.get_replica_context()
        factor = tf.gather(factors, context.replica_id_in_sync_group)
        return opt.apply_gradients(gradients(opt, variables, factor), global_step=global_step)

    def state():
        return [
            [each.read_value() for each in replicas.local(strategy, value)]
            for value in (scale, global_step, *variables)
        ]

    def row(name, values):
        scales, count, *weights = values
        copies = [[each.tolist() for each in copy] for copy in zip(*weights)]
        return [name, copies, [float(s) for s in scales], int(count[0])]

    if mode == "graph":
        factors = tf1.placeholder(tf.float32, [3])
        with strategy.scope():
            results = replicas.run(strategy, replica_step, (factors,))
            step = tf.group(*replicas.local(strategy, results))
        reads = state()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            rows = []
            for name, values in STEPS:
                session.run(step, {factors: values})
                rows.append(row(name, session.run(reads)))
            return rows

    def eager_step(factors):
        replicas.run(strategy, replica_step, (factors,))

    step = tf.function(eager_step) if mode == "function" else eager_step
    rows = []
    for name, values in STEPS:
        step(tf.constant(values))
        rows.append(row(name, [[each.numpy() for each in values] for values in state()]))
    return rows


def main():
    classes, modes = sys.argv[1:3]
    devices = replicas.make_cpus(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    if support.IS_TF1 and modes != "graph":
        tf1.enable_eager_execution()
    if not support.IS_TF1 and modes == "graph":
        tf1.disable_eager_execution()
    strategy = tf.distribute.MirroredStrategy(devices)
    print(
        json.dumps(
            {
                f"{cls} {optimizer} {mode}": train(strategy, cls, optimizer, mode)
                for cls in classes.split(",")
                for optimizer in OPTIMIZERS
                for mode in modes.split(",")
            }
        )
    )


if __name__ == "__main__":
    main()
