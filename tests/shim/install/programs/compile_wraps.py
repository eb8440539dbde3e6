"""Compiles before, during and after an installation; prints whose the optimizers are, as JSON.

`compile_wraps.py keep|replace early|late`: installs before or after TensorFlow is imported.
"""

import json
import sys

import tf_lossscale

REPLACE, EARLY = sys.argv[1] == "replace", sys.argv[2] == "early"
COMPILERS = (
    "keras.src.trainers.trainer",
    "keras.engine.training",
    "keras.engine.training_v1",
    "keras.src.engine.training",
    "keras.src.engine.training_v1",
    "tf_keras.src.engine.training",
    "tf_keras.src.engine.training_v1",
    "tensorflow.python.keras.engine.training",
    "tensorflow.python.keras.engine.training_v1",
)

if EARLY:
    tf_lossscale.install(replace=REPLACE)
import tensorflow as tf  # noqa: E402 - after the installation


def is_ours(cls):
    return any(base.__module__.startswith("tf_lossscale.") for base in cls.__mro__)


def compiled():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model.optimizer


def compiled_in_graph():
    with tf.Graph().as_default():
        keras = tf.compat.v1.keras
        optimizers = getattr(keras.optimizers, "legacy", keras.optimizers)
        inputs = keras.layers.Input((1,))
        model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
        model.compile(optimizers.SGD(0.1), "mse")
        return model.optimizer


def whose():
    """Who made the optimizers, and whether they are what the public path holds."""
    mixed_precision = tf.keras.mixed_precision
    mixed_precision.set_global_policy("mixed_float16")
    optimizers = [compiled()]
    if not hasattr(tf.keras, "Operation"):  # Keras 3 has no graph mode
        optimizers.append(compiled_in_graph())
    mixed_precision.set_global_policy("float32")
    path = mixed_precision.LossScaleOptimizer
    return {
        "path": is_ours(path),
        "made": [is_ours(type(optimizer)) for optimizer in optimizers],
        "instances": [isinstance(optimizer, path) for optimizer in optimizers],
    }


def state():
    """What an installation may change, by identity."""
    found = {}
    for name in COMPILERS:
        for attribute in ("LossScaleOptimizer", "lso", "loss_scale_optimizer"):
            if hasattr(sys.modules.get(name), attribute):
                found[name + "." + attribute] = id(getattr(sys.modules[name], attribute))
    for keras in (tf.keras, tf.compat.v2.keras, sys.modules.get("keras")):
        mixed_precision = getattr(keras, "mixed_precision", None)
        if hasattr(mixed_precision, "LossScaleOptimizer"):  # up to 2.8 `keras` itself holds none
            found[keras.__name__] = id(mixed_precision.LossScaleOptimizer)
    return found


found = {}
if not EARLY:
    found["before"], was = whose(), state()
    finders = list(sys.meta_path)
    tf_lossscale.install()
    tf_lossscale.install(replace=REPLACE)
found["during"] = whose()
tf_lossscale.uninstall()
found["after"] = whose()
if not EARLY:
    found["restored"] = state() == was
    found["finders"] = [type(finder).__name__ for finder in sys.meta_path if finder not in finders]
tf_lossscale.install(replace=REPLACE)
found["again"] = whose()
print(json.dumps(found))
