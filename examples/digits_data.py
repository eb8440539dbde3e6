"""The handwritten digits as arrays, and batches in an order that every run repeats."""

import gzip
import os

import numpy as np

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv.gz")


def load():
    """Returns images, float32 of shape [1797, 8, 8, 1] in [0, 1], and digits, int32 of [1797]."""
    with gzip.open(DATA, "rb") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    images = table[:, :64].reshape([-1, 8, 8, 1]) / 16.0
    return images, table[:, 64].astype(np.int32)


def batches(steps, size, seed=0):
    """Yields `steps` batches of `size` examples, drawn without replacement within an epoch."""
    images, digits = load()
    random = np.random.RandomState(seed)
    order = np.empty([0], np.int64)
    for _ in range(steps):
        if len(order) < size:
            order = random.permutation(len(images))
        take, order = order[:size], order[size:]
        yield images[take], digits[take]


def initial_weights(seed=0):
    """Weights of a small convolutional network; the same for every framework version."""
    random = np.random.RandomState(seed)

    def he(*shape):
        fan_in = int(np.prod(shape[:-1]))
        return (random.randn(*shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)

    return [
        he(3, 3, 1, 16),
        np.zeros([16], np.float32),
        he(3, 3, 16, 32),
        np.zeros([32], np.float32),
        he(4 * 4 * 32, 10),
        np.zeros([10], np.float32),
    ]
