"""Loads files saved by our classes with the original class of the same Keras, without tf_lossscale.

    python load_with_original.py FOLDER

FOLDER holds a folder for each subject of `test_written_files`, named who-class-kind-keras, with its
files. Prints for each file what the original got and what a further step made of it, or its error.
"""

import importlib
import json
import os
import sys
from typing import Any, Dict

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import small_model
import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()


def optimizers(keras: Any, kind: str) -> Any:
    legacy = getattr(keras.optimizers, "legacy", None)
    return legacy if kind == "legacy" and legacy is not None else keras.optimizers


def wrapped(keras: Any, kind: str, class_of: str) -> Any:
    """The original over Adam, as the files had it."""
    inner = optimizers(keras, kind).Adam(learning_rate=0.125)
    mixed_precision = keras.mixed_precision
    if kind == "keras3":
        return keras.optimizers.LossScaleOptimizer(inner, 64.0, 3)
    if class_of == "experimental":
        loss_scale = tf.compat.v1.train.experimental.DynamicLossScale(64.0, 3)
        return mixed_precision.experimental.LossScaleOptimizer(inner, loss_scale)
    return mixed_precision.LossScaleOptimizer(inner, True, 64.0, 3)


def state(model: Any, kind: str) -> Dict[str, Any]:
    """What the model and its optimizer hold."""
    optimizer = model.optimizer
    if kind == "keras3":
        scale, counter = optimizer.dynamic_scale.numpy(), optimizer.step_counter.numpy()
    elif callable(optimizer.loss_scale):  # up to TensorFlow 2.3
        scale = optimizer.loss_scale().numpy()
        counter = optimizer.loss_scale._num_good_steps.numpy()
    else:
        scale, counter = optimizer.loss_scale.numpy(), optimizer.dynamic_counter.numpy()
    return dict(
        small_model.weights(model),
        type=type(optimizer).__name__,
        loss_scale=float(scale),
        good_steps=int(counter),
        iterations=int(optimizer.iterations.numpy()),
    )


def load(keras: Any, kind: str, class_of: str, path: str) -> Dict[str, Any]:
    if path.endswith(".index"):
        model = small_model.build(keras, wrapped(keras, kind, class_of))
        if kind == "keras3":
            model.optimizer.build(model.trainable_variables)
        small_model.feed(model, 0)  # the steps of the file replace what this one does
        checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
        checkpoint.restore(path[: -len(".index")]).assert_existing_objects_matched()
    else:
        model = keras.models.load_model(path)
    before = state(model, kind)
    if kind == "keras3" and path.endswith(".h5"):
        return {"before": before}  # Keras 3 itself cannot go on from there: "Unknown variable"
    small_model.feed(model, 5)
    return {"before": before, "after": state(model, kind)}


def main(folder: str):
    results: Dict[str, Any] = {}
    for name in sorted(os.listdir(folder)):
        _, class_of, kind, keras_name = name.split("-")
        keras = tf.keras if keras_name == "tf.keras" else importlib.import_module(keras_name)
        for file in sorted(os.listdir(os.path.join(folder, name))):
            if not file.endswith((".h5", ".keras", ".index")) and file != "saved_model":
                continue
            path = os.path.join(folder, name, file)
            try:
                results[name + "/" + file] = load(keras, kind, class_of, path)
            except Exception as error:
                results[name + "/" + file] = f"{type(error).__name__}: {error}"
    assert "tf_lossscale" not in sys.modules
    print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
