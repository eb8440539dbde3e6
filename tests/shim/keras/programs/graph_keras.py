"""Trains in graph mode with Keras's own loops: `graph_keras.py SUBJECT...`, prints JSON.

For each subject: the weight after steps of `compile` and `fit` under `mixed_float16`, of a
`convert_to_legacy_optimizer`, and of an estimator, with a loss that float16 loses without scaling.
"""

import importlib
import json
import sys
import tempfile
from typing import Any, Dict

import numpy as np
import recorded
import tensorflow as tf

TINY = 2.0**-26
"""Times a gradient of 1: it is 0 in float16, and a number after scaling."""


def model_of(keras: Any) -> Any:
    keras.mixed_precision.set_global_policy("mixed_float16")
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(1,))
    return keras.Sequential([dense])


def tiny(labels: Any, outputs: Any) -> Any:
    return tf.reduce_mean(tf.cast(outputs, tf.float32)) * TINY


def data() -> Any:
    return np.ones((4, 1), "float32"), np.zeros((4, 1), "float32")


def optimizer_of(subject) -> Any:
    return subject.dynamic(subject.inner("SGD", learning_rate=2.0**22), 2.0**16, 3)


def fitted(subject) -> Dict[str, Any]:
    keras = subject.kind.keras
    with tf.Graph().as_default(), tf.compat.v1.Session().as_default():
        model = model_of(keras)
        model.compile(optimizer_of(subject), tiny)
        model.fit(*data(), batch_size=1, epochs=1, verbose=0, shuffle=False)
        loss_scale = keras.backend.get_value(model.optimizer.loss_scale)
        return {
            "weight": float(model.get_weights()[0][0][0]),
            "loss scale": float(loss_scale),
            "name": type(model.optimizer).__name__,
            "ours": recorded.is_ours(model.optimizer),
        }


def converted(subject) -> Any:
    package = subject.kind.keras.optimizers.SGD.__module__.partition(".optimizers")[0]
    optimizers = importlib.import_module(package + ".optimizers")
    legacy = optimizers.convert_to_legacy_optimizer(optimizer_of(subject))
    return {
        "config": legacy.get_config(),
        "name": type(legacy).__name__,
        "ours": recorded.is_ours(legacy),
    }


def estimated(subject) -> Any:
    keras = subject.kind.keras
    model = model_of(keras)
    model.compile(optimizer_of(subject), tiny)
    with tempfile.TemporaryDirectory() as folder:
        estimator = keras.estimator.model_to_estimator(model, model_dir=folder)
        estimator.train(
            lambda: tf.compat.v1.data.Dataset.from_tensor_slices(data()).batch(1), steps=4
        )
        names = sorted(estimator.get_variable_names())
        kernels = [name for name in names if "layer_with_weights-0/kernel/.ATTR" in name]
        return {
            "weight": float(estimator.get_variable_value(kernels[0]).reshape(())),
            "names": names,
        }


def main():
    subjects = {str(subject): subject for subject in [*recorded.ours(), *recorded.originals()]}
    results: Dict[str, Any] = {}
    for name in sys.argv[1:]:
        steps = {"fit": fitted}
        if subjects[name].kind.name == "new":
            steps["convert"] = converted
        if hasattr(subjects[name].kind.keras, "estimator") and recorded.TF < (2, 16):
            steps["estimator"] = estimated
        results[name] = {}
        for what, step in steps.items():
            try:
                results[name][what] = step(subjects[name])
            except Exception as error:
                results[name][what] = f"{type(error).__name__}: {error}"[:400]
    print(json.dumps(results, default=float))  # TensorFlow 2.11 gives scalars of NumPy


if __name__ == "__main__":
    main()
