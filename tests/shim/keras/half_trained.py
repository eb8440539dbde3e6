"""The runs of the recorded files for `checkpoints.restore`: models, optimizers, and their steps.

Imported by the test and by the recorder (`tests/data/recorders/half_trained.py`), so it knows
nothing of ours. Gradients of biases in front of a batch normalization, and of keys of an attention,
are only rounding errors, which Adam makes large, so no model has such a bias.
"""

import collections
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import numpy as np
import tensorflow as tf

BEFORE, AFTER = 5, 20
"""The steps before the save, and those that must be as in the run that was not stopped."""
SCALE, PERIOD = 64.0, 3
"""After `BEFORE` steps, the scale is 32, and 2 of the 3 steps after which it doubles are made."""
_RANDOM = np.random.RandomState(7)
INPUTS = _RANDOM.normal(size=(BEFORE + AFTER, 8, 4)).astype(np.float32)
TARGETS = _RANDOM.normal(size=(BEFORE + AFTER, 8, 1)).astype(np.float32)
FACTORS = (1.0, 2.0, float("inf"), 1.0, 0.5, 1.0, 1.0)
"""Of the losses, in turn: a step in seven is skipped."""


def functional(keras: Any) -> Any:
    layers = keras.layers
    inputs = layers.Input((4,))
    shared = layers.Dense(2, activation="tanh")
    normalized = layers.BatchNormalization()(layers.Dense(2, use_bias=False)(inputs))
    branches = [shared(shared(normalized)), layers.Dense(1)(inputs)]
    return keras.Model(inputs, layers.Dense(1)(layers.Concatenate()(branches)))


def sequential(keras: Any) -> Any:
    layers = keras.layers
    inner = keras.Sequential([layers.Dense(3, activation="tanh"), layers.LayerNormalization()])
    return keras.Sequential([inner, layers.Dropout(0.0), layers.Dense(1)])


def nested(keras: Any) -> Any:
    """A model with a model that is called twice, and one in that."""
    layers = keras.layers
    own = layers.Input((4,))
    innermost = keras.Sequential([layers.Dense(2, activation="tanh"), layers.Dense(2)])
    shared = keras.Model(own, layers.Dense(2)(innermost(own)))
    inputs = layers.Input((4,))
    branches = [shared(inputs), shared(layers.Dense(4)(inputs))]
    return keras.Model(inputs, layers.Dense(1)(layers.Concatenate()(branches)))


def recurrent(keras: Any) -> Any:
    """A model whose layers are those of TensorFlow 2, which 1.15 has with other defaults."""
    layers = keras.layers
    inputs = layers.Input((4,))
    steps = layers.Reshape((2, 2))(inputs)
    lstm = layers.LSTM(2, recurrent_activation="sigmoid", return_sequences=True)
    gru = layers.GRU(1, recurrent_activation="sigmoid", reset_after=True)
    return keras.Model(inputs, layers.Dense(1)(gru(layers.Bidirectional(lstm)(steps))))


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
        def __init__(self) -> None:
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


def embedded(keras: Any) -> Any:
    """A model with gradients of rows that a step looks up: each row once.

    Most legacy optimizers of Keras 2 leave rows as they are that a step does not look up, and Adam
    of Keras 3 does not sum the gradients of a row that a step looks up twice.
    """
    layers = keras.layers

    class Model(keras.Model):  # type: ignore[misc]  # untyped base
        def __init__(self) -> None:
            super().__init__()
            self.rows = layers.Embedding(8, 2)
            self.head = layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            found = self.rows(tf.argsort(inputs[:, 0]))
            return self.head(tf.concat([found, inputs], axis=1))

    return Model()


class Layer(tf.Module):  # type: ignore[misc]  # untyped base
    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.zeros([rows, columns]))
        self.bias = tf.Variable(tf.zeros([columns]))


class Module(tf.Module):  # type: ignore[misc]  # untyped base
    """A model without layers of Keras, whose variables have one path on both."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Layer(4, 2), Layer(2, 2)]
        self.head = Layer(2, 1)

    def __call__(self, inputs: Any, training: bool = False) -> Any:
        for layer in self.blocks:
            inputs = tf.tanh(inputs @ layer.kernel + layer.bias)
        return inputs @ self.head.kernel + self.head.bias


def module(keras: Any) -> Any:
    del keras
    return Module()


MODELS: Dict[str, Callable[[Any], Any]] = {
    made.__name__: made
    for made in (functional, sequential, nested, recurrent, subclassed, convolution, attention)
}
ALL_MODELS = {
    made.__name__: made
    for made in (
        *(functional, sequential, nested, embedded, recurrent, subclassed, convolution, module),
        attention,  # the last one, as TensorFlow up to 2.3 does not have it
    )
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


class Rule(NamedTuple):
    """A class of optimizers with its options."""

    name: str
    options: Dict[str, Any]


RULES = {
    "adam": Rule("Adam", {"learning_rate": 0.01}),
    # With the default, `v` grows in each step, and its maximum is the same.
    "amsgrad": Rule("Adam", {"learning_rate": 0.01, "amsgrad": True, "beta_2": 0.5}),
    "adamw": Rule("AdamW", {"learning_rate": 0.01, "weight_decay": 0.1}),
    "adamax": Rule("Adamax", {"learning_rate": 0.01}),
    "nadam": Rule("Nadam", {"learning_rate": 0.01}),
    "sgd": Rule("SGD", {"learning_rate": 0.1}),
    "momentum": Rule("SGD", {"learning_rate": 0.1, "momentum": 0.5, "nesterov": True}),
    # Keras 3 divides by sqrt(rms + epsilon), legacy optimizers without a momentum by
    # sqrt(rms) + epsilon.
    "rmsprop": Rule("RMSprop", {"learning_rate": 0.01, "epsilon": 1e-12}),
    # The variance is a difference: with a small epsilon, its rounding errors would become large.
    "centered": Rule(
        "RMSprop", {"learning_rate": 0.01, "momentum": 0.5, "centered": True, "epsilon": 0.01}
    ),
    "adagrad": Rule("Adagrad", {"learning_rate": 0.1}),
    "adadelta": Rule("Adadelta", {"learning_rate": 1.0}),
    "ftrl": Rule("Ftrl", {"learning_rate": 0.1}),
}
COUNTING = ("adam", "amsgrad", "adamw", "adamax", "nadam")
"""The rules that depend on the number of steps."""

FORMS = ("weights.h5", "model.h5", "saved_model", "weights", "manager", "checkpoint")
"""Those first in which the fewest runs can be saved."""
WITHOUT_OPTIMIZER = ("weights.h5",)
WITHOUT_SCALE = ("model.h5",)


class Case(NamedTuple):
    """A recorded run: a model, an optimizer, and the form in which it is saved."""

    model: str
    rule: str
    form: str

    @property
    def name(self) -> str:
        return "-".join(self)


def cases(
    shift: int, rules: List[str], models: List[str], can_save: Callable[[Case], bool]
) -> Iterator[Case]:
    """Yields a case for each rule; `shift` decides which model is with which rule.

    Of the forms in which a run can be saved, a case has the one that was used least.
    """
    used: Dict[str, int] = collections.Counter()
    numbered = collections.deque(enumerate(rules))
    numbered.rotate(-shift)
    for number, rule in numbered:
        model = models[(number + shift) % len(models)]
        possible = [Case(model, rule, form) for form in FORMS if _fits(model, rule, form)]
        case = min(filter(can_save, possible), key=lambda case: used[case.form])
        used[case.form] += 1
        yield case


def _fits(model: str, rule: str, form: str) -> bool:
    """Whether a run can go on from a file of this form."""
    if form in WITHOUT_OPTIMIZER and rule != "sgd":
        return False  # SGD without momentum has no state
    if model == "module":
        return form in ("checkpoint", "manager")
    if model == "subclassed" and form.endswith(".h5"):
        return False  # such a file has the layers in lists in no order that Keras 3 shares
    if model == "embedded" and form == "model.h5":
        return False
    # The graphs of other models make a SavedModel large.
    return form != "saved_model" or model in ("functional", "sequential")


def built(keras: Any, name: str) -> Any:
    """A model with its variables, whose values depend on nothing but the model."""
    model = ALL_MODELS[name](keras)
    model(INPUTS[0])
    random = np.random.RandomState(3)
    for weight in weights_of(model):
        if "moving_variance" not in str(getattr(weight, "path", weight.name)):
            weight.assign(random.uniform(-0.5, 0.5, size=weight.shape).astype(np.float32))
    return model


def weights_of(model: Any) -> List[Any]:
    return list(model.variables if isinstance(model, Module) else model.weights)


def inner_optimizer(optimizers: Any, name: str, **changed: Any) -> Any:
    rule = RULES[name]
    return getattr(optimizers, rule.name)(**{**rule.options, **changed})


def step(model: Any, optimizer: Any, number: int, factor: float):
    step_on(model, optimizer, INPUTS[number], TARGETS[number], factor)


def step_on(model: Any, optimizer: Any, inputs: Any, targets: Any, factor: float):
    """Makes a step of Keras 2; an infinite `factor` of the loss makes the gradients overflow."""
    with tf.GradientTape() as tape:
        error = model(inputs, training=True) - targets
        loss = optimizer.get_scaled_loss(tf.reduce_mean(error**2) * factor)
    gradients = tape.gradient(loss, model.trainable_variables)
    unscaled = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(list(zip(unscaled, model.trainable_variables)))


def losses(first: int, end: int, with_skips: bool = True) -> List[float]:
    """The factors of the losses of some steps."""
    factors = [FACTORS[number % len(FACTORS)] for number in range(first, end)]
    return [factor if with_skips or np.isfinite(factor) else 1.0 for factor in factors]


def scale_of(optimizer: Any) -> float:
    scale = optimizer.loss_scale
    return float(scale() if callable(scale) else scale)


def values_of(model: Any) -> Any:
    """All weights of a model, as one array."""
    return np.concatenate([np.ravel(weight.numpy()) for weight in weights_of(model)])


def outputs(model: Any) -> List[float]:
    """What a model computes: numbers in which each of its weights shows, in any order of these."""
    batches = [model(batch, training=False) for batch in INPUTS[:4]]
    return [float(value) for batch in batches for value in np.ravel(batch)]


class Step(NamedTuple):
    """What a run shows after a step."""

    scale: float
    iterations: int
    weights: Any


def go_on(model: Any, optimizer: Any, factors: List[float]) -> Iterator[Step]:
    """Takes the steps after the save, and yields what shows each of them."""
    for number, factor in enumerate(factors, BEFORE):
        step(model, optimizer, number, factor)
        yield Step(scale_of(optimizer), int(optimizer.iterations.numpy()), values_of(model))
