"""Names the final class first after `compile` and `fit`; prints whose it is under each path.

`install(replace=True)` came before TensorFlow, and nothing has loaded our class until then, so that
Keras has gone through all of its mixed precision with the paths replaced and not one looked at.
"""

import importlib
import json

import tf_lossscale

tf_lossscale.install(replace=True)

import numpy as np  # noqa: E402 - after the installation
import tensorflow as tf  # noqa: E402 - after the installation

NAME = "LossScaleOptimizer"


def train():
    """Fits a model under `mixed_float16`: Keras wraps the optimizer in its own class."""
    mixed_precision = tf.keras.mixed_precision
    mixed_precision.set_global_policy("mixed_float16")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float32")])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.fit(np.zeros((4, 3), "float32"), np.zeros((4, 1), "float32"), verbose=0)


train()
found = {}
for path, module in (
    ("tf.keras", tf.keras.mixed_precision),
    ("from tensorflow.keras", importlib.import_module("tensorflow.keras.mixed_precision")),
    ("tf.compat.v2.keras", tf.compat.v2.keras.mixed_precision),
):
    found[path] = getattr(module, NAME).__module__
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
found["instance"] = "tf_lossscale._keras.final" in {
    vars(each).get("__module__") for each in type(optimizer).__mro__
}
print(json.dumps(found))
