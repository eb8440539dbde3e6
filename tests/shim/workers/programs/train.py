"""One worker of a cluster: `train.py CASE...`, prints JSON.

A case is `FAMILY OPTIMIZER GRADIENTS MODE`, joined by colons: what wraps the optimizer (see
`FAMILIES`), sgd, momentum or adam; dense, sparse or half; function, eager or again, a function that
reads the gradients again after each step, for dense ones of v1 optimizers. Each case trains on
this worker's part of a batch; in step `OVERFLOW` the gradients of the last worker are infinite. The
same optimizer, without a wrapper or a strategy, then trains on whole batches, without that step.

For each case: `weights` after the last step, `whole`, those of the whole batches, `scale`, the loss
scale after it, and `steps`, the global step; `again`, the sums of the gradients that were read
after each step, and `own`, those of this worker's gradients.
"""

import functools
import sys

import numpy as np
import replicas
import support
import tensorflow as tf
from cluster import INDEX, STRATEGY, WORKERS, local, values
from steps import print_results, step_of_v1

import tf_lossscale as tfls

tf1 = tf.compat.v1
STEPS, OVERFLOW, BATCH, ROWS = 5, 2, 4, 12
RATE = 2.0**-5  # of learning; with a larger one the weights grow without bound
INF = float("inf")

CrossShardOptimizer = tfls.compat.v1.tpu.CrossShardOptimizer
SUM = tf1.losses.Reduction.SUM

random = np.random.RandomState(11)
WORDS = random.randint(0, ROWS, size=[STEPS, WORKERS * BATCH, 3]).astype(np.int32)
LABELS = random.normal(size=[STEPS, WORKERS * BATCH, 2]).astype(np.float32)
# Small whole numbers, whose sums float16 holds exactly.
FACTORS = random.randint(-4, 5, size=[STEPS, WORKERS * BATCH]).astype(np.float32)
START = [random.normal(size=shape).astype(np.float32) for shape in ([ROWS, 3], [3, 2], [2], [])]


class Passing(tf1.train.GradientDescentOptimizer):
    """Has an `apply_gradients` of its own, which is to see the gradients of each replica."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        return super().apply_gradients(list(grads_and_vars), global_step, name)


class Looking(tfls.compat.v1.train.experimental.LossScale):
    """A program's own, which looks at what each worker gives it: the gradients of that worker."""

    def __call__(self):
        return tf.constant(8.0)

    def update(self, grads):
        parts = [part for gradient in grads for part in replicas.local(STRATEGY, gradient)]
        dense = [part.values if isinstance(part, tf.IndexedSlices) else part for part in parts]
        return tf.no_op(), tf.reduce_all([tf.reduce_all(tf.math.is_finite(x)) for x in dense])

    def get_config(self):
        return {}


def contrib_fixed(inner):
    manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8.0)
    return tfls.contrib.mixed_precision.LossScaleOptimizer(inner, manager), manager.get_loss_scale


def v1(inner, scale=None):
    if scale is None:
        return support.v1_optimizer(inner)
    cls = tfls.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer
    return cls(inner, scale), None if isinstance(scale, Looking) else scale


def cross(inner, scale=None):
    return CrossShardOptimizer(inner, SUM), scale


FAMILIES = {
    "bare": lambda inner: (inner, None),
    "contrib": support.contrib_optimizer,
    "contrib-fixed": contrib_fixed,
    "v1": v1,
    "v1-fixed": lambda inner: v1(inner, tfls.train.experimental.FixedLossScale(8.0)),
    "v1-own": lambda inner: v1(inner, Looking()),
    "v1-original": functools.partial(support.v1_optimizer, whose="original"),
    "cross": cross,
    "cross-v1": lambda inner: cross(*v1(inner)),
    "v1-cross": lambda inner: v1(cross(inner)[0]),
    "contrib-cross": lambda inner: support.contrib_optimizer(cross(inner)[0]),
}
SKIP_NOTHING = ("bare", "v1-fixed", "cross")
OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(RATE),
    "momentum": lambda: tf1.train.MomentumOptimizer(RATE, 0.5),
    "adam": lambda: tf1.train.AdamOptimizer(RATE),
    "passing": lambda: Passing(RATE),
}


def loss_of(weights, gradients, words, labels, factors):
    """The loss of some examples, of which there are `WORKERS * BATCH` in all."""
    table, kernel, bias, gain = weights
    if gradients == "half":
        total = sum(tf.reduce_sum(tf.cast(weight, tf.float32)) for weight in weights)
        return total * tf.reduce_sum(factors) / 16.0
    if gradients == "sparse":
        hidden = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
    else:
        hidden = tf.reduce_mean(tf.one_hot(words, ROWS), axis=1) @ tf.convert_to_tensor(table)
    out = (hidden @ tf.convert_to_tensor(kernel) + bias) * gain
    # Through the factor of an example, an infinity reaches the gradients of one worker.
    errors = tf.reduce_sum((out - labels) ** 2, axis=1) * tf.abs(factors)
    return tf.reduce_sum(errors) / (WORKERS * BATCH)


def batches(first, last):
    """The examples `first` to `last` of every step."""
    for step in range(STEPS):
        yield [tf.constant(array[step, first:last]) for array in (WORDS, LABELS, FACTORS)]


def make_weights(gradients):
    dtype = "float16" if gradients == "half" else "float32"
    return [tf.Variable(value.astype(dtype)) for value in START]


def compiled(function, mode):
    return function if mode == "eager" else tf.function(function, autograph=False)


def sums_of(gradients):
    return [tf.reduce_sum(gradient) for gradient in gradients]


def step_that_reads_again(optimizer, weights, loss_of, counter):
    """Returns a step of a v1 optimizer, which then sums the elements of each gradient."""

    def step(*examples):
        pairs = optimizer.compute_gradients(lambda: loss_of(*examples), weights)
        optimizer.apply_gradients(pairs, counter)
        with tf.control_dependencies([weight.read_value() for weight in weights]):
            return sums_of([gradient for gradient, _ in pairs])

    return step


def own_gradients(weights, gradients, examples):
    """The sums of this worker's gradients, found without an optimizer."""
    copies = [tf.constant(local(weight).numpy()) for weight in weights]
    with tf.GradientTape() as tape:
        tape.watch(copies)
        loss = loss_of(copies, gradients, *examples)
    return [float(total) for total in sums_of(tape.gradient(loss, copies))]


def train(case):
    family, name, gradients, mode = case.split(":")
    with STRATEGY.scope():
        weights = make_weights(gradients)
        loss = functools.partial(loss_of, weights, gradients)
        counter = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        optimizer, read = FAMILIES[family](OPTIMIZERS[name]())
        make_step = step_that_reads_again if mode == "again" else step_of_v1
        step = make_step(optimizer, weights, loss, counter)

    def everywhere(*examples):
        found = replicas.run(STRATEGY, step, examples)
        if mode == "again":
            return [local(value) for value in found]
        return None

    everywhere = compiled(everywhere, mode)
    overflows = family not in SKIP_NOTHING
    again, own = [], []
    for number, examples in enumerate(batches(INDEX * BATCH, (INDEX + 1) * BATCH)):
        if number == OVERFLOW:
            if not overflows:
                continue
            if INDEX == WORKERS - 1:
                examples[2] = tf.fill([BATCH], INF)
        if mode == "again":
            own.append(own_gradients(weights, gradients, examples))
            again.append([float(total) for total in everywhere(*examples)])
        else:
            everywhere(*examples)
    return {
        "weights": values(weights),
        "whole": whole(name, seen_by_inner(family, gradients)),
        "scale": None if read is None else float(tf.convert_to_tensor(read()).numpy()),
        "steps": int(values([counter])[0][0]),
        "again": again,
        "own": own,
    }


def seen_by_inner(family, gradients):
    """The kind of gradients: the cross-shard optimizer makes sparse ones dense, as its original."""
    return "dense" if gradients == "sparse" and "cross" in family else gradients


@functools.lru_cache(maxsize=None)
def whole(name, gradients):
    """The weights after training on whole batches, without a wrapper."""
    weights = make_weights(gradients)
    step = step_of_v1(OPTIMIZERS[name](), weights, functools.partial(loss_of, weights, gradients))
    for number, examples in enumerate(batches(0, WORKERS * BATCH)):
        if number != OVERFLOW:
            step(*examples)
    return values(weights)


print_results(train, sys.argv[1:])
