"""One worker of a cluster that does not do what the others do: `mismatch.py CASE`, prints JSON.

A case is `WHAT:OPTIMIZER:MODE`. In the second step the last worker calls its optimizers in another
order, in `order`; or adds up a scalar where the others add up a vector, in `shape`; or calls
another optimizer, with gradients of the same shapes, from the same line, in `optimizer`. Prints the
error that this raised, and whether the weights were kept.
"""

import json
import sys

import tensorflow as tf
from cluster import INDEX, OPTIMIZERS, RUN, STRATEGY, WORKERS, namespace, values

tf1 = tf.compat.v1
WHAT, NAME, MODE = sys.argv[1].split(":")
OTHER = INDEX == WORKERS - 1

with STRATEGY.scope():
    vector, scalar = tf.Variable([0.0, 0.0]), tf.Variable(0.0)
    first = namespace.CrossShardOptimizer(OPTIMIZERS[NAME]())
    second = namespace.CrossShardOptimizer(OPTIMIZERS[NAME]())


def update_vector():
    first.apply_gradients([(tf.ones([2]), vector)])


def update_scalar():
    second.apply_gradients([(tf.ones([]), scalar)])


def ordered(swap):
    for update in (update_scalar, update_vector) if swap else (update_vector, update_scalar):
        update()
    return tf.constant(0.0)


def shaped(swap):
    return tf.reduce_sum(namespace.cross_replica_sum(tf.ones([]) if swap else tf.ones([2])))


def chosen(swap):
    for optimizer in (second, first) if swap else (first, second):
        optimizer.apply_gradients([(tf.ones([2]), vector)])
    return tf.constant(0.0)


step = {"order": ordered, "shape": shaped, "optimizer": chosen}[WHAT]


def everywhere(swap):
    return STRATEGY.experimental_local_results(RUN(step, args=(swap,)))[0]


call = tf.function(everywhere, autograph=False) if MODE == "function" else everywhere
call(False)
weights = values([vector, scalar])
try:
    error = f"no error, and {call(OTHER).numpy()}"
except tf.errors.InvalidArgumentError as raised:
    error = raised.message
kept = values([vector, scalar]) == weights
print(json.dumps({"error": error, "kept": kept}))
