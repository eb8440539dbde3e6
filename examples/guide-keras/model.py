"""A small network that computes in float16."""

import tensorflow as tf
from tensorflow.keras.mixed_precision import experimental as mixed_precision

import data


def classifier():
    tf.random.set_seed(1)
    mixed_precision.set_policy("mixed_float16")
    return tf.keras.Sequential(
        [
            tf.keras.Input([data.FEATURES]),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(data.CLASSES, dtype="float32"),
        ]
    )


def loss_fn():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
