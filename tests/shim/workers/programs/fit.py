"""One worker of a cluster that trains Keras models: `fit.py CASE...`, prints JSON.

A case is `SUBJECT OPTIMIZER GRADIENTS MODE`, joined by colons: a loss-scale class over a kind of
optimizer (see `recorded.py`); sgd, momentum or adam; dense, sparse (an embedding) or half (the
policy mixed_float16); fit, eager (`fit` with `run_eagerly`) or loop (a `tf.function` over a
distributed dataset). Each case trains a model on this worker's part of every batch. In batch
`OVERFLOW` one example, which one worker gets, has infinite gradients. The same model then trains on
whole batches, without a strategy, a loss scale or that batch.

For each case: `weights` at the end, `whole`, those of the whole batches, `scale` and `iterations`.
"""

import sys

import numpy as np
import recorded
import tensorflow as tf
from cluster import STRATEGY, WORKERS
from small_model import set_policy
from steps import print_results, step_of_keras

STEPS, OVERFLOW, BATCH, ROWS = 5, 2, 4, 12
RATE = 2.0**-5

SUBJECTS = {str(subject): subject for subject in recorded.originals() + recorded.ours()}

random = np.random.RandomState(11)
SHAPE = [STEPS, WORKERS * BATCH]
WORDS = random.randint(0, ROWS, size=[*SHAPE, 4]).astype(np.int32)
# Small whole numbers, whose sums float16 holds exactly.
NUMBERS = random.randint(-4, 5, size=[*SHAPE, 3]).astype(np.float32)
LABELS = random.randint(-4, 5, size=[*SHAPE, 3]).astype(np.float32)
LABELS[..., 2] = 1.0  # the factor of an example
LABELS[OVERFLOW, -1, 2] = float("inf")
START = [random.normal(size=shape).astype(np.float32) for shape in ([ROWS, 2], [3, 2], [2])]

OPTIMIZERS = {
    "sgd": lambda kind: kind.optimizers.SGD(RATE),
    "momentum": lambda kind: kind.optimizers.SGD(RATE, momentum=0.5),
    "adam": lambda kind: kind.optimizers.Adam(RATE),
}


def error(labels, outputs):
    """The loss of each example, through whose factor an infinity reaches its gradients."""
    return tf.reduce_sum((outputs - labels[:, :2]) ** 2, axis=1) * labels[:, 2]


def product(labels, outputs):
    """A loss whose gradients are small whole numbers, with any weights."""
    return tf.reduce_sum(outputs * labels[:, :2], axis=1) * labels[:, 2] * WORKERS


def make_model(kind, gradients):
    """A model with a table, a kernel and a bias."""
    layers = kind.keras.layers
    shape = [4, ROWS] if gradients == "dense" else [4]
    words, numbers = kind.keras.Input(shape), kind.keras.Input([3])
    if gradients == "dense":
        rows = layers.Dense(2, use_bias=False)(words)
    else:
        rows = layers.Embedding(ROWS, 2)(words)
    added = layers.Add()([layers.GlobalAveragePooling1D()(rows), layers.Dense(2)(numbers)])
    model = kind.keras.Model([words, numbers], layers.Activation("linear", dtype="float32")(added))
    model.set_weights(START)
    return model


def examples(gradients, first, last):
    """The batches from `first` to `last`, for all workers together."""
    words = WORDS[first:last].reshape([-1, 4])
    words = np.eye(ROWS, dtype=np.float32)[words] if gradients == "dense" else words
    numbers, labels = (array[first:last].reshape([-1, 3]) for array in (NUMBERS, LABELS))
    dataset = tf.data.Dataset.from_tensor_slices(((words, numbers), labels))
    return dataset.batch(WORKERS * BATCH, drop_remainder=True)


def compile_and_fit(model, optimizer, gradients, mode):
    loss = product if gradients == "half" else error
    model.compile(optimizer, loss, run_eagerly=mode == "eager")
    # TensorFlow 2.3 requires the number of steps.
    model.fit(examples(gradients, 0, STEPS), epochs=1, steps_per_epoch=STEPS, verbose=0)


def loop(model, optimizer, gradients):
    loss_of = product if gradients == "half" else error

    def loss(inputs, labels):
        losses = loss_of(labels, model(inputs, training=True))
        return tf.reduce_sum(losses) / (WORKERS * BATCH)

    step = step_of_keras(optimizer, model.trainable_weights, loss)

    @tf.function(autograph=False)
    def everywhere(inputs, labels):
        STRATEGY.run(step, args=(inputs, labels))

    for inputs, labels in STRATEGY.experimental_distribute_dataset(examples(gradients, 0, STEPS)):
        everywhere(inputs, labels)


def train(case):
    name, optimizer, gradients, mode = case.split(":")
    subject = SUBJECTS[name]
    kind = subject.kind
    with STRATEGY.scope():
        set_policy(kind.keras, "mixed_float16" if gradients == "half" else "float32")
        model = make_model(kind, gradients)
        scaled = subject.dynamic(OPTIMIZERS[optimizer](kind), 8.0, 2)
        if kind.name == "keras3":
            scaled.build(model.trainable_variables)
        if mode != "loop":
            compile_and_fit(model, scaled, gradients, mode)
    if mode == "loop":
        loop(model, scaled, gradients)
    set_policy(kind.keras, "float32")
    scale, _, iterations = subject.read(scaled)
    return {
        "weights": values(model),
        "whole": whole(kind, optimizer, gradients),
        "scale": scale,
        "iterations": iterations,
    }


WHOLE = {}


def whole(kind, name, gradients):
    """The weights after training on whole batches, without a loss scale."""
    key = (kind.name, name, gradients)
    if key not in WHOLE:
        model, optimizer = make_model(kind, gradients), OPTIMIZERS[name](kind)
        model.compile(optimizer, product if gradients == "half" else error)
        model.fit(examples(gradients, 0, OVERFLOW), steps_per_epoch=OVERFLOW, verbose=0)
        optimizer.iterations.assign_add(1)  # Keras counts a skipped step, too, which Adam sees.
        rest = STEPS - OVERFLOW - 1
        model.fit(examples(gradients, OVERFLOW + 1, STEPS), steps_per_epoch=rest, verbose=0)
        WHOLE[key] = values(model)
    return WHOLE[key]


def values(model):
    return [np.asarray(weight, np.float64).ravel().tolist() for weight in model.get_weights()]


print_results(train, sys.argv[1:])
