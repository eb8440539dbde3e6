"""A worker that calls `fit` of Keras 3: prints the errors with a bare and a wrapped optimizer."""

import json

import keras
import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

STRATEGY = tf.distribute.MultiWorkerMirroredStrategy()


def error_of(wrap):
    with STRATEGY.scope():
        model = keras.Sequential([keras.Input([3]), keras.layers.Dense(2)])
        model.compile(wrap(keras.optimizers.SGD(0.5)), "mse")
    examples = np.ones([16, 3], np.float32), np.ones([16, 2], np.float32)
    try:
        model.fit(tf.data.Dataset.from_tensor_slices(examples).batch(8), verbose=0)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return ""


ours = tfls.keras.mixed_precision.LossScaleOptimizer
print(json.dumps({"bare": error_of(lambda optimizer: optimizer), "ours": error_of(ours)}))
