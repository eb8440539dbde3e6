"""The model of the recorded files: a dense layer under `mixed_float16`, Adam inside a wrapper.

Imported by tests and by the program that loads our files with the originals, so it knows nothing of
ours.
"""

from typing import Any, Dict

import numpy as np
import tensorflow as tf

X = (np.arange(24).reshape(8, 3) % 5 / 4.0).astype("float32")
Y = np.zeros((8, 2), "float32")
BAD_STEP = 2  # the step whose batch holds infinities, where the scale is dynamic


def set_policy(keras: Any, name: str):
    if tf.__version__.startswith("1."):  # policies are a part of TensorFlow 2's behavior
        from tensorflow.python.keras.engine import base_layer_utils

        base_layer_utils.enable_v2_dtype_behavior()
    mixed_precision = keras.mixed_precision
    if hasattr(mixed_precision, "set_global_policy"):
        mixed_precision.set_global_policy(name)
    else:
        mixed_precision.experimental.set_policy(name)


def build(keras: Any, optimizer: Any) -> Any:
    """The compiled model. It runs eagerly, which saves tracing for the few steps that it takes."""
    keras.backend.clear_session()
    set_policy(keras, "mixed_float16")
    try:
        inputs = keras.layers.Input((3,))
        outputs = keras.layers.Dense(2, kernel_initializer="ones", name="d")(inputs)
        model = keras.Model(inputs, outputs)
    finally:
        set_policy(keras, "float32")
    model.compile(optimizer, keras.losses.MeanSquaredError(), run_eagerly=True)
    return model


def feed(model: Any, step: int):
    model.train_on_batch(np.full_like(X, np.inf) if step == BAD_STEP else X, Y)


def weights(model: Any) -> Dict[str, Any]:
    kernel, bias = model.get_weights()
    return {"kernel": kernel.tolist(), "bias": bias.tolist()}
