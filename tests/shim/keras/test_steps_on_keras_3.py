"""Models and loops of Keras 2 and of Keras 3 on one optimizer, where Keras itself makes steps, too.

The expected weights follow from the learning rate: each step takes the true gradient, once.
"""

import importlib
import threading
from typing import Any, Callable, Dict, List

import numpy as np
import processes
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

if recorded.TF < (2, 16):
    pytest.skip("there is no Keras 3", allow_module_level=True)
keras = importlib.import_module("keras")

RATE = 0.125
INPUTS = np.ones([4, 1], "float32")
CLASSES = {
    "final": lambda inner: tfls.keras.mixed_precision.LossScaleOptimizer(inner),
    "experimental": lambda inner: tfls.keras.mixed_precision.experimental.LossScaleOptimizer(
        inner, "dynamic"
    ),
}
BY_CLASS = pytest.mark.parametrize("make", CLASSES.values(), ids=CLASSES)


class Mean(keras.Model):
    """A model whose loss is its weight, so that the gradient is 1 in each step of a mean."""

    def __init__(self):
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="zeros")

    def call(self, inputs: Any) -> Any:
        return self.weight + 0.0 * inputs

    def loss_of(self, inputs: Any) -> Any:
        return tf.reduce_mean(self(inputs, training=True))


class Unscaled(Mean):
    def train_step(self, data: Any) -> Dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = self.loss_of(data[0])
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class OfKeras2(Mean):
    def train_step(self, data: Any) -> Dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = self.loss_of(data[0])
            scaled = self.optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        gradients = self.optimizer.get_unscaled_gradients(gradients)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class ByHand(Mean):
    def train_step(self, data: Any) -> Dict[str, Any]:
        scale = getattr(self.optimizer, "loss_scale", 1.0)
        with tf.GradientTape() as tape:
            loss = self.loss_of(data[0])
            scaled = loss * scale
        gradients = tape.gradient(scaled, self.trainable_variables)
        unscaled = [gradient / scale for gradient in gradients]
        self.optimizer.apply_gradients(zip(unscaled, self.trainable_variables))
        return {"loss": loss}


class OfKeras3(Mean):
    def train_step(self, data: Any) -> Dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = self.loss_of(data[0])
            scaled = self.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


class WithAnotherStep(Mean):
    """After the step of `fit`, a second optimizer of the class applies gradients as they are."""

    def __init__(self, second: Any):
        super().__init__()
        self.second = second
        self.other = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def train_step(self, data: Any) -> Any:
        logs = super().train_step(data)
        self.second.apply_gradients([(tf.ones([]), self.other)])
        return logs


MODELS = {cls.__name__: cls for cls in (Mean, Unscaled, OfKeras2, ByHand, OfKeras3)}
COMPILED: Dict[str, Dict[str, Any]] = {
    "graph": {},
    "eager": {"run_eagerly": True},
    "XLA": {"jit_compile": True},
    "several": {"steps_per_execution": 2},
}


def compiled(model: Any, optimizer: Any, **options: Any) -> Any:
    options.setdefault("jit_compile", False)
    model.compile(optimizer, loss=lambda y, prediction: tf.reduce_mean(prediction), **options)
    return model


def weight_of(model: Any) -> float:
    return float(model.weight.numpy())


@pytest.mark.sampled(4)
@BY_CLASS
@pytest.mark.parametrize("how", sorted(COMPILED))
@pytest.mark.parametrize("name", sorted(MODELS))
def test_fit(name: str, how: str, make: Callable[[Any], Any]):
    model = compiled(MODELS[name](), make(keras.optimizers.SGD(RATE)), **COMPILED[how])
    model.fit(INPUTS, INPUTS, batch_size=2, epochs=2, verbose=0)
    assert weight_of(model) == -4 * RATE


@pytest.mark.parametrize("how", ["graph", "eager"])
def test_steps_of_both_styles_take_turns_on_one_optimizer(how: str):
    optimizer = CLASSES["final"](keras.optimizers.SGD(RATE))
    models = {name: compiled(cls(), optimizer, **COMPILED[how]) for name, cls in MODELS.items()}
    for model in models.values():
        model(INPUTS)
    optimizer.build([model.weight for model in models.values()])
    order = sorted(MODELS) + sorted(MODELS, reverse=True) + sorted(MODELS)
    for count, name in enumerate(order, 1):
        models[name].train_on_batch(INPUTS, INPUTS)
        # Between them, a step without scaling.
        optimizer.apply_gradients([(tf.ones([]), models["Mean"].weight)])
        total = sum(weight_of(model) for model in models.values())
        assert total == -2 * count * RATE, (count, name)


@pytest.mark.parametrize("how", ["graph", "eager"])
def test_a_second_optimizer_beside_the_step_of_fit(how: str):
    second = CLASSES["final"](keras.optimizers.SGD(RATE))
    model = WithAnotherStep(second)
    second.build([model.other])
    compiled(model, CLASSES["final"](keras.optimizers.SGD(RATE)), **COMPILED[how])
    model.fit(INPUTS, INPUTS, batch_size=2, epochs=2, verbose=0)
    assert (weight_of(model), float(model.other.numpy())) == (-4 * RATE, -4 * RATE)


def test_only_a_read_of_dynamic_scale_is_a_step_of_keras_3():
    weights = {}
    for name in ("loss_scale", "dynamic_scale"):
        optimizer, weight = CLASSES["final"](keras.optimizers.SGD(RATE)), keras.Variable(0.0)
        scale = float(getattr(optimizer, name))
        optimizer.apply_gradients([(tf.constant(scale), weight)])
        weights[name] = float(weight.numpy()) / -RATE
    assert weights == {"loss_scale": 2.0**15, "dynamic_scale": 1.0}


class TwoStyles:
    """Two optimizers, and what a step of both styles does with them."""

    def __init__(self) -> None:
        self.optimizer, self.second = (CLASSES["final"](keras.optimizers.SGD(RATE)) for _ in "12")
        self.weight, self.other = keras.Variable(1.0), keras.Variable(1.0)
        self.scaled_in_a_function = tf.function(self.scaled, autograph=False)

    def scaled(self) -> Any:
        with tf.GradientTape() as tape:
            loss = self.optimizer.scale_loss(self.weight.value * 1.0)
        return tape.gradient(loss, self.weight.value)

    def unscale_what_keras_3_scaled(self):
        gradients = self.optimizer.get_unscaled_gradients([self.scaled()])
        self.optimizer.apply_gradients(zip(gradients, [self.weight]))

    def apply_what_is_unscaled(self):
        gradients = self.optimizer.get_unscaled_gradients([tf.constant(1.0)])
        self.optimizer.apply(gradients, [self.weight])

    def scale_twice(self):
        loss = self.optimizer.get_scaled_loss(self.weight.value * 1.0)
        self.optimizer.scale_loss(loss)
        self.optimizer.apply_gradients([(tf.constant(1.0), self.weight)])

    def apply_what_another_one_scaled(self):
        self.second.apply_gradients([(self.scaled(), self.weight)])

    def apply_in_several_ways(self):
        gradient = self.scaled_in_a_function()
        self.optimizer.apply([gradient], [self.other])
        self.optimizer.apply_gradients([(gradient, self.weight)])


@pytest.mark.parametrize(
    "name",
    [
        "unscale_what_keras_3_scaled",
        "apply_what_is_unscaled",
        "scale_twice",
        "apply_what_another_one_scaled",
        "apply_in_several_ways",
    ],
)
def test_a_step_of_both_styles_is_refused_and_applies_nothing(name: str):
    """The rows of docs/keras.md; tests/shim/keras/test_step_style.py has more of each."""
    both = TwoStyles()
    with pytest.raises(RuntimeError, match=r" (Write|Call|Read) "):
        getattr(both, name)()
    assert float(both.weight.numpy()) == 1.0


def loops(optimizer: Any, variable: Any) -> Dict[str, Callable[[Any], None]]:
    """Steps of `tf.function`s that call each other; each gets ones, of any shape."""

    def gradient(scale: Callable[[Any], Any], ones: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = scale(variable.value * tf.reduce_mean(ones))
        return tape.gradient(loss, variable.value)

    @tf.function(autograph=False)
    def keras_2_gradient(ones: Any) -> Any:
        return optimizer.get_unscaled_gradients([gradient(optimizer.get_scaled_loss, ones)])[0]

    @tf.function(autograph=False)
    def nested(ones: Any):
        optimizer.apply_gradients([(keras_2_gradient(ones), variable)])

    @tf.function(autograph=False)
    def unscaled(ones: Any):
        optimizer.apply_gradients([(gradient(lambda loss: loss, ones), variable)])

    @tf.function(autograph=False)
    def keras_3(ones: Any):
        optimizer.apply_gradients([(gradient(optimizer.scale_loss, ones), variable)])

    @tf.function(autograph=False, jit_compile=True)
    def compiled_unscaled(ones: Any):
        optimizer.apply_gradients([(gradient(lambda loss: loss, ones), variable)])

    @tf.function(autograph=False)
    def twice(ones: Any):
        unscaled(ones)
        keras_3(ones)

    return {
        "nested": nested,
        "unscaled": unscaled,
        "keras_3": keras_3,
        "compiled_unscaled": compiled_unscaled,
        "twice": twice,
    }


def test_functions_that_are_traced_again_and_call_each_other():
    optimizer = CLASSES["final"](keras.optimizers.SGD(RATE))
    variable = keras.Variable(0.0)
    optimizer.build([variable])
    steps = loops(optimizer, variable)
    taken = 0
    for size in (2, 3, 2, 4):  # a new shape is traced
        for name, step in steps.items():
            step(tf.ones([size]))
            taken += 2 if name == "twice" else 1
            assert float(variable.numpy()) == -taken * RATE, (name, size)


def test_threads_with_steps_of_different_styles():
    """They share the optimizer; each has a variable of its own, and steps of one style."""
    optimizer = CLASSES["final"](keras.optimizers.SGD(RATE))
    variables = [keras.Variable(0.0) for _ in range(2)]
    optimizer.build(variables)
    failed: List[BaseException] = []

    def train(variable: Any, scale: Callable[[Any], Any], unscale: Callable[[Any], Any]):
        try:
            for _ in range(20):
                with tf.GradientTape() as tape:
                    scaled = scale(variable.value * 1.0)
                gradients = unscale([tape.gradient(scaled, variable.value)])
                optimizer.apply_gradients(zip(gradients, [variable]))
        except BaseException as error:
            failed.append(error)

    threads = [
        threading.Thread(target=train, args=(variables[0], optimizer.scale_loss, list)),
        threading.Thread(
            target=train,
            args=(variables[1], optimizer.get_scaled_loss, optimizer.get_unscaled_gradients),
        ),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert [float(variable.numpy()) for variable in variables] == [-20 * RATE] * 2


@pytest.mark.slow
def test_replicas():
    """Steps of each style in the replicas of a strategy, eager and in functions, with Momentum."""
    found = processes.run_program("keras/programs/styles_on_replicas.py", timeout=300)
    assert set(found) == {
        f"{style}, {where}" for style in found["styles"] for where in ("eager", "function")
    } | {"styles"}
    for name, weights in found.items():
        if name != "styles":
            assert weights == found["usual, eager"], name
