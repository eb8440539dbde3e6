"""Trains under a `MirroredStrategy` over two logical CPUs, with and without a monitor.

Usage: mirrored.py MODE; MODE `graph` for Sessions, `eager` for eager mode and functions. Prints for
each class and inner optimizer, the readings after each step, which steps left the weights
unchanged, whether all weights equal those of a run without a monitor, the names of operations that
only the graph without a monitor has, and those that only the other graph has, except for the
monitor's own.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import tensorflow as tf

tf1 = tf.compat.v1
GRAPH = sys.argv[1] == "graph"
if GRAPH:
    tf1.disable_eager_execution()

import numpy as np
import replicas
import support
import watched
from watched import INF, SHAPES

import tf_lossscale as tfls

strategy = replicas.mirrored(2)

# For each step, for each replica, for each variable.
STEPS = [
    ([1.0, 1.0, 1.0], [1.0, 2.0, 1.0]),
    ([1.0, INF, 1.0], [1.0, 1.0, 1.0]),
    ([1.0, 1.0, 1.0], [INF, 1.0, INF]),
    ([1.0, 1.0, 3e38], [1.0, 1.0, 3e38]),
    ([2.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
]
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"
INNER = {"momentum": lambda: tf1.train.MomentumOptimizer(0.5, 0.5)}
if LONG:
    INNER["sgd"] = lambda: tf1.train.GradientDescentOptimizer(0.5)


def optimizers():
    for name, inner in INNER.items():
        yield "v1 " + name, lambda inner=inner: support.v1_optimizer(inner(), 1024.0, 9)[0]
        yield (
            "contrib " + name,
            lambda inner=inner: support.contrib_optimizer(inner(), 1024.0, 9, 1)[0],
        )
    if not GRAPH:
        for kind in watched.KERAS_KINDS.values():
            yield "keras " + kind.name, lambda kind=kind: watched.keras(kind)


def variables_of(name):
    if name != "keras keras3":
        return [tf.Variable(tf.ones(shape), name=each) for each, shape in SHAPES]
    keras = watched.KERAS_KINDS["keras3"].keras
    return [keras.Variable(np.ones(shape, "float32"), name=each) for each, shape in SHAPES]


def step_of(optimizer, variables, factors):
    def replica():
        context = tf.distribute.get_replica_context()
        own = tf.gather(factors, context.replica_id_in_sync_group)
        if hasattr(optimizer, "get_unscaled_gradients"):
            optimizer.get_unscaled_gradients([])
        return optimizer.apply_gradients(watched.gradients(variables, own))

    return replicas.run(strategy, replica)


def in_session(name, make, monitored):
    readings, weights = [], []
    with tf.Graph().as_default() as graph, strategy.scope():
        variables = variables_of(name)
        optimizer = make()
        monitor = tfls.monitoring.Monitor(optimizer, warn_at_minimum=False) if monitored else None
        fed = tf1.placeholder(tf.float32, [2, 3])
        steps = replicas.local(strategy, step_of(optimizer, variables, fed))
        step = tf.group(*steps)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for factors in STEPS:
                session.run(step, {fed: factors})
                weights.append([each.tolist() for each in session.run(variables)])
                readings.append(watched.reading(monitor) if monitored else None)
        names = {each.name for each in graph.get_operations() if watched.own(each.name)}
    return readings, weights, names


def eagerly(name, make, monitored, compiled):
    readings, weights = [], []
    with strategy.scope():
        variables = variables_of(name)
        optimizer = make()
        if hasattr(optimizer, "build"):
            optimizer.build(variables)
    monitor = tfls.monitoring.Monitor(optimizer, warn_at_minimum=False) if monitored else None

    def step(factors):
        step_of(optimizer, variables, factors)

    step = tf.function(step) if compiled else step
    for factors in STEPS:
        step(tf.constant(factors))
        weights.append([each.numpy().tolist() for each in variables])
        readings.append(watched.reading(monitor) if monitored else None)
    return readings, weights, set()


def main():
    found = {}
    ways = {"session": in_session}
    if not GRAPH:
        ways = {
            "eager": lambda *args: eagerly(*args, compiled=False),
            "function": lambda *args: eagerly(*args, compiled=True),
        }
    for way, run in ways.items():
        for name, make in optimizers():
            # What is eager is decided in the monitor; the optimizers differ in where it is called.
            if way == "eager" and name.startswith(("contrib", "keras legacy")) and not LONG:
                continue
            readings, weights, names = run(name, make, True)
            _, bare, bare_names = run(name, make, False)
            begin = [np.ones(shape).tolist() for _, shape in SHAPES]
            skips = [a == b for a, b in zip(weights, [begin, *weights])]
            found[f"{way} {name}"] = [
                readings,
                skips,
                weights == bare,
                sorted(bare_names - names),
                sorted(names - bare_names),
            ]
    print(json.dumps(found))


main()
