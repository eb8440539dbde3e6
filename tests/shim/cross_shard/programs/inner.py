"""The inner optimizer of the workers."""

import tensorflow as tf

__all__ = ["make_inner"]

# Up to 2.11 at least, files that are written under the strategy lack the powers of TensorFlow's own
# Adam, wrapped or bare; its slots are there.
HAS_POWERS = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 15)


def make_inner():
    train = tf.compat.v1.train
    return train.AdamOptimizer(0.1) if HAS_POWERS else train.MomentumOptimizer(0.1, 0.9)
