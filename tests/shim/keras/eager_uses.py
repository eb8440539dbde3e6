"""What programs do with a tensor in eager mode only, where it has a value: see `tensor_uses`."""

import copy
import dataclasses
import decimal
import fractions
import io
import json
import logging
import math
import operator
import os
import pickle
import random
import statistics
import struct
import sys
import tempfile
import threading
import unittest
from typing import Any, Callable, List

import numpy as np
import recorded
import tensorflow as tf
from tensor_uses import IS_KERAS_3, SPEC, K, Uses, tf1, tf2


def _assigned(x: Any) -> Any:
    variable = tf2.Variable(1.0)
    values = [variable.assign(x).numpy(), variable.assign_add(x).numpy()]
    return [*values, variable.assign_sub(x).numpy(), (variable * x).numpy(), (x / variable).numpy()]


def _printed(function: Callable[[Any], Any]) -> str:
    stream = io.StringIO()
    before, sys.stdout = sys.stdout, stream
    try:
        function(stream)
    finally:
        sys.stdout = before
    return stream.getvalue()


def _printed_by_tensorflow(x: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "printed")
        tf.print("scale", x, [x], output_stream="file://" + path)
        with open(path) as file:
            return file.read()


def _logged(x: Any) -> str:
    record = logging.LogRecord("name", logging.INFO, "path", 1, "scale %s %.1f", (x, x), None)
    return record.getMessage()


def _summarized(write: Callable[[], Any]) -> List[float]:
    """The values that a summary wrote."""
    with tempfile.TemporaryDirectory() as folder:
        writer = tf2.summary.create_file_writer(folder)
        with writer.as_default():
            done = write()
        writer.close()
        assert bool(done)
        events = [
            event
            for name in os.listdir(folder)
            for event in tf1.train.summary_iterator(os.path.join(folder, name))
        ]
        values = [value for event in events for value in event.summary.value]
        return [float(tf.make_ndarray(value.tensor)) for value in values]


def _metric(x: Any) -> Any:
    metric = tf.keras.metrics.Mean()
    metric.update_state(x)
    metric.update_state([x, 2.0])
    metric.update_state(4.0, sample_weight=x)
    return float(metric.result())


def _learning_rate(x: Any) -> Any:
    optimizer = tf.keras.optimizers.SGD(0.5)
    optimizer.learning_rate = x / 8.0
    return float(K.get_value(optimizer.learning_rate))


def _hashed(x: Any) -> Any:
    return {x: 1}[x]


def _set_element(x: Any) -> Any:
    array = np.zeros(2, np.float32)
    array[1] = x
    return array


def _add_to_array(x: Any) -> Any:
    array = np.zeros(2, np.float32)
    array += x
    return array


def _set_slice(x: Any) -> Any:
    array = np.zeros(3, np.float32)
    array[:2] = x
    return array


def _set_by_keras(x: Any) -> Any:
    variable = tf2.Variable(1.0)
    K.set_value(variable, x)
    return variable


def _functional(x: Any) -> Any:
    inputs = tf.keras.Input([1])
    model = tf.keras.Model(inputs, tf.keras.layers.Lambda(lambda v: v * x + 1.0)(inputs))
    return [model.predict(np.ones([1, 1], np.float32), verbose=0), model(tf.ones([1, 1]))]


def _functional_operator(x: Any) -> Any:
    inputs = tf.keras.Input([1])
    return tf.keras.Model(inputs, inputs * x)(tf.ones([1, 1]))


def _added_metric(x: Any) -> Any:
    class Model(tf.keras.Model):
        def call(self, inputs: Any) -> Any:
            self.add_metric(x, name="scale", aggregation="mean")
            return inputs

    model = Model()
    model(tf.ones([1, 1]))
    return [float(metric.result()) for metric in model.metrics]


def _added_loss(x: Any) -> Any:
    class Layer(tf.keras.layers.Layer):
        def call(self, inputs: Any) -> Any:
            self.add_loss(x * 1.0)
            return inputs

    layer = Layer()
    layer(tf.ones([1, 1]))
    return list(layer.losses)


def _train_step(x: Any, run_eagerly: bool) -> Any:
    class Model(tf.keras.Sequential):
        def train_step(self, data: Any) -> Any:
            return {"scale": x, "twice": x * 2.0}

    model = Model([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=run_eagerly)
    data = np.ones((2, 1), np.float32), np.ones((2, 1), np.float32)
    history = model.fit(*data, epochs=2, verbose=0).history
    return {key: [float(value) for value in values] for key, values in history.items()}


def _loss_weight(x: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse", loss_weights=[float(x)])
    return model.evaluate(np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32), verbose=0)


def _saved(x: Any) -> Any:
    module = tf.Module()
    module.f = tf.function(lambda value: value * x, input_signature=[SPEC])
    with tempfile.TemporaryDirectory() as folder:
        tf2.saved_model.save(module, folder)
        return tf2.saved_model.load(folder).f(tf.constant(2.0))


def _checkpoint(x: Any) -> Any:
    variable = tf2.Variable(x * 1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(variable=variable).save(os.path.join(folder, "saved"))
        return tf.train.load_checkpoint(path).get_tensor("variable/.ATTRIBUTES/VARIABLE_VALUE")


def _dataclass(x: Any) -> Any:
    made = dataclasses.make_dataclass("Made", [("scale", Any)])(x)
    return [made.scale * 1.0, dataclasses.astuple(made)[0] * 1.0]


def _in_a_thread(x: Any) -> Any:
    results = []
    thread = threading.Thread(target=lambda: results.append(float(x * 2.0)))
    thread.start()
    thread.join()
    return results


def _persistent(x: Any) -> Any:
    variable = tf2.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        scaled = variable * x
        unscaled = scaled / x
    return [tape.gradient(scaled, variable), tape.gradient(unscaled, variable)]


def _module(x: Any) -> Any:
    module = tf.Module()
    module.scale = x
    module.nested = {"a": [x]}
    return [len(module.variables), module.scale * 1.0, module.nested["a"][0] * 1.0]


def _logs(x: Any) -> Any:
    history = tf.keras.callbacks.History()
    history.set_model(tf.keras.Sequential())
    history.on_train_begin()
    history.on_epoch_end(0, {"scale": x})
    return [float(value) for value in history.history["scale"]]


PYTHON: Uses = {
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "not": lambda x: not x,
    "if": lambda x: 1 if x else 2,
    "and": lambda x: x and 1,
    "index": lambda x: [1, 2][x],
    "slice": lambda x: "text"[:x],
    "len": len,
    "iter": list,
    "unpack": lambda x: [*x],
    "in a tuple": lambda x: x in (1.0, 8.0),
    "in a list of others": lambda x: x in [1.0, 2.0],
    "contains": lambda x: 8.0 in x,
    "sum": lambda x: sum([x, x]),
    "max": lambda x: max(x, 9.0),
    "min of a list": lambda x: min([9.0, x]),
    "sorted": lambda x: sorted([9.0, x, 1.0]),
    "any": lambda x: any([x]),
    "pow of three": lambda x: pow(x, 2.0, 3.0),
    "format with a spec": lambda x: f"{x:.2f} {x:8.1f} {x:e} {x:g}",
    "str.format with a spec": "{:.3f}".format,
    "% f": lambda x: operator.mod("%.1f", x),
    "% d": lambda x: operator.mod("%d", x),
    "% of a tuple": lambda x: operator.mod("%g and %i", (x, x)),
    "% of a dict": lambda x: operator.mod("%(scale).2f", {"scale": x}),
    "format_map": lambda x: "{scale:.1f}".format_map({"scale": x}),
    "round of float": lambda x: round(float(x), 1),
    "float.hex": lambda x: float(x).hex(),
    "sorted by key": lambda x: sorted([9.0, float(x)], key=lambda v: v - x),
    "list.index": lambda x: [1.0, 8.0].index(x),
    "list.count": lambda x: [8.0, 8.0, 1.0].count(x),
    "range": range,
    "memoryview": lambda x: memoryview(x).tobytes(),
}

NUMPY: Uses = {
    "np.array": np.array,
    "np.asarray as float64": lambda x: np.asarray(x, np.float64),
    "np.array of a list": lambda x: np.array([x, x]),
    "np.array of a list with a dtype": lambda x: np.array([x, 1.0], np.float32),
    "np.float32": np.float32,
    "np.float64": np.float64,
    "np.sqrt": np.sqrt,
    "np.log2": np.log2,
    "np.add": lambda x: np.add(x, 1),
    "np.multiply on the right": lambda x: np.multiply(np.float32([1, 2]), x),
    "np.stack": lambda x: np.stack([x, 1.0]),
    "np.isfinite": np.isfinite,
    "np.isclose": lambda x: np.isclose(x, 8.0),
    "np.allclose": lambda x: np.allclose(8.0, x),
    "np.array_equal": lambda x: np.array_equal(x, 8.0),
    "assert_allclose": lambda x: np.testing.assert_allclose(x, 8.0),
    "assert_array_equal": lambda x: np.testing.assert_array_equal(x, 8.0),
    "assert_equal of NumPy": lambda x: np.testing.assert_equal(np.asarray(x), np.float32(8.0)),
    "np.mean": lambda x: np.mean([x, x]),
    "np.full": lambda x: np.full(2, x),
    "np.maximum": lambda x: np.maximum(x, 9.0),
    "np.shape": np.shape,
    "np.ndim": np.ndim,
    "np.size": np.size,
    "np.isscalar": np.isscalar,
    "np.where": lambda x: np.where(x > 1.0, x, 0.0),
    "np.append": lambda x: np.append([1.0], x),
    "np.linspace": lambda x: np.linspace(0.0, x, 3),
    "np.clip": lambda x: np.clip([1.0, 9.0], 0.0, x),
    "element of an array": _set_element,
    "slice of an array": _set_slice,
    "__array__": lambda x: x.__array__(),
    "np.round": np.round,
    "np.around to digits": lambda x: np.around(x, 1),
    "np.floor": np.floor,
    "np.power": lambda x: np.power(2.0, x),
    "np.dot": lambda x: np.dot(x, [1.0, 2.0]),
    "np.sum": lambda x: np.sum([x, 1.0]),
    "np.concatenate": lambda x: np.concatenate([[x], [1.0]]),
    "np.empty_like": lambda x: np.empty_like(x).dtype,
    "np.float16": np.float16,
    "np.int32": np.int32,
    "np.bool_": np.bool_,
    "np.asarray": np.asarray,
    "np.copy": np.copy,
    "np.ravel": np.ravel,
    "np.atleast_1d": np.atleast_1d,
    "np.broadcast_to": lambda x: np.broadcast_to(x, [2]),
    "np.nan_to_num": np.nan_to_num,
    "np.testing.assert_almost_equal": lambda x: np.testing.assert_almost_equal(x, 8.0),
    "np.fromiter": lambda x: np.fromiter([x, 1.0], np.float32),
    "index of an array": lambda x: np.arange(9)[int(x)],
    "comparison with an array": lambda x: np.array([1.0, 9.0]) < x,
    "array += x": _add_to_array,
    "np.array of a nested list": lambda x: np.array([[x, 1.0], [2.0, x]]).mean(),
}

STANDARD_LIBRARY: Uses = {
    "math.log2": lambda x: math.log(x, 2),
    "math.isfinite": lambda x: [math.isfinite(x), math.isinf(x), math.isnan(x)],
    "math.isclose": lambda x: math.isclose(x, 8.0),
    "math.sqrt": math.sqrt,
    "math.pow": lambda x: math.pow(x, 2),
    "math.fsum": lambda x: math.fsum([x, x]),
    "math.frexp": math.frexp,
    "math.floor and ceil": lambda x: [math.floor(x), math.ceil(x)],
    "math.trunc": math.trunc,
    "math.gcd": lambda x: math.gcd(x, 4),
    "fractions": lambda x: fractions.Fraction(float(x)),
    "operator.eq": lambda x: operator.eq(x, 8.0),
    "operator.truth": operator.truth,
    "struct.pack": lambda x: struct.pack("<f", x),
    "decimal": lambda x: decimal.Decimal(float(x)),
    "json": lambda x: json.dumps({"scale": float(x)}),
    "json of x": lambda x: json.dumps({"scale": x}),
    "json with a default": lambda x: json.dumps({"scale": x}, default=float),
    "random.uniform of Python": lambda x: random.Random(0).uniform(0.0, x),
    "copy.copy": lambda x: copy.copy(x) * 1.0,
    "copy.deepcopy": lambda x: copy.deepcopy(x) * 1.0,
    "deepcopy of a nest": lambda x: copy.deepcopy({"a": [x]})["a"][0] * 1.0,
    "statistics.mean": lambda x: statistics.mean([x.numpy(), 2.0]),
    "dataclass": _dataclass,
    "threads": _in_a_thread,
    "unittest": lambda x: unittest.TestCase().assertEqual(x, 8.0),  # noqa: PT009
    "assertAlmostEqual": lambda x: unittest.TestCase().assertAlmostEqual(x, 8.0),  # noqa: PT009
}

TENSORFLOW: Uses = {
    "numpy()": lambda x: x.numpy(),
    "numpy().item()": lambda x: x.numpy().item(),
    "ndim": lambda x: x.ndim,
    "tf.print": _printed_by_tensorflow,
    "Variable": tf2.Variable,
    "Variable of another dtype": lambda x: tf2.Variable(x, dtype=tf.float64),
    "Variable of a list": lambda x: tf2.Variable([x, 1.0]),
    "Variable of an expression": lambda x: tf2.Variable(x * 2.0),
    "assign": _assigned,
    "assign in float16": lambda x: tf2.Variable(1.0, dtype=tf.float16).assign(x),
    "assign to a slice": lambda x: tf2.Variable([1.0, 2.0])[0].assign(x),
    "scatter_update": lambda x: tf2.Variable([1.0, 2.0]).scatter_update(
        tf.IndexedSlices(tf.reshape(x, [1]), tf.constant([0]))
    ),
    "v1.assign": lambda x: tf1.assign(tf2.Variable(1.0), x),
    "Dataset.from_tensors": lambda x: list(tf2.data.Dataset.from_tensors(x)),
    "Dataset.from_tensors of a nest": lambda x: list(tf2.data.Dataset.from_tensors({"a": x})),
    "Dataset.from_tensor_slices": lambda x: list(tf2.data.Dataset.from_tensor_slices([x, 1.0])),
    "Dataset.map": lambda x: list(tf2.data.Dataset.range(2).map(lambda i: tf.cast(i, x.dtype) * x)),
    "Dataset.filter": lambda x: list(
        tf2.data.Dataset.range(10).filter(lambda i: tf.cast(i, tf.float32) > x)
    ),
    "Dataset.reduce": lambda x: tf2.data.Dataset.range(2).reduce(x, lambda state, _: state + 1.0),
    "Dataset.from_generator": lambda x: list(
        tf2.data.Dataset.from_generator(lambda: iter([x, x]), tf.float32, [])
    ),
    "get_static_value": tf.get_static_value,
    "make_tensor_proto": lambda x: tf.make_ndarray(tf.make_tensor_proto(x)),
    "saved function": _saved,
    "a checkpoint of a variable": _checkpoint,
    "v1.get_variable": lambda x: tf1.get_variable("v", initializer=x * 1.0),
    "v1.get_variable of x": lambda x: tf1.get_variable("v", initializer=x),
    "isclose of tensors": lambda x: bool(tf.reduce_all(tf.abs(x - 8.0) < 1e-6)),
    "persistent tape": _persistent,
    "Module": _module,
}

KERAS: Uses = {
    "metrics.Mean": _metric,
    "metrics.Mean called": lambda x: float(tf.keras.metrics.Mean()(x)),
    "metrics.Sum": lambda x: float(tf.keras.metrics.Sum()([x, x])),
    "metrics.MeanMetricWrapper": lambda x: float(tf.keras.metrics.MeanSquaredError()([x], [1.0])),
    "learning rate": _learning_rate,
    "functional model": _functional,
    "operator of a functional model": _functional_operator,
    "metric added to a model": _added_metric,
    "loss added to a layer": _added_loss,
    "loss weight": _loss_weight,
    "a callback's logs": _logs,
    "K.set_value": _set_by_keras,
    "K.get_value": K.get_value,
    "K.eval": K.eval,
    "K.variable": K.variable,
    "K.constant": K.constant,
}

EAGERLY: Uses = {**PYTHON, **NUMPY, **STANDARD_LIBRARY, **TENSORFLOW, **KERAS}


# Where the object is a `LossScale`, these have its meaning, as with TensorFlow's class.
OF_A_TENSOR_ONLY: Uses = {
    "hash": _hashed,
    "a set": lambda x: len({x, x}),
    "str": str,
    "repr": repr,
    "% s": lambda x: operator.mod("%s %r", (x, x)),
    "format without a spec": lambda x: f"{x} {x!r} {x!s}",
    "format without a spec, called": format,
    "print": lambda x: _printed(lambda stream: print("scale", x, file=stream)),
    "logging": _logged,
    "str.format without a spec": "scale={}".format,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)) * 1.0,
    "pickle of a nest": lambda x: pickle.loads(pickle.dumps({"a": [x]}, 2))["a"][0] * 1.0,
    "x == text": lambda x: x == "dynamic",
    "x != text": lambda x: x != "dynamic",
    "cpu": lambda x: x.cpu(),
    "_numpy": lambda x: x._numpy(),
    "backing_device": lambda x: type(x.backing_device).__name__,
    "dir": lambda x: "numpy" in dir(x),
    "or": lambda x: float(x or 1),
    "truth of a list": lambda x: all([x]),
}
if recorded.TF >= (2, 0):
    EAGERLY["summary.write"] = lambda x: _summarized(lambda: tf2.summary.write("scale", x, step=0))
    if recorded.TF < (2, 16):  # later versions need the package tensorboard
        EAGERLY["summary.scalar"] = lambda x: _summarized(
            lambda: tf2.summary.scalar("scale", x, step=0)
        )

if recorded.TF >= (2, 2):  # the first with `train_step`
    EAGERLY["logs of train_step"] = lambda x: _train_step(x, run_eagerly=False)
    EAGERLY["logs of an eager train_step"] = lambda x: _train_step(x, run_eagerly=True)

if hasattr(tf.experimental, "dlpack"):
    dlpack = tf.experimental.dlpack
    OF_A_TENSOR_ONLY["dlpack"] = lambda x: dlpack.from_dlpack(dlpack.to_dlpack(x))

if IS_KERAS_3:
    EAGERLY.update(
        {
            "ops.convert_to_numpy": tf.keras.ops.convert_to_numpy,
            "assign of Keras 3": lambda x: tf.keras.Variable(1.0).assign(x),
            "assign_add of Keras 3": lambda x: tf.keras.Variable(1.0).assign_add(x),
            "variable of Keras 3 * x": lambda x: tf.keras.Variable(2.0) * x,
            "x * variable of Keras 3": lambda x: x * tf.keras.Variable(2.0),
            "float16 variable of Keras 3": lambda x: tf.keras.Variable(1.0, dtype="float16").assign(
                x
            ),
            "variable of Keras 3 made of x": tf.keras.Variable,
            "metric of Keras 3 by name": lambda x: float(tf.keras.metrics.get("mse")([x], [1.0])),
        }
    )
