"""The monitor names the right variable, wherever the program clips by the global norm.

`tests/shim/recording/test_record_clipping.py` clips between unscaling and applying.
"""

import numpy as np
import pytest
import recorded
import support
import tensorflow as tf
import watched

import tf_lossscale as tfls

tf1 = tf.compat.v1
VALUES = {"first": [1.0, 2.0], "second": [0.0, 4.0], "third": [3.0, 3.0]}


def loss_of(variables):
    """A loss of which only the gradient of the second variable is infinite."""
    first, second, third = (tf.convert_to_tensor(variable) for variable in variables)
    return tf.reduce_sum(first**2.0) + tf.reduce_sum(tf.sqrt(second)) + tf.reduce_sum(third)


def clipped(gradients):
    return list(tf.clip_by_global_norm(gradients, 1.0)[0])


def expect(monitor, session=None):
    assert monitor.counts(session) == (1, 1, 1)
    name = monitor.first_bad
    assert name.split("/")[-1] == "second"
    expected = f"only the gradient of {name} was not finite, so look at its backward pass"
    assert monitor.advice.startswith(expected)


def variables_of(kind):
    return [recorded.make_variable(kind, np.float32(VALUES[name]), name) for name in VALUES]


# In eager mode, nothing shows what gradients were that the program has computed itself.
WAYS = [
    ("eager", False),
    *((mode, by_hand) for mode in ("function", "graph") for by_hand in (0, 1)),
]


@pytest.mark.sampled(2, each="family")
@pytest.mark.parametrize(("mode", "by_hand"), WAYS)
@pytest.mark.parametrize("family", watched.TF1_FAMILIES)
def test_optimizers_of_tensorflow_1(family, mode, by_hand):
    with support.graph() if mode == "graph" else support.eager() as session:
        variables = [
            tf1.get_variable(name, initializer=VALUES[name], use_resource=True) for name in VALUES
        ]
        optimizer = watched.TF1_FAMILIES[family]()
        monitor = tfls.monitoring.Monitor(optimizer)

        def gradients_of():
            if by_hand:
                return tf.gradients(loss_of(variables), variables)
            loss = loss_of(variables) if mode == "graph" else lambda: loss_of(variables)
            pairs = optimizer.compute_gradients(loss, variables)
            return [gradient for gradient, _ in pairs]

        def step():
            return optimizer.apply_gradients(list(zip(clipped(gradients_of()), variables)))

        if mode == "graph":
            operation = step()
            session.run(tf1.global_variables_initializer())
            session.run(operation)
            with session.as_default():
                expect(monitor)
            return

        def without_result():
            step()

        (tf.function(without_result) if mode == "function" else step)()
        expect(monitor)


def monitored(kind):
    """Variables, an optimizer that is built for them, and its monitor."""
    variables = variables_of(kind)
    optimizer = watched.keras(kind)
    monitor = tfls.monitoring.Monitor(optimizer)
    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    return variables, optimizer, monitor


@pytest.mark.sampled(3, each="scaled")
@pytest.mark.parametrize("kind", watched.KERAS_KINDS.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("scaled", ["methods", "by hand", "not"])
def test_keras_optimizers(kind, scaled):
    """Only in a function is it seen what gradients were before the program multiplied them."""
    with support.eager():
        variables, optimizer, monitor = monitored(kind)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                plain = [tf.convert_to_tensor(variable) for variable in variables]
                tape.watch(plain)
                loss = loss_of(plain)
                if scaled == "methods":
                    loss = optimizer.get_scaled_loss(loss)
                elif scaled == "by hand":
                    loss = loss * 1024.0
            gradients = tape.gradient(loss, plain)
            if scaled == "methods":
                gradients = optimizer.get_unscaled_gradients(gradients)
            elif scaled == "by hand":
                gradients = [gradient / 1024.0 for gradient in clipped(gradients)]
            optimizer.apply_gradients(list(zip(clipped(gradients), variables)))

        step()
        expect(monitor)


def test_an_eager_loop_that_clips_before_it_unscales():
    """All gradients are NaN then; `find_nonfinite` sees them before."""
    kind = watched.KIND
    with support.eager():
        variables, optimizer, monitor = monitored(kind)
        with tf.GradientTape() as tape:
            plain = [tf.convert_to_tensor(variable) for variable in variables]
            tape.watch(plain)
            loss = optimizer.get_scaled_loss(loss_of(plain))
        gradients = tape.gradient(loss, plain)
        (name,) = tfls.monitoring.find_nonfinite(zip(gradients, variables))
        assert name.split("/")[-1] == "second"
        gradients = optimizer.get_unscaled_gradients(clipped(gradients))
        assert all(np.isnan(gradient).all() for gradient in gradients)
        optimizer.apply_gradients(list(zip(gradients, variables)))
        assert monitor.advice.startswith("no gradient was finite")


@pytest.mark.skipif(not hasattr(tf.keras, "Operation"), reason="of Keras 3")
def test_keras_3_where_scaled_gradients_are_clipped():
    kind = watched.KERAS_KINDS["keras3"]
    variables = variables_of(kind)
    optimizer = watched.keras(kind)
    monitor = tfls.monitoring.Monitor(optimizer)
    optimizer.build(variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(loss_of(variables))
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        optimizer.apply(clipped(gradients), variables)

    step()
    expect(monitor)


@pytest.mark.sampled(3)
@pytest.mark.skipif(recorded.TF < (2, 4), reason="train_step and tapes as of TensorFlow 2.4")
@pytest.mark.parametrize("kind", watched.KERAS_KINDS.values(), ids=lambda kind: kind.name)
def test_a_train_step_that_clips(kind):
    keras = kind.keras

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            ones = {"kernel_initializer": "ones", "use_bias": False}
            self.first = keras.layers.Dense(2, name="first", **ones)
            self.last = keras.layers.Dense(1, name="last", **ones)

        def call(self, values):
            root = tf.sqrt(tf.convert_to_tensor(self.first(values)))
            return tf.convert_to_tensor(self.last(root))

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(self(tf.cast(data[0], tf.float32), training=True))
                scaled = self.optimizer.get_scaled_loss(loss)
            variables = self.trainable_variables
            gradients = tape.gradient(scaled, variables)
            gradients = clipped(self.optimizer.get_unscaled_gradients(gradients))
            self.optimizer.apply_gradients(list(zip(gradients, variables)))
            return {"loss": loss}

    model, optimizer = Model(), watched.keras(kind)
    monitor = tfls.monitoring.Monitor(optimizer)
    model.compile(optimizer, "mse")
    model.fit(np.zeros((2, 2), "float32"), np.zeros((2, 1), "float32"), verbose=0)
    assert monitor.counts() == (1, 1, 1)
    assert "first" in monitor.first_bad
    assert monitor.advice.startswith("only the gradient of ")
