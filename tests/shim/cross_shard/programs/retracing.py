"""One worker of a cluster, which may trace more often than the others: `retracing.py CASE...`.

A case is `WHAT:OPTIMIZER:MODE`. The last worker gets a batch of another length at every step, and
so traces at every step, which the others do only once; the first traces a function that it never
calls. Prints, for each case, the weights or sums of this worker after each step.
"""

import json
import sys

import numpy as np
import support
import tensorflow as tf
from cluster import INDEX, OPTIMIZERS, RUN, STRATEGY, WORKERS, local, namespace, values

import tf_lossscale as tfls

tf1 = tf.compat.v1
# Here all workers must know a shape while tracing, or none.
OLD = support.TF_VERSION < (2, 4)
STEPS = 3
SHAPES = ([3], [], [2, 2])
GROUPS = {
    "subgroups": [[member, member + WORKERS // 2] for member in range(WORKERS // 2)],
    "reversed": [list(range(WORKERS))[::-1]],
}


def batch_of(step):
    """Numbers whose sum is `(worker + 1) * (step + 1)`, however many they are."""
    count = 4 + 4 * step if INDEX == WORKERS - 1 else 4
    return tf.constant(np.full([count], (INDEX + 1.0) * (step + 1) / count, np.float32))


def run_steps(step, mode):
    """Yields what each step returned."""

    def everywhere(batch):
        return local(RUN(step, args=(batch,)))

    call = tf.function(everywhere, autograph=False) if mode == "function" else everywhere
    for number in range(STEPS):
        if mode == "function" and INDEX == 0 and number == 1:
            call.get_concrete_function(tf.zeros([17]))
        yield call(batch_of(number))


def loss_scale_optimizer(what, name):
    """One that leaves the sum over the workers to TensorFlow."""
    if what == "keras":
        momentum = 0.5 if name == "momentum" else 0.0
        inner = tf.keras.optimizers.SGD(0.5, momentum=momentum)
        return tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
    make = {"v1": support.v1_optimizer, "contrib": support.contrib_optimizer}[what]
    return make(OPTIMIZERS[name]())[0]


def trained_by_keras(name, mode):
    keras_3 = hasattr(tf.keras, "Operation")
    with STRATEGY.scope():
        make = tf.keras.Variable if keras_3 else tf.Variable
        weights = [make(tf.zeros(shape)) for shape in SHAPES]
        optimizer = loss_scale_optimizer("keras", name)
        if keras_3:
            optimizer.build(weights)
    watched = [weight.value for weight in weights] if keras_3 else weights

    def step(batch):
        with tf.GradientTape() as tape:
            factors = [number * tf.reduce_sum(batch) for number in (1.0, 2.0, 3.0)]
            parts = [tf.reduce_sum(weight) * factor for weight, factor in zip(watched, factors)]
            loss = optimizer.get_scaled_loss(tf.add_n(parts))
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, watched))
        optimizer.apply_gradients(zip(gradients, weights))
        return tf.constant(0.0)

    return [values(weights) for _ in run_steps(step, mode)]


def trained(what, name, mode):
    if what == "keras":
        return trained_by_keras(name, mode)
    dtypes = [tf.float32] * 3
    if what in ("half", "mixed"):
        dtypes = [tf.float16] * 3 if what == "half" else [tf.float16, tf.float32, tf.float32]
    with STRATEGY.scope():
        weights = [tf.Variable(tf.zeros(shape, dtype)) for shape, dtype in zip(SHAPES, dtypes)]
        if what in ("contrib", "v1"):
            optimizer = loss_scale_optimizer(what, name)
        else:
            inner = OPTIMIZERS[name]()
            optimizer = namespace.CrossShardOptimizer(
                support.v1_optimizer(inner)[0] if what == "scaled" else inner,
                tf1.losses.Reduction.SUM,
                group_assignment=GROUPS.get(what),
            )

    def step(batch):
        def loss():
            sums = [tf.reduce_sum(tf.cast(weight, tf.float32)) for weight in weights]
            factors = [number * tf.reduce_sum(batch) for number in (1.0, 2.0, 3.0)]
            return tf.add_n([total * factor for total, factor in zip(sums, factors)])

        optimizer.minimize(loss, var_list=weights)
        return tf.constant(0.0)

    return [values(weights) for _ in run_steps(step, mode)]


def sums(mode):
    def step(batch):
        value = tf.reduce_sum(batch)
        total = namespace.cross_replica_sum(tf.stack([value, 2.0 * value]))
        with tf.GradientTape() as tape:
            tape.watch(value)
            square = namespace.cross_replica_sum(value) ** 2
        gradient = tape.gradient(square, value)
        looped = tf.constant(0.0)
        for _ in range(2):
            half = namespace.cross_replica_sum(tf.cast(value, tf.float16))
            looped += tf.cast(half, tf.float32)
        crossed = namespace.cross_replica_sum(value, GROUPS["reversed"])
        pair = tf.stack([value, value])
        if INDEX == WORKERS - 1 or OLD:
            pair = tf.boolean_mask(pair, pair > 0.0)  # whose shape does not show while tracing
        unknown = namespace.cross_replica_sum(pair)
        return tf.concat([total, [gradient, looped, crossed], unknown], axis=0)

    return [total.numpy().tolist() for total in run_steps(step, mode)]


results = {}
for case in sys.argv[1:]:
    what, name, mode = case.split(":")
    print(case, file=sys.stderr, flush=True)
    results[case] = sums(mode) if what == "sums" else trained(what, name, mode)
print(json.dumps(results))
