"""What programs do with a tensor of shape `[]` whose value is 8.

Each use takes the tensor, or an object that stands for it, and returns something to compare: a
nest of tensors, arrays and Python values. `ANYWHERE` has those of eager mode, functions and graphs,
`eager_uses` and `autograph_uses` have more.
"""

import operator
from typing import Any, Callable, Dict

import numpy as np
import recorded
import tensorflow as tf

tf1 = tf.compat.v1
tf2 = tf.compat.v2
K = tf.keras.backend
IS_KERAS_3 = hasattr(tf.keras, "ops")
SPEC = tf.TensorSpec([], tf.float32)
Uses = Dict[str, Callable[[Any], Any]]
ERROR = "raises an error"


def outcome(use: Callable[[Any], Any], value: Any) -> Any:
    """What a use gives, in Python's own types, or `ERROR`: the type of an error may differ."""
    try:
        return plain(use(value))
    except Exception:
        return ERROR


def plain(value: Any) -> Any:
    """The dtype and the value of each tensor, and the type and value of everything else."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tf.IndexedSlices):
        return plain([value.values, value.indices])
    if isinstance(value, (tf.Variable, tf.Tensor)) or tf.is_tensor(value):
        value = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype} {value.tolist()}"
    return f"{type(value).__name__} {value}"


def _multiplied_in_place(x: Any) -> Any:
    x *= 2.0
    return x


def _multiplies_in_place(x: Any) -> Any:
    value = tf.constant(2.0)
    value *= x
    return value


def _checked(operation: Any) -> Any:
    """A tensor that waits for an assertion of a graph."""
    with tf.control_dependencies([] if operation is None else [operation]):
        return tf.constant(True)


def _after(x: Any) -> Any:
    with tf.control_dependencies([x]):
        return tf.constant(True)


def _on_cpu(x: Any) -> Any:
    with tf.device("/cpu:0"):
        return tf.identity(x)


def _with_default(x: Any) -> Any:
    def function(value: Any, scale: Any = x) -> Any:
        return value * scale

    return function


def _with_attribute(x: Any) -> Any:
    x.attribute_of_a_program = 1
    return x.attribute_of_a_program


def _gradient(function: Any, at: Any, **kwargs: Any) -> Any:
    at = tf.convert_to_tensor(at)
    with tf.GradientTape() as tape:
        tape.watch(at)
        result = function(at)
    return tape.gradient(result, at, **kwargs)


def _gradient_of_watched(x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = x * x
    return tape.gradient(result, x)


class _ScaledLayer(tf.keras.layers.Layer):
    def __init__(self, scale: Any = None):
        super().__init__()
        self.scale = scale

    def call(self, inputs: Any, scale: Any = None) -> Any:
        return inputs * (self.scale if scale is None else scale)


def _called(layer: Any) -> Any:
    return layer(tf.ones([1, 1]))


OPERATORS: Uses = {
    "x + number": lambda x: x + 2.0,
    "number + x": lambda x: 2.0 + x,
    "x - number": lambda x: x - 2.0,
    "number - x": lambda x: 2.0 - x,
    "x * number": lambda x: x * 2.0,
    "number * x": lambda x: 2.0 * x,
    "x * integer": lambda x: x * 2,
    "integer * x": lambda x: 2 * x,
    "x / number": lambda x: x / 2.0,
    "number / x": lambda x: 1.0 / x,
    "x // number": lambda x: x // 3.0,
    "number // x": lambda x: 20.0 // x,
    "x % number": lambda x: x % 3.0,
    "number % x": lambda x: 20.0 % x,
    "x ** number": lambda x: x**2.0,
    "number ** x": lambda x: 2.0**x,
    "x @ x": lambda x: x @ x,
    "x & x": lambda x: x & x,
    "x | True": lambda x: x | True,
    "True ^ x": lambda x: True ^ x,
    "~x": lambda x: ~x,
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "abs": abs,
    "divmod": lambda x: divmod(x, 3.0),
    "x < number": lambda x: x < 9.0,
    "number < x": lambda x: operator.lt(9.0, x),
    "x <= number": lambda x: x <= 8.0,
    "x > number": lambda x: x > 8.0,
    "x >= number": lambda x: x >= 8.0,
    "x == None": lambda x: x == None,  # noqa: E711 - the operator is tested
    "x != None": lambda x: x != None,  # noqa: E711
    "None == x": lambda x: operator.eq(None, x),
    "x is None": lambda x: x is None,
    "x < None": lambda x: x < None,
    "x + text": lambda x: x + "text",
    "x + None": lambda x: x + None,
    "x + object": lambda x: x + object(),
    "x + x": lambda x: x + x,
    "x - x": lambda x: x - x,
    "x * tensor": lambda x: x * tf.constant(2.0),
    "tensor * x": lambda x: tf.constant(2.0) * x,
    "tensor / x": lambda x: tf.constant([16.0, 8.0]) / x,
    "tensor ** x": lambda x: tf.constant(2.0) ** x,
    "tensor > x": lambda x: tf.constant([16.0, 8.0]) > x,
    "x * tensor of another dtype": lambda x: x * tf.constant(2.0, tf.float16),
    "tensor of another dtype * x": lambda x: tf.constant(2.0, tf.float16) * x,
    "integer tensor * x": lambda x: tf.constant(2) * x,
    "x * array": lambda x: x * np.array([1.0, 2.0], np.float32),
    "array * x": lambda x: np.array([1.0, 2.0], np.float32) * x,
    "x * float64 array": lambda x: x * np.array([1.0, 2.0]),
    "array / x": lambda x: np.array([1.0, 2.0], np.float32) / x,
    "scalar of NumPy * x": lambda x: np.float32(2.0) * x,
    "x / scalar of NumPy": lambda x: x / np.float32(2.0),
    "scalar of NumPy - x": lambda x: np.float32(2.0) - x,
    "float64 scalar * x": lambda x: np.float64(2.0) * x,
    "x * list": lambda x: x * [1.0, 2.0],
    "list * x": lambda x: [1.0, 2.0] * x,
    "x *=": _multiplied_in_place,
    "tensor *= x": _multiplies_in_place,
    "x[...]": lambda x: x[...],
    "x[tf.newaxis]": lambda x: x[tf.newaxis],
    "x[0]": lambda x: x[0],
}

CONVERSIONS: Uses = {
    "convert_to_tensor": tf.convert_to_tensor,
    "convert_to_tensor as float32": lambda x: tf.convert_to_tensor(x, dtype=tf.float32),
    "convert_to_tensor as float64": lambda x: tf.convert_to_tensor(x, dtype=tf.float64),
    "convert_to_tensor, float16 preferred": lambda x: tf2.convert_to_tensor(
        x, dtype_hint=tf.float16
    ),
    "convert_to_tensor of a list": lambda x: tf.convert_to_tensor([x, 1.0]),
    "convert_to_tensor of a nested list": lambda x: tf.convert_to_tensor([[x, 1.0], [2.0, x]]),
    "convert_to_tensor of a tuple": lambda x: tf.convert_to_tensor((1.0, x)),
    "constant": tf.constant,
    "constant of a list": lambda x: tf.constant([x, x]),
    "identity": tf.identity,
    "identity of a list": lambda x: tf.identity([x]),
    "cast to float16": lambda x: tf.cast(x, tf.float16),
    "cast to float32": lambda x: tf.cast(x, tf.float32),
    "cast to int64": lambda x: tf.cast(x, "int64"),
    "saturate_cast": lambda x: tf.saturate_cast(x, tf.uint8),
    "bitcast": lambda x: tf.bitcast(x, tf.int32),
    "stop_gradient": tf.stop_gradient,
    "stack": lambda x: tf.stack([x, 1.0]),
    "stack of two": lambda x: tf.stack([x, x]),
    "concat": lambda x: tf.concat([[x], [2.0]], 0),
}

FUNCTIONS: Uses = {
    "tf.add": lambda x: tf.add(x, 1.0),
    "tf.add on the right": lambda x: tf.add(1.0, x),
    "tf.multiply": lambda x: tf.multiply([1.0, 2.0], x),
    "tf.divide": lambda x: tf.divide(1.0, x),
    "raw operation": lambda x: tf.raw_ops.AddV2(x=x, y=x),
    "tf.subtract by name": lambda x: tf.subtract(x=x, y=x, name="difference"),
    "tf.pow": lambda x: tf.pow(x, 2.0),
    "tf.sqrt": tf.sqrt,
    "log": tf.math.log,
    "is_finite": tf.math.is_finite,
    "divide_no_nan": lambda x: tf.math.divide_no_nan(1.0, x),
    "reciprocal": tf.math.reciprocal,
    "floor and round": lambda x: [tf.floor(x), tf.round(x)],
    "maximum": lambda x: tf.maximum(x, 9.0),
    "minimum": lambda x: tf.minimum(9.0, x),
    "reduce_sum": tf.reduce_sum,
    "reduce_max of a list": lambda x: tf.reduce_max([x, 9.0]),
    "add_n": lambda x: tf.add_n([x, x, x]),
    "equal": lambda x: tf.equal(x, 8.0),
    "less of two": lambda x: tf.less(x, x),
    "logical_and": lambda x: tf.logical_and(x > 1.0, x < 9.0),
    "clip_by_value": lambda x: tf.clip_by_value(x, 1.0, 4.0),
    "clip_by_value up to x": lambda x: tf.clip_by_value([1.0, 9.0], 0.0, x),
    "clip_by_norm": lambda x: tf.clip_by_norm([30.0, 40.0], x),
    "clip_by_global_norm": lambda x: tf.clip_by_global_norm([tf.constant([30.0, 40.0])], x),
    "where": lambda x: tf2.where(x > 2.0, x, 0.0),
    "where of a vector": lambda x: tf2.where([True, False], x, 1.0),
    "where with x on the right": lambda x: tf2.where([True, False], tf.zeros([2]), x),
    "reshape": lambda x: tf.reshape(x, [1, 1]),
    "expand_dims": lambda x: tf.expand_dims(x, 0),
    "squeeze": tf.squeeze,
    "broadcast_to": lambda x: tf.broadcast_to(x, [2]),
    "fill": lambda x: tf.fill([2], x),
    "tile": lambda x: tf.tile([x], [2]),
    "ones_like": tf.ones_like,
    "zeros_like": tf.zeros_like,
    "tf.shape": tf.shape,
    "tf.rank": tf.rank,
    "tf.size": tf.size,
    "tf.range": tf.range,
    "linspace": lambda x: tf.linspace(0.0, x, 3),
    "einsum": lambda x: tf.einsum(",i->i", x, [1.0, 2.0]),
    "tensordot": lambda x: tf.tensordot(x, [1.0, 2.0], 0),
    "scalar_mul": lambda x: tf1.scalar_mul(x, tf.constant([1.0, 2.0])),
    "scalar_mul of slices": lambda x: tf1.scalar_mul(
        x, tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([1]), tf.constant([2, 1]))
    ),
    "l2_loss": tf.nn.l2_loss,
    "global_norm": lambda x: tf.linalg.global_norm([x, x]),
    "IndexedSlices": lambda x: tf.IndexedSlices(tf.reshape(x, [1, 1]), [0]) * 1.0,
    "SparseTensor": lambda x: tf.sparse.to_dense(tf.SparseTensor([[1]], [x], [2])),
    "RaggedTensor": lambda x: tf.RaggedTensor.from_row_lengths(tf.stack([x, x]), [2]).to_tensor(),
}

CHECKS: Uses = {
    "assert_equal": lambda x: _checked(tf1.assert_equal(x, 8.0)),
    "assert_equal on the right": lambda x: _checked(tf2.debugging.assert_equal(8.0, x)),
    "assert_positive": lambda x: _checked(tf2.debugging.assert_positive(x)),
    "assert_near": lambda x: _checked(tf2.debugging.assert_near(x, 8.0)),
    "assert_all_finite": lambda x: tf2.debugging.assert_all_finite(x, "message"),
    "check_numerics": lambda x: tf.debugging.check_numerics(x, "message"),
    "assert_scalar": lambda x: _checked(tf2.debugging.assert_scalar(x)),
    "assert_rank": lambda x: _checked(tf2.debugging.assert_rank(x, 0)),
    "assert_type": lambda x: _checked(tf2.debugging.assert_type(x, tf.float32)),
    "is_numeric_tensor": tf.debugging.is_numeric_tensor,
    "is_tensor": tf.is_tensor,
    "its shape in a shape": lambda x: tf.reshape([1.0, 2.0], tf.concat([tf.shape(x), [2]], 0)),
    "TensorSpec.from_tensor": lambda x: repr(tf.TensorSpec.from_tensor(x).dtype),
    "as_string": tf.strings.as_string,
    "strings.format": lambda x: tf.strings.format("scale {}", x),
    "serialize_tensor": tf.io.serialize_tensor,
}

CONTROL_FLOW: Uses = {
    "cond": lambda x: tf.cond(x > 1.0, lambda: x * 2.0, lambda: 0.0),
    "cond that returns x": lambda x: tf.cond(x > 1.0, lambda: x, lambda: 0.0),
    "cond of x itself": lambda x: tf.cond(x, lambda: 1.0, lambda: 0.0),
    "case": lambda x: tf.case([(x > 9.0, lambda: 0.0)], default=lambda: x),
    "while_loop up to x": lambda x: tf.while_loop(lambda i: i < x, lambda i: [i + 3.0], [0.0]),
    "while_loop from x": lambda x: tf.while_loop(lambda v: v > 1.0, lambda v: [v / 2.0], [x]),
    "while_loop with a nest": lambda x: tf.while_loop(
        lambda state: state["i"] < 2.0,
        lambda state: [{"i": state["i"] + 1.0, "scale": state["scale"] * x}],
        [{"i": 0.0, "scale": x}],
    ),
    "map_fn": lambda x: tf.map_fn(lambda v: v * x, tf.constant([1.0, 2.0])),
    "map_fn over x": lambda x: tf.map_fn(lambda v: v * 2.0, tf.stack([x, x])),
    "scan": lambda x: tf.scan(lambda a, v: a + v * x, tf.constant([1.0, 2.0]), x),
    "TensorArray": lambda x: tf.TensorArray(tf.float32, 1).write(0, x).stack(),
}

NESTS: Uses = {
    "nest.flatten": lambda x: [v * 1.0 for v in tf.nest.flatten({"a": [x, (x,)]})],
    "nest.map_structure": lambda x: tf.nest.map_structure(lambda v: v * 2.0, {"a": x, "b": [x]}),
    "nest.assert_same_structure": lambda x: _checked(tf.nest.assert_same_structure([x], [1.0])),
    "nest.pack_sequence_as": lambda x: tf.nest.pack_sequence_as({"a": 0}, [x])["a"] * 1.0,
    "nest.is_nested": lambda x: getattr(tf.nest, "is_nested", lambda v: False)(x),
}

GRADIENTS: Uses = {
    "gradient": lambda x: _gradient(lambda v: v * x, 2.0),
    "gradient of a gradient": lambda x: _gradient(lambda v: _gradient(lambda w: w * w * x, v), 2.0),
    "gradient with respect to x": _gradient_of_watched,
    "custom_gradient": lambda x: tf.custom_gradient(lambda v: (v * 2.0, lambda g: g))(x),
    "output_gradients": lambda x: _gradient(lambda v: v * 1.0, 2.0, output_gradients=x),
}

GRAPHS: Uses = {
    "control_dependencies": _after,
    "device": _on_cpu,
    "group": lambda x: _checked(tf.group(x)),
    "tuple": lambda x: tf.tuple([x, x]),
    "random.normal": lambda x: tf.random.stateless_normal([1], [1, 2], mean=x, stddev=0.0),
    "random.uniform": lambda x: tf.random.stateless_uniform([], [1, 2], x, x + 1.0),
}

FUNCTION_CALLS: Uses = {
    "py_function": lambda x: tf2.py_function(lambda v: v * 2.0, [x], tf.float32),
    "numpy_function": lambda x: tf.numpy_function(lambda v: v * np.float32(2), [x], tf.float32),
    "function of x": lambda x: tf.function(lambda v: v + 1.0)(x),
    "function with a signature": lambda x: tf.function(lambda v: v + 1.0, input_signature=[SPEC])(
        x
    ),
    "function by name": lambda x: tf.function(lambda a, v: a * v)(2.0, v=x),
    "function of a nest": lambda x: tf.function(lambda v: v["a"] + v["b"][0])({"a": x, "b": [x]}),
    "function around x": lambda x: tf.function(lambda v: v + x)(tf.constant(1.0)),
    "function with a default": lambda x: tf.function(_with_default(x))(tf.constant(1.0)),
    "function that returns x": lambda x: tf.function(lambda: x)(),
    "function that returns a nest": lambda x: tf.function(lambda: {"a": [x, x * 2.0]})(),
    "concrete function": lambda x: tf.function(lambda v: v + 1.0).get_concrete_function(SPEC)(x),
    "concrete function made with x": lambda x: tf.function(lambda v: v + 1.0).get_concrete_function(
        x
    )(x),
    "function in a function": lambda x: tf.function(lambda v: tf.function(lambda w: w * x)(v))(x),
    "recompute_grad": lambda x: tf.recompute_grad(lambda v: v * x)(tf.constant(2.0)),
    "vectorized_map": lambda x: tf.vectorized_map(lambda v: v * x, tf.constant([1.0, 2.0])),
    "switch_case": lambda x: tf.switch_case(tf.cast(x, tf.int32) - 7, [lambda: 0.0, lambda: x]),
}

ATTRIBUTES: Uses = {
    "dtype": lambda x: str(x.dtype),
    "dtype.base_dtype": lambda x: str(x.dtype.base_dtype),
    "dtype.is_floating": lambda x: x.dtype.is_floating,
    "x.dtype == float32": lambda x: x.dtype == tf.float32,
    "shape": lambda x: str(x.shape),
    "shape.rank": lambda x: x.shape.rank,
    "len(shape)": lambda x: len(x.shape),
    "shape.as_list": lambda x: x.shape.as_list(),
    "get_shape": lambda x: str(x.get_shape()),
    "set_shape": lambda x: x.set_shape([]),
    "device of x": lambda x: type(x.device).__name__,
    "ref": lambda x: x.ref() in {x.ref()},
    "ref().deref": lambda x: x.ref().deref() * 1.0,
    "hasattr of what it lacks": lambda x: hasattr(x, "increment_perod"),
    "what it lacks": lambda x: x.increment_perod,
    "an attribute that is set": _with_attribute,
    "isinstance of float": lambda x: isinstance(x, (float, int, np.ndarray)),
    "isinstance of Variable": lambda x: isinstance(x, tf.Variable),
    "isinstance of IndexedSlices": lambda x: isinstance(x, (tf.IndexedSlices, tf.SparseTensor)),
}

KERAS: Uses = {
    "mean_squared_error": lambda x: tf.keras.losses.mean_squared_error([x], [1.0]),
    "a loss object": lambda x: tf.keras.losses.MeanSquaredError()([[x]], [[1.0]]),
    "a loss with weights": lambda x: tf.keras.losses.MeanSquaredError()([[2.0]], [[1.0]], x),
    "relu": tf.nn.relu,
    "an activation of Keras": lambda x: tf.keras.activations.get("relu")(x),
    "a Lambda layer around x": lambda x: _called(tf.keras.layers.Lambda(lambda v: v * x)),
    "a layer with an argument": lambda x: _ScaledLayer()(tf.ones([1, 1]), scale=x),
    "a layer with x as its attribute": lambda x: _ScaledLayer(x)(tf.ones([1, 1])),
    "K.cast": lambda x: K.cast(x, "float16"),
    "K.mean": K.mean,
    "K.sqrt": K.sqrt,
    "K.int_shape": K.int_shape,
}
if hasattr(K, "is_keras_tensor"):
    KERAS["K.is_keras_tensor"] = K.is_keras_tensor

ANYWHERE: Uses = {
    **OPERATORS,
    **CONVERSIONS,
    **FUNCTIONS,
    **CHECKS,
    **CONTROL_FLOW,
    **NESTS,
    **GRADIENTS,
    **GRAPHS,
    **FUNCTION_CALLS,
    **ATTRIBUTES,
    **KERAS,
}
if IS_KERAS_3:
    ops = tf.keras.ops
    ANYWHERE.update(
        {
            "ops.convert_to_tensor": ops.convert_to_tensor,
            "ops.convert_to_tensor as float16": lambda x: ops.convert_to_tensor(x, "float16"),
            "ops.is_tensor": ops.is_tensor,
            "ops.shape": lambda x: list(ops.shape(x)),
            "ops.cast": lambda x: ops.cast(x, "float16"),
            "ops.add": lambda x: ops.add(x, 1.0),
            "ops.multiply on the right": lambda x: ops.multiply([1.0, 2.0], x),
            "ops.divide": lambda x: ops.divide(1.0, x),
            "ops.power": lambda x: ops.power(x, 2),
            "ops.sqrt": ops.sqrt,
            "ops.mean": ops.mean,
            "ops.sum": ops.sum,
            "ops.stack": lambda x: ops.stack([x, x]),
            "ops.where": lambda x: ops.where(x > 1.0, x, 0.0),
            "ops.maximum": lambda x: ops.maximum(x, 9.0),
            "ops.isfinite": ops.isfinite,
            "ops.cond": lambda x: ops.cond(x > 1.0, lambda: x * 1.0, lambda: x * 0.0),
            "ops.while_loop": lambda x: ops.while_loop(
                lambda v: v > 1.0, lambda v: (v / 2.0,), (x,)
            ),
            "ops.reshape": lambda x: ops.reshape(x, (1,)),
            "ops.zeros_like": ops.zeros_like,
            "ops.full": lambda x: ops.full((2,), x),
            "ops.clip": lambda x: ops.clip(x, 1.0, 4.0),
            "ops.array": ops.array,
            "ops.stop_gradient": ops.stop_gradient,
            "ops.log": ops.log,
            "standardize_dtype": lambda x: tf.keras.backend.standardize_dtype(x.dtype),
        }
    )

if hasattr(tf.experimental, "numpy"):
    numpy = tf.experimental.numpy
    ANYWHERE.update(
        {
            "tf.experimental.numpy.add": lambda x: numpy.add(x, 1.0),
            "tf.experimental.numpy.asarray": lambda x: numpy.asarray(x) * 1.0,
            "tf.experimental.numpy.sqrt": numpy.sqrt,
            "tf.experimental.numpy.where": lambda x: numpy.where(x > 1.0, x, 0.0),
        }
    )

if recorded.TF >= (2, 0):  # before, tensors are compared by identity
    ANYWHERE.update(
        {
            "x == number": lambda x: x == 8.0,
            "number == x": lambda x: operator.eq(8.0, x),
            "x != number": lambda x: x != 8.0,
            "x == integer": lambda x: x == 8,
            "x == x": lambda x: x == x,
            "x != x": lambda x: x != x,
            "x == tensor": lambda x: x == tf.constant([8.0, 9.0]),
            "tensor == x": lambda x: tf.constant([8.0, 9.0]) == x,
            "array == x": lambda x: np.array([8.0, 9.0], np.float32) == x,
            "scalar of NumPy == x": lambda x: np.float32(8.0) == x,
        }
    )
