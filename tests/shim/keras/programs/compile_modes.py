"""Trains with `compile` and `fit` of Keras 2: `compile_modes.py MODE SUBJECT...`, prints JSON.

The modes are those in which `compile` treats an optimizer differently: eager, with `run_eagerly`,
without eager execution, and without the behavior of TensorFlow 2. There, from TensorFlow 2.11 on,
`compile` converts a newer optimizer to a legacy one. The third batch overflows.
"""

import importlib
import itertools
import json
import sys
from typing import Any, Callable, Dict

import numpy as np
import recorded
import small_model
import tensorflow as tf
from processes import LONG

tf1 = tf.compat.v1

START: Dict[str, Callable[[], Any]] = {
    "eager": lambda: None,
    "run_eagerly": lambda: None,
    "graph": tf1.disable_eager_execution,
    "v1": tf1.disable_v2_behavior,
}

X = np.array([[1, 2], [0.5, 0.25], [np.inf, 1], [1, 1]], "float32")
Y = np.zeros((4, 1), "float32")


def schedule(keras: Any) -> Any:
    return keras.optimizers.schedules.PolynomialDecay(0.125, 3, 0.0625)


INNER: Dict[str, Callable[[Any], Any]] = {
    "SGD": lambda kind: kind.optimizers.SGD(0.125),
    "SGD, schedule": lambda kind: kind.optimizers.SGD(schedule(kind.keras)),
    "momentum": lambda kind: kind.optimizers.SGD(0.125, momentum=0.5),
    "Adam, schedule": lambda kind: kind.optimizers.Adam(schedule(kind.keras)),
}

POLICIES = ("float32", "mixed_float16")
QUICK = [
    ("SGD", "float32"),
    ("SGD, schedule", "mixed_float16"),
    ("momentum", "mixed_float16"),
    ("Adam, schedule", "float32"),
]


def model_of(keras: Any) -> Any:
    dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(2,))
    return keras.Sequential([dense, keras.layers.Activation("linear", dtype="float32")])


def result_of(subject, inner: str, policy: str, mode: str) -> Dict[str, Any]:
    keras = subject.kind.keras
    keras.backend.clear_session()
    optimizer = subject.dynamic(INNER[inner](subject.kind), 256.0, 2)
    small_model.set_policy(keras, policy)
    try:
        model = model_of(keras)
        model.compile(optimizer, "mse", run_eagerly=mode == "run_eagerly")
    finally:
        small_model.set_policy(keras, "float32")
    model.fit(X, Y, batch_size=1, epochs=2, verbose=0, shuffle=False)
    used = model.optimizer
    state = [recorded.scale_of(used), used.iterations]
    return {
        "weights": [float(weight) for weight in model.get_weights()[0].ravel()],
        "scale, iterations": [float(keras.backend.get_value(value)) for value in state],
        "is of the class": isinstance(used, subject.cls),
        "inner optimizer": type(used._optimizer).__module__ + "." + type(used._optimizer).__name__,
        "is the one given": used is optimizer,
    }


def main():
    mode, *names = sys.argv[1:]
    START[mode]()
    if tf.__version__.startswith("1."):
        if not mode.endswith("graph") and mode != "v1":
            tf1.enable_v2_behavior()
    else:
        # Without the behavior of TensorFlow 2, layers ignore policies unless this is called.
        keras_2 = tf1.keras
        if not hasattr(keras_2.layers, "enable_v2_dtype_behavior"):  # it is Keras 3
            keras_2 = importlib.import_module("tf_keras.api._v1.keras")
        keras_2.layers.enable_v2_dtype_behavior()
    subjects = {str(subject): subject for subject in [*recorded.ours(), *recorded.originals()]}
    results: Dict[str, Any] = {}
    for name in names:
        results[name] = {}
        for inner, policy in itertools.product(INNER, POLICIES) if LONG else QUICK:
            try:
                found: Any = result_of(subjects[name], inner, policy, mode)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"[:100]
            results[name][f"{inner}, {policy}"] = found
    print(json.dumps(results))


if __name__ == "__main__":
    main()
