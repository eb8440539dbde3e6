"""Reads optimizers of the originals before any instance of ours is made.

    python first_use.py installed|plain KERAS ...

Takes the class of ours and nothing else, then imports each KERAS (`tf.keras`, `keras`, `tf_keras`)
and has it read an optimizer that its own class serialized. `installed` calls `install()` first,
whose import hook then watches the same imports. Prints for each whether it was loaded before, and
whether it gave ours; with `installed` also after `uninstall()`, and after a second `install()`.
"""

import copy
import importlib
import json
import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

import tf_lossscale as tfls


def serialized(keras: Any) -> Any:
    """What the original serializes itself to; the form of TensorFlow 2.4 and later."""
    if hasattr(keras, "Operation"):
        cls = keras.optimizers.LossScaleOptimizer
    else:
        cls = keras.mixed_precision.LossScaleOptimizer
    return keras.optimizers.serialize(cls(keras.optimizers.SGD(0.5), initial_scale=64.0))


def without_module(config: Any) -> Any:
    """As an `.h5` file has it, where Keras 3 names the class without the module it is in."""
    return {"class_name": config["class_name"], "config": config["config"]}


def read(keras: Any, config: Any) -> Any:
    # Keras takes the configuration apart.
    return keras.optimizers.deserialize(copy.deepcopy(config))


def main(how: str, *names: str):
    if how == "installed":
        tfls.install()
    ours = tfls.keras.mixed_precision.LossScaleOptimizer
    result, configs = {}, {}
    for name in names:
        loaded = name == "tf.keras" or name in sys.modules
        keras = tf.keras if name == "tf.keras" else importlib.import_module(name)
        config = serialized(keras)
        if hasattr(keras, "Operation"):
            config = without_module(config)
        configs[name] = keras, config
        optimizer = read(keras, config)
        result[name] = {
            "loaded": loaded,
            "ours": ours in type(optimizer).__mro__,
            "scale": optimizer.initial_scale,
            "loader": type(getattr(sys.modules.get(name), "__loader__", None)).__name__,
        }
    if how == "installed":
        for change, key in ((tfls.uninstall, "uninstalled"), (tfls.install, "again")):
            change()
            for name, (keras, config) in configs.items():
                result[name][key] = ours in type(read(keras, config)).__mro__
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
