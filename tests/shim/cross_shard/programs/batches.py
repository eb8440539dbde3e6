"""A batch split over four logical CPU devices, beside the whole batch on one.

`batches.py graph|function NAME...`, prints JSON: the weights after each step, `whole` and `split`.
"""

import json
import sys

import numpy as np
import tensorflow as tf
from four_cpus import MODE, REPLICAS, SESSION, STRATEGY, local, on_replicas

import tf_lossscale as tfls

tf1 = tf.compat.v1
BATCH, STEPS = 16, 6

CrossShardOptimizer = tfls.compat.v1.tpu.CrossShardOptimizer

random = np.random.RandomState(3)
WORDS = random.randint(0, 10, size=[STEPS, BATCH, 3]).astype(np.int32)
LABELS = random.normal(size=[STEPS, BATCH]).astype(np.float32)
TABLE = random.normal(size=[10, 4]).astype(np.float32)
KERNEL = random.normal(size=[4, 3]).astype(np.float32)


def scaled(inner):
    namespace = tfls.compat.v1.mixed_precision
    return namespace.MixedPrecisionLossScaleOptimizer(inner, namespace.DynamicLossScale(64.0, 2))


CASES = {
    "sgd": lambda: CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1)),
    "momentum": lambda: CrossShardOptimizer(tf1.train.MomentumOptimizer(0.1, 0.9)),
    "adam": lambda: CrossShardOptimizer(tf1.train.AdamOptimizer(0.01)),
    "scaled adam": lambda: CrossShardOptimizer(scaled(tf1.train.AdamOptimizer(0.01))),
}


class Model:
    """An embedding, a hidden layer and a mean square error; one step of its optimizer."""

    def __init__(self, name):
        self.weights = [
            tf1.get_variable(f"{name}_{each}", initializer=start, use_resource=True)
            for each, start in (
                ("table", TABLE),
                ("kernel", KERNEL),
                ("bias", np.zeros([3], np.float32)),
            )
        ]
        self.optimizer = CASES[name.split("/")[1].replace("_", " ")]()

    def step(self, words, labels):
        table, kernel, bias = self.weights

        def loss():
            hidden = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
            output = tf.reduce_sum(tf.tanh(tf.matmul(hidden, kernel) + bias), axis=1)
            return tf.reduce_mean(tf.square(output - labels))

        pairs = self.optimizer.compute_gradients(loss() if MODE == "graph" else loss, self.weights)
        return self.optimizer.apply_gradients(pairs)


def numbers(copies):
    """Returns the weights of the last replica, as one list."""
    return np.concatenate([np.reshape(each, [-1]) for each in copies]).tolist()


def in_graph(name):
    words = tf1.placeholder(tf.int32, [BATCH, 3])
    labels = tf1.placeholder(tf.float32, [BATCH])
    whole = Model("whole/" + name)
    with STRATEGY.scope():
        split = Model("split/" + name)

    def part():
        size = BATCH // REPLICAS
        first = size * tf.distribute.get_replica_context().replica_id_in_sync_group
        return split.step(words[first : first + size], labels[first : first + size])

    steps = [whole.step(words, labels), local(on_replicas(part))]
    SESSION.run(tf1.global_variables_initializer())
    history = {"whole": [], "split": []}
    for number in range(STEPS):
        SESSION.run(steps, {words: WORDS[number], labels: LABELS[number]})
        history["whole"].append(numbers(SESSION.run(whole.weights)))
        copies = [local(each)[-1] for each in split.weights]
        history["split"].append(numbers(SESSION.run(copies)))
    return history


def in_function(name):
    whole = Model("whole/" + name)
    with STRATEGY.scope():
        split = Model("split/" + name)
    # The strategy cuts each batch into one part for each replica.
    data = tf.data.Dataset.from_tensor_slices((WORDS, LABELS)).unbatch().batch(BATCH, True)
    parts = STRATEGY.experimental_distribute_dataset(data)
    on_whole = tf.function(lambda *batch: (whole.step(*batch), 0)[1], autograph=False)
    on_parts = tf.function(lambda *part: (on_replicas(split.step, *part), 0)[1], autograph=False)
    history = {"whole": [], "split": []}
    for number, part in enumerate(parts):
        assert [each.shape[0] for each in local(part[0])] == [BATCH // REPLICAS] * REPLICAS
        on_whole(tf.constant(WORDS[number]), tf.constant(LABELS[number]))
        on_parts(*part)
        history["whole"].append(numbers([each.numpy() for each in whole.weights]))
        history["split"].append(numbers([local(each)[-1].numpy() for each in split.weights]))
    return history


run = in_graph if MODE == "graph" else in_function
print(json.dumps({name: run(name.replace(" ", "_")) for name in sys.argv[2:]}))
