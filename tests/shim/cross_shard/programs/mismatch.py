"""One worker of a cluster that does not do what the others do: `mismatch.py CASE`, prints JSON.

A case is `WHAT:OPTIMIZER:MODE`. The last worker calls its optimizers in another order, in `order`;
or sums a scalar where the others sum a vector, in `sum`, and a tensor of another shape with as many
elements, in `shape`; or calls another optimizer, with gradients of the same shapes, from the same
line, in `optimizer`; in `twins`, this is made on the same line, too. It sums a tensor whose shape
does not show while tracing, in `unknown`. In `late`, the order is another, and the first worker
comes to its second optimizer seconds after the others. In `fewer`, all do the same, but the last
worker begins its step seconds after the others; in `dies`, it kills itself. In `again`, the order
is another, and a step follows that is equal on all. In the modes `function` and `eager`, this is in
the second step. In a `session` it is in the graph. Prints the error that this raised, its class,
whether the weights were kept, and after how many seconds.
"""

import json
import os
import signal
import sys
import time

import numpy as np
import tensorflow as tf
from cluster import (
    CONFIG,
    INDEX,
    OPTIMIZERS,
    RUN,
    SERVER,
    STRATEGY,
    WORKERS,
    local,
    namespace,
)

tf1 = tf.compat.v1
WHAT, NAME, MODE = sys.argv[1].split(":")
OTHER = INDEX == WORKERS - 1
SECONDS = 4.0

with STRATEGY.scope():
    vector = tf1.get_variable("a", initializer=tf.zeros([2]), use_resource=True)
    scalar = tf1.get_variable("b", initializer=tf.zeros([]), use_resource=True)
    if WHAT in ("twins", "fewer"):
        first, second = (namespace.CrossShardOptimizer(OPTIMIZERS[NAME]()) for _ in range(2))
    elif NAME != "-":
        first = namespace.CrossShardOptimizer(OPTIMIZERS[NAME]())
        second = namespace.CrossShardOptimizer(OPTIMIZERS[NAME]())


def one_after_seconds():
    time.sleep(SECONDS)
    return np.float32(1.0)


def update_vector():
    return first.apply_gradients([(tf.ones([2]), vector)])


def update_scalar():
    gradient = tf.ones([])
    if WHAT == "late" and INDEX == 0:
        gradient = tf.reshape(tf.numpy_function(one_after_seconds, [], tf.float32), [])
    return second.apply_gradients([(gradient, scalar)])


def step(swap):
    if WHAT == "sum":
        return tf.reduce_sum(namespace.cross_replica_sum(tf.ones([] if swap else [2])))
    if WHAT == "shape":
        return tf.reduce_sum(namespace.cross_replica_sum(tf.ones([3, 2] if swap else [2, 3])))
    if WHAT == "unknown":
        values = tf.ones([2])
        values = tf.boolean_mask(values, values > 0.0) if swap else values
        return tf.reduce_sum(namespace.cross_replica_sum(values))
    if WHAT in ("optimizer", "twins"):
        updates = []
        for optimizer in (second, first) if swap else (first, second):
            updates.append(optimizer.apply_gradients([(tf.ones([2]), vector)]))
    else:
        both = [update_vector, update_scalar]
        updates = [update() for update in (both[::-1] if swap else both)]
    with tf.control_dependencies([update for update in updates if update is not None]):
        return tf.constant(0.0)


def error_of(call):
    start, kind = time.monotonic(), None
    try:
        error = f"no error, and {call()}"
    except tf.errors.OpError as raised:
        error, kind = raised.message, type(raised).__name__
    return {"error": error, "type": kind, "seconds": time.monotonic() - start}


def in_session():
    train, both = local(RUN(step, (OTHER,))), [local(variable) for variable in (vector, scalar)]
    with tf1.Session(SERVER.target, config=CONFIG) as session:
        session.run(tf1.global_variables_initializer())
        before = session.run(both)
        found = error_of(lambda: session.run(train))
        return found, before, session.run(both)


def eagerly():
    def everywhere(swap):
        return local(RUN(step, (swap,)))

    call = tf.function(everywhere, autograph=False) if MODE == "function" else everywhere
    call(False)
    before = [local(variable).numpy() for variable in (vector, scalar)]
    if WHAT in ("fewer", "dies") and OTHER:
        time.sleep(SECONDS)  # the first step of all workers has ended by then
    if WHAT == "dies" and OTHER:
        os.kill(os.getpid(), signal.SIGKILL)
    found = error_of(lambda: call(OTHER and WHAT != "fewer").numpy())
    after = [local(variable).numpy() for variable in (vector, scalar)]
    if WHAT == "again":
        found["later"] = error_of(lambda: call(False).numpy())["error"]
    return found, before, after


found, before, after = in_session() if MODE == "session" else eagerly()
kept = all(np.array_equal(*pair) for pair in zip(before, after))
print(json.dumps({**found, "kept": kept}))
