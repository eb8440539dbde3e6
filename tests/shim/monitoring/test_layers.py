"""`find_nonfinite_layer` names the first layer whose output is not finite, and changes nothing."""

import numpy as np
import pytest
import recorded
import support
import tensorflow as tf
import watched

import tf_lossscale as tfls
from tf_lossscale._versions.layers import base_layers

INF = float("inf")
KINDS = [kind for kind in recorded.kinds() if kind.name != "legacy" or len(recorded.kinds()) == 1]
X = np.ones((4, 3), "float32")
find = tfls.monitoring.find_nonfinite_layer


@pytest.fixture(autouse=True)
def _eager():
    with support.eager():
        yield


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def keras(request):
    kind = request.param
    assert_unhooked = [vars(cls)["__call__"] for cls in base_layers(kind.keras.layers.Dense(1))]
    yield kind.keras
    kind.keras.backend.clear_session()
    after = [vars(cls)["__call__"] for cls in base_layers(kind.keras.layers.Dense(1))]
    assert after == assert_unhooked


def dense(keras, units, name, value=1.0, **arguments):
    initializer = keras.initializers.Constant(value)
    return keras.layers.Dense(units, name=name, kernel_initializer=initializer, **arguments)


def log(keras, name="log"):
    return keras.layers.Activation(tf.math.log, name=name, dtype="float32")


def sequential(keras):
    zeros = dense(keras, 3, "zeros", 0.0)
    return keras.Sequential([zeros, log(keras), dense(keras, 1, "last")]), "log"


def functional(keras):
    given = [keras.layers.Input((3,)) for _ in range(2)]
    left = dense(keras, 3, "left")(given[0])
    right = log(keras)(dense(keras, 3, "right", 0.0)(given[1]))
    merged = keras.layers.Add(name="add")([left, right])
    return keras.Model(given, dense(keras, 1, "last")(merged)), "log"


def nested(keras):
    inner = keras.Sequential([dense(keras, 3, "first", 0.0), log(keras)], name="inner")
    given = keras.layers.Input((3,))
    middle = keras.Model(given, inner(dense(keras, 3, "before")(given)), name="middle")
    outer = keras.layers.Input((3,))
    return keras.Model(outer, dense(keras, 1, "last")(middle(outer))), "middle/inner/log"


def subclassed(keras, wrap=lambda function: function):
    class Block(keras.layers.Layer):
        def __init__(self, **arguments):
            super().__init__(**arguments)
            self.inside = dense(keras, 3, "inside", 0.0)

        @wrap
        def call(self, values):
            return tf.math.log(tf.convert_to_tensor(self.inside(values)))

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.block = Block(name="block")
            self.last = dense(keras, 1, "last")

        @wrap
        def call(self, values):
            return self.last(self.block(values))

    return Model(), "block"


def in_functions(keras):
    return subclassed(keras, tf.function)


def bare_layer(keras):
    return log(keras, "alone"), "alone"


MODELS = [sequential, functional, nested, subclassed, in_functions, bare_layer]


def inputs_of(make):
    values = X * 0.0 if make is bare_layer else X
    return [values, values] if make is functional else values


@pytest.mark.sampled(2, each="make")
@pytest.mark.parametrize("make", MODELS)
def test_the_innermost_layer_that_is_first_not_finite(keras, make):
    model, expected = make(keras)
    found = find(model, inputs_of(make))
    assert found.name == expected
    assert (found.infinities, found.nans, found.size) == (12, 0, 12)
    assert found.has_finite_inputs
    assert "look at what it computes" in str(found)
    assert str(found).startswith(f"The output of layer {expected} (")


@pytest.mark.sampled(2, each="make")
@pytest.mark.parametrize("make", [sequential, functional, nested, subclassed, bare_layer])
def test_in_a_function_the_name_is_a_tensor(keras, make):
    model, expected = make(keras)
    given = inputs_of(make)
    model(given)

    @tf.function
    def step(values):
        return find(model, values)

    tensors = tf.nest.map_structure(tf.constant, given)
    assert step(tensors).numpy().decode() == expected
    if make is sequential:
        model.layers[0].set_weights([np.ones((3, 3)), np.ones(3)])
        assert step(tensors).numpy() == b""
        assert step(tensors * INF).numpy().decode() == "the inputs"


def test_all_finite(keras):
    model = keras.Sequential([dense(keras, 3, "first"), dense(keras, 1, "last")])
    assert find(model, X) is None


def test_inputs_that_are_not_finite(keras):
    model = keras.Sequential([dense(keras, 3, "first"), dense(keras, 1, "last")])
    values = X.copy()
    values[1, 1] = np.nan
    for given in (values, tf.constant(values)):
        found = find(model, given)
        assert (found.name, found.nans, found.size) == ("the inputs", 1, 12)
        assert str(found).startswith("The inputs of the model are not finite: 1 NaN of 12")


def test_float16_overflows(keras):
    with watched.mixed_float16(keras) as arguments:
        units = {"first": 3, "last": 1}
        layers = [dense(keras, units[name], name, 300.0, **arguments) for name in units]
        model = keras.Sequential(layers)
        found = find(model, X)
    assert (found.name, found.dtype, found.largest_input) == ("last", "float16", 900.0)
    assert found.infinities == 4
    assert "float16 ends at 65504" in str(found)


def test_large_inputs_that_float16_does_not_hold(keras):
    with watched.mixed_float16(keras) as arguments:
        model = keras.Sequential([dense(keras, 1, "only", **arguments)])
        found = find(model, X * 1e5)
    assert (found.name, found.largest_input) == ("only", np.float32(1e5))
    assert "float16 ends at 65504" in str(found)


def test_a_weight_that_a_step_has_spoiled(keras):
    model = keras.Sequential([dense(keras, 3, "first"), dense(keras, 1, "last")])
    model(X)
    model.layers[1].set_weights([np.full((3, 1), np.nan), np.zeros(1)])
    found = find(model, X)
    assert found.name == "last"
    assert [name.split("/")[-1] for name in found.bad_weights] == ["kernel"]
    assert "go back to a checkpoint" in str(found)


def test_what_operations_outside_of_layers_make(keras):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.last = dense(keras, 1, "last")

        def call(self, values):
            return self.last(tf.math.log(values * 0.0))

    found = find(Model(), X)
    assert (found.name, found.has_finite_inputs) == ("last", False)
    assert "outside of layers" in str(found)


def test_operations_of_a_functional_model(keras):
    """In Keras 3, they are no layers."""
    log_of = keras.ops.log if hasattr(keras, "ops") else tf.math.log
    given = keras.layers.Input((3,))
    values = log_of(dense(keras, 3, "zeros", 0.0)(given))
    model = keras.Model(given, dense(keras, 1, "last")(values))
    found = find(model, X)
    assert "log" in found.name.lower()


@pytest.mark.parametrize("where", ["eager", "function"])
def test_variables_and_arguments(keras, where):
    seen = []

    class Noted(keras.layers.Layer):
        def call(self, values, training=False):
            seen.append(training)
            return values

    layers = [keras.layers.BatchNormalization(), Noted(), keras.layers.Dropout(0.5)]
    model = keras.Sequential([*layers, dense(keras, 1, "last")])
    model(X)
    before = [np.array(value) for value in model.get_weights()]
    del seen[:]
    function = find if where == "eager" else tf.function(lambda *given: find(*given))
    function(model, tf.constant(X * 3.0))
    assert seen[-1] is True
    find(model, X, training=False)
    assert seen[-1] is False
    for value, now in zip(before, model.get_weights()):
        np.testing.assert_array_equal(value, now)


def test_one_eager_call_which_draws_other_random_numbers(keras):
    seen = []

    class Noted(keras.layers.Layer):
        def call(self, values):
            is_eager = tf.executing_eagerly()
            seen.append((is_eager, values.numpy() if is_eager else values))
            return values

    model = keras.Sequential([keras.layers.Dropout(0.5), Noted(), dense(keras, 1, "last")])
    values = np.ones((16, 16), "float32")
    model(values, training=True)  # builds it
    del seen[:]
    model(values, training=True)
    find(model, values)
    (_, before), (is_eager, during) = seen
    assert is_eager
    assert not np.array_equal(before, during)


@pytest.mark.sampled(2, each="name")
@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN", "Bidirectional"])
def test_recurrent_layers(keras, name):
    layer = keras.layers
    inner = layer.Bidirectional(layer.LSTM(4)) if name == "Bidirectional" else None
    recurrent = inner or getattr(layer, name)(4)
    model = keras.Sequential([layer.Embedding(5, 3), recurrent, dense(keras, 1, "last")])
    tokens = np.array([[1, 2, 3], [3, 2, 1]])
    assert find(model, tokens) is None
    weights = recurrent.get_weights()
    weights[0][:] = np.nan
    recurrent.set_weights(weights)
    assert find(model, tokens).name.startswith(recurrent.name)


def test_the_states_of_recurrent_layers_are_kept(keras):
    layer = keras.layers.SimpleRNN(2, stateful=True)
    given = keras.layers.Input(batch_shape=(4, 1, 3))
    model = keras.Model(given, layer(given))
    values = X[:, np.newaxis]
    model(values)
    before = [np.array(tf.convert_to_tensor(state)) for state in layer.states]
    assert np.any(before[0])
    find(model, values)
    after = [np.array(tf.convert_to_tensor(state)) for state in layer.states]
    np.testing.assert_array_equal(before, after)


@pytest.mark.skipif(recorded.TF < (2, 6), reason="the layer is of TensorFlow 2.6")
def test_layers_with_tables(keras):
    words = keras.layers.TextVectorization()
    words.adapt(["one two", "three"])
    layers = [words, keras.layers.Embedding(9, 2, embeddings_initializer="zeros"), log(keras)]
    assert find(keras.Sequential(layers), tf.constant([["one"], ["three"]])).name == "log"


def test_inputs_and_outputs_that_are_structures(keras):
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.layers_in_a_list = [dense(keras, 3, "zeros", 0.0), log(keras)]

        def call(self, inputs, offset=None):
            values = inputs["x"][0]
            for layer in self.layers_in_a_list:
                values = layer(values)
            return {"result": (values + offset, tf.constant(1))}

    found = find(Model(), {"x": (tf.constant(X), tf.constant(X))}, offset=1.0)
    assert found.name == "log"


def test_under_a_strategy(keras):
    strategy = tf.distribute.MirroredStrategy(["cpu:0"])
    with strategy.scope():
        model = keras.Sequential([dense(keras, 3, "zeros", 0.0), log(keras)])
        model(X)
    assert find(model, X).name == "log"


def test_what_is_refused(keras):
    with pytest.raises(TypeError, match="takes a Keras model or layer"):
        find(tf.Module(), X)
    model = keras.Sequential([dense(keras, 1, "last")])
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="add_check_numerics_ops"):
        find(model, X)


def test_an_error_in_the_model_leaves_nothing_behind(keras):
    class Failing(keras.Model):
        def call(self, values):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        find(Failing(), X)  # the fixture looks at the methods
    eager = tf.function(lambda: tf.executing_eagerly(), autograph=False)
    assert not bool(eager())
