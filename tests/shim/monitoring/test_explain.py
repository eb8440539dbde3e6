"""The callback with `explain=True` looks at the layers in one batch, and changes no other one."""

import warnings

import numpy as np
import pytest
import recorded
import support
import tensorflow as tf
import watched

import tf_lossscale as tfls

INF = float("inf")
KINDS = watched.KERAS_KINDS
HAS_IT = recorded.TF >= (2, 4)

pytestmark = pytest.mark.sampled(3)


@pytest.fixture(autouse=True)
def _eager():
    with support.eager():
        yield


class Training:
    """`fit` of a model on batches of one sample, some of which are not finite."""

    def __init__(self, kind, after_layer=None, **compiled):
        keras = kind.keras
        self.eager = []
        notes = self.eager

        class Noting(keras.layers.Layer):
            def call(self, values):
                notes.append(tf.executing_eagerly())
                return values

        given = keras.layers.Input((2,))
        values = keras.layers.Dense(2, name="first", kernel_initializer="ones")(given)
        values = keras.layers.Activation(tf.sqrt, name="root")(Noting(name="noting")(values))
        values = keras.layers.Dense(1, name="last", kernel_initializer="ones")(values)
        self.model = keras.Model(given, values)
        inner = kind.optimizers.SGD(learning_rate=0.0)
        cls = tfls.keras.mixed_precision.LossScaleOptimizer
        self.optimizer = cls(inner, initial_scale=2.0**60)
        self.model.compile(self.optimizer, compiled.pop("loss", "mse"), **compiled)

    def fit(self, bad, value=-1.0, epochs=1, every=1, **arguments):
        """Trains on a sample for each of `bad`, which says whether it is bad; returns warnings."""
        x = np.ones((len(bad), 2), "float32")
        x[np.array(bad, bool)] = value
        monitor = tfls.monitoring.Monitor(
            self.optimizer, every=every, warn_after_skips=None, warn_at_minimum=False
        )
        callback = monitor.keras_callback(explain=True, **arguments)
        del self.eager[:]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(
                x,
                np.zeros((len(bad), 1), "float32"),
                batch_size=1,
                epochs=epochs,
                shuffle=False,
                verbose=0,
                callbacks=[callback],
            )
        self.monitor = monitor
        messages = [str(warning.message) for warning in caught]
        return [message for message in messages if "in a row were" in message]


if HAS_IT:
    cases = pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
else:
    cases = pytest.mark.skip("explain=True needs TensorFlow 2.4")


def message_of(kind, model):
    """What is said of a model whose own step is skipped."""
    training = Training(kind)
    training.model = model
    model(np.ones((1, 2), "float32"))
    model.compile(training.optimizer, "mse")
    (message,) = training.fit([1, 1, 1], explain_after=1)
    return message


def test_where_it_is_refused():
    optimizer = watched.keras(watched.KIND)
    monitor = tfls.monitoring.Monitor(optimizer)
    if HAS_IT:
        with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="eager mode"):
            monitor.keras_callback(explain=True)
    else:
        with pytest.raises(NotImplementedError, match="find_nonfinite_layer"):
            monitor.keras_callback(explain=True)


@cases
def test_the_layer_is_named_after_some_skips(kind):
    training = Training(kind)
    (message,) = training.fit([0, 1, 1, 1, 1, 1], explain_after=3)
    assert message.startswith("3 steps in a row were skipped, so the next one was looked at. The")
    assert "output of layer root (Activation) is the first" in message
    assert "2 NaN of 2 float32 values" in message
    assert training.eager.count(True) == 1
    assert training.monitor.counts() == (6, 5, 5)
    assert not tf.config.functions_run_eagerly()


@cases
def test_each_series_is_explained_once(kind):
    training = Training(kind)
    assert training.fit([1, 0, 1, 0, 1], explain_after=2) == []
    messages = training.fit([1, 1, 1, 0, 1, 1, 1, 0], explain_after=2)
    assert len(messages) == 2


@cases
def test_a_batch_that_is_fine_again(kind):
    (message,) = Training(kind).fit([1, 1, 0, 0], explain_after=2)
    assert message.endswith("It was applied, and the outputs of all its layers were finite.")


@cases
def test_readings_that_are_far_apart(kind):
    training = Training(kind)
    (message,) = training.fit([1, 1, 1, 1], every=100, epochs=2)
    assert message.startswith("4 steps in a row")  # read at the end of the epoch
    assert training.eager.count(True) == 1


@cases
def test_inputs_that_are_not_finite(kind):
    (message,) = Training(kind).fit([1, 1, 1], value=INF, explain_after=1)
    assert "The inputs of the model are not finite: 2 infinite of 2 float32 values" in message


@cases
def test_a_loss_whose_gradient_is_not_finite(kind):
    def loss(labels, values):
        return tf.reduce_mean(tf.sqrt(tf.nn.relu(values - 3.0)))  # its gradient at 0 is infinite

    (message,) = Training(kind, loss=loss).fit([1, 1, 1], value=0.0, explain_after=1)
    assert "The outputs of all its layers were finite, so look at the loss" in message
    assert "first/kernel" in message or "first" in message


@cases
def test_an_own_train_step_that_calls_single_layers(kind):
    keras = kind.keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.root = keras.layers.Activation(tf.sqrt, name="root")
            self.last = keras.layers.Dense(1, name="last", kernel_initializer="ones")

        def train_step(self, data):
            x, _ = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self.last(self.root(tf.cast(x, tf.float32))))
                scaled = self.optimizer.get_scaled_loss(loss)
            variables = self.trainable_variables
            gradients = self.optimizer.get_unscaled_gradients(tape.gradient(scaled, variables))
            self.optimizer.apply_gradients(zip(gradients, variables))
            return {"loss": loss}

        def call(self, values):
            return self.last(self.root(values))

    message = message_of(kind, Model())
    assert "output of layer root (Activation) is the first" in message


@cases
def test_a_series_at_the_end_leaves_nothing_behind(kind):
    training = Training(kind)
    assert training.fit([0, 1, 1], explain_after=2) == []
    function = training.model.train_function
    assert not hasattr(function, "__self__")
    assert training.fit([0, 0], explain_after=2) == []
    assert training.eager.count(True) == 0


@cases
def test_a_train_step_without_layers(kind):
    class Model(kind.keras.Model):
        def __init__(self):
            super().__init__()
            self.weight = recorded.make_variable(kind, np.ones([1], "float32"), "weight")

        def call(self, values):
            return values

        def train_step(self, data):
            nan = tf.sqrt(tf.cast(data[0], tf.float32))[0, :1]
            self.optimizer.get_unscaled_gradients([])
            self.optimizer.apply_gradients([(nan, self.weight)])
            return {"loss": tf.reduce_sum(nan)}

    message = message_of(kind, Model())
    assert "It called no Keras layer, so tf.debugging.enable_check_numerics()" in message


@cases
def test_an_error_in_the_batch_leaves_nothing_behind(kind):
    training = Training(kind)
    layer = training.model.get_layer("noting")
    call = layer.call

    def failing(values):
        if tf.executing_eagerly():
            raise KeyboardInterrupt
        return call(values)

    object.__setattr__(layer, "call", failing)
    with pytest.raises(KeyboardInterrupt):
        training.fit([1, 1, 1], explain_after=1)
    object.__setattr__(layer, "call", call)
    assert not tf.config.functions_run_eagerly()
    for cls in type(layer).__mro__:
        method = vars(cls).get("__call__")
        assert getattr(method, "__module__", "") != "tf_lossscale._versions.layers"
        assert "_Watch" not in str(getattr(method, "__closure__", ""))
    assert training.fit([0, 0], explain_after=1) == []


@cases
def test_several_steps_in_one_execution(kind):
    training = Training(kind, steps_per_execution=2)
    (message,) = training.fit([1, 1, 1, 1, 1, 1], explain_after=2)
    assert "output of layer root" in message


@cases
def test_functions_that_are_compiled_by_xla(kind):
    compiled = {"jit_compile": True} if recorded.TF >= (2, 5) else {}
    (message,) = Training(kind, **compiled).fit([1, 1, 1], explain_after=1)
    assert "output of layer root (Activation) is the first" in message


@cases
def test_the_number_is_checked(kind):
    training = Training(kind)
    with pytest.raises(ValueError, match="explain_after must be at least 1"):
        training.fit([0], explain_after=0)
