"""The runs of the recorded files for `checkpoints.restore`: models, optimizers, and their steps.

Imported by the test and by the recorder (`tests/data/recorders/half_trained.py`), so it knows
nothing of ours. Gradients of biases in front of a batch normalization, and of keys of an attention,
are only rounding errors, which Adam makes large, so no model has such a bias.
"""

from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow as tf

BEFORE, AFTER = 6, 20
"""The steps before the save, and those that must be as in the run that was not stopped."""
SCALE, PERIOD = 64.0, 3
_RANDOM = np.random.RandomState(7)
INPUTS = _RANDOM.normal(size=(BEFORE + AFTER, 8, 4)).astype(np.float32)
TARGETS = _RANDOM.normal(size=(BEFORE + AFTER, 8, 1)).astype(np.float32)
FACTORS = (1.0, 2.0, float("inf"), 1.0, 0.5, 1.0, 1.0)
"""Of the losses, in turn: a step in seven is skipped."""


def functional(keras: Any) -> Any:
    layers = keras.layers
    inputs = layers.Input((4,))
    shared = layers.Dense(4, activation="tanh")
    hidden = layers.BatchNormalization()(layers.Dense(3, use_bias=False)(shared(shared(inputs))))
    branches = [layers.Dense(2)(hidden), layers.Dense(2)(inputs)]
    return keras.Model(inputs, layers.Dense(1)(layers.Concatenate()(branches)))


def sequential(keras: Any) -> Any:
    layers = keras.layers
    inner = keras.Sequential([layers.Dense(3, activation="tanh"), layers.LayerNormalization()])
    return keras.Sequential([inner, layers.Dropout(0.0), layers.Dense(1)])


def recurrent(keras: Any) -> Any:
    layers = keras.layers
    inputs = layers.Input((4,))
    steps = layers.Reshape((2, 2))(inputs)
    both = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(steps)
    return keras.Model(inputs, layers.Dense(1)(layers.GRU(2)(both)))


def convolution(keras: Any) -> Any:
    layers = keras.layers
    inputs = layers.Input((4,))
    image = layers.Reshape((2, 2, 1))(inputs)
    image = layers.DepthwiseConv2D(2, padding="same")(layers.Conv2D(2, 2, padding="same")(image))
    image = layers.SeparableConv2D(2, 2, padding="same")(image)
    return keras.Model(inputs, layers.Dense(1)(layers.Flatten()(image)))


def attention(keras: Any) -> Any:
    layers = keras.layers
    inputs = layers.Input((4,))
    steps = layers.Reshape((2, 2))(inputs)
    attended = layers.MultiHeadAttention(2, 3, use_bias=False)(steps, steps)
    return keras.Model(inputs, layers.Dense(1)(layers.Flatten()(attended)))


def subclassed(keras: Any) -> Any:
    layers = keras.layers

    class Model(keras.Model):  # type: ignore[misc]  # untyped base
        def __init__(self):
            super().__init__()
            self.first = layers.Dense(3)
            self.blocks = [layers.Dense(3, activation="tanh"), layers.Dense(3)]
            self.named = {"head": layers.Dense(1)}
            self.inner = keras.Sequential([layers.Dense(2), layers.Dense(2)])

        def call(self, inputs: Any) -> Any:
            hidden = self.first(inputs)
            for block in self.blocks:
                hidden = block(hidden)
            return self.named["head"](self.inner(hidden))

    return Model()


MODELS: Dict[str, Callable[[Any], Any]] = {
    made.__name__: made
    for made in (functional, sequential, recurrent, convolution, attention, subclassed)
}
OPTIMIZERS: Dict[str, Dict[str, Any]] = {
    "Adam": {"amsgrad": True},
    "SGD": {"momentum": 0.5},
    "RMSprop": {"momentum": 0.5},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "Ftrl": {},
}


def built(keras: Any, name: str) -> Any:
    """A model with its variables, whose values depend on nothing but the model."""
    model = MODELS[name](keras)
    model(INPUTS[0])
    random = np.random.RandomState(3)
    for weight in model.weights:
        if "moving_variance" not in str(getattr(weight, "path", weight.name)):
            weight.assign(random.uniform(-0.5, 0.5, size=weight.shape).astype(np.float32))
    return model


def inner_optimizer(optimizers: Any, name: str, rate: float = 0.01) -> Any:
    return getattr(optimizers, name)(learning_rate=rate, **OPTIMIZERS[name])


def step(model: Any, optimizer: Any, number: int):
    factor = FACTORS[number % len(FACTORS)]
    step_on(model, optimizer, INPUTS[number], TARGETS[number], factor)


def step_on(model: Any, optimizer: Any, inputs: Any, targets: Any, factor: float):
    """Makes a step of Keras 2; an infinite `factor` of the loss makes the gradients overflow."""
    with tf.GradientTape() as tape:
        error = model(inputs, training=True) - targets
        loss = optimizer.get_scaled_loss(tf.reduce_mean(error**2) * factor)
    gradients = tape.gradient(loss, model.trainable_variables)
    unscaled = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(list(zip(unscaled, model.trainable_variables)))


def scale_of(optimizer: Any) -> float:
    scale = optimizer.loss_scale
    return float(scale() if callable(scale) else scale)


def outputs(model: Any) -> List[float]:
    """What a model computes: numbers in which each of its weights shows, in any order of these."""
    values: Any = model(INPUTS[:4].reshape(-1, 4), training=False)
    return [float(value) for value in np.asarray(values).ravel()]


def go_on(model: Any, optimizer: Any) -> Dict[str, Any]:
    """Takes the steps after the save, and returns what shows each of them."""
    seen: Dict[str, Any] = {"scales": [], "iterations": [], "outputs": []}
    for number in range(BEFORE, BEFORE + AFTER):
        step(model, optimizer, number)
        seen["scales"].append(scale_of(optimizer))
        seen["iterations"].append(int(optimizer.iterations.numpy()))
        if number in (BEFORE, BEFORE + AFTER - 1):
            seen["outputs"].append(outputs(model))
    return seen
