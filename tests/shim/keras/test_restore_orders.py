"""The order in which an optimizer is built is the one in which the program starts again.

The files are of new-style optimizers of Keras 2, which list their slots, and the programs of
Keras 3. Each program goes on as the old one, saves, and starts again with TensorFlow's `restore`.
All layers have the same shape, so that exchanged variables and slots raise nothing.
"""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_restore import KINDS, keras_of

import tf_lossscale as tfls

restore = tfls.checkpoints.restore
RestoreError = tfls.checkpoints.RestoreError
OURS = tfls.keras.mixed_precision.LossScaleOptimizer
pytestmark = pytest.mark.skipif(
    not {"legacy", "new", "keras3"} <= set(KINDS)
    or not all(map(recorded.is_trackable, KINDS.values())),
    reason="needs Keras 3.1 or later, and tf-keras",
)
INPUTS = np.random.RandomState(3).normal(size=(8, 4)).astype(np.float32)
TARGETS = np.random.RandomState(4).normal(size=(8, 4)).astype(np.float32)
OPTIONS: Dict[str, Dict[str, Any]] = {"Adam": {}, "SGD": {"momentum": 0.9}}


def optimizer_of(kind: str, name: str = "Adam") -> Any:
    return OURS(getattr(KINDS[kind].optimizers, name)(0.01, **OPTIONS[name]))


def dense(keras: Any, name: str) -> Any:
    return keras.layers.Dense(4, activation="tanh", name=name)


def sequential(keras: Any, *names: str) -> Any:
    return keras.Sequential([keras.Input((4,)), *(dense(keras, name) for name in names)])


def subclassed(keras: Any, add: Callable[[Any], None], call: Callable[[Any, Any], Any]) -> Any:
    class Model(keras.Model):  # type: ignore[misc] - either Keras is Any
        def __init__(self) -> None:
            super().__init__()
            add(self)

        def call(self, inputs: Any) -> Any:
            return call(self, inputs)

    model = Model()
    model(INPUTS)
    return model


def functional(keras: Any) -> Any:
    inputs = keras.Input((4,))
    towers = [sequential(keras, "first", "second")(inputs) for _ in range(2)]
    return keras.Model(inputs, dense(keras, "out")(keras.layers.Concatenate()(towers)))


def with_dictionary(keras: Any) -> Any:
    def add(model: Any):
        model.parts = {"z": dense(keras, "of_z"), "a": dense(keras, "of_a")}

    return subclassed(keras, add, lambda model, x: model.parts["a"](model.parts["z"](x)))


def with_list(keras: Any) -> Any:
    """Keras 2 lists the blocks before `out`, where the list was made, and Keras 3 after it."""

    def add(model: Any):
        model.blocks = []
        model.out = dense(keras, "out")
        model.blocks += [dense(keras, f"block_{number}") for number in range(2)]

    return subclassed(keras, add, lambda model, x: model.out(model.blocks[1](model.blocks[0](x))))


def with_equal_names(keras: Any) -> Any:
    def add(model: Any):
        model.towers = {key: sequential(keras, "first", "second") for key in "za"}

    return subclassed(
        keras, add, lambda model, x: model.towers["z"](x) + 2 * model.towers["a"](x + 1)
    )


MODELS: Dict[str, Callable[[Any], Any]] = {
    "functional": functional,
    "dictionary": with_dictionary,
    "list": with_list,
    "equal names": with_equal_names,
}


class Program:
    """Models with an optimizer each, which `fit` trains if they are compiled."""

    def __init__(self, kind: str, models: List[Any], name: str, is_compiled: bool) -> None:
        self.models = models
        self.optimizers = [optimizer_of(kind, name) for _ in models]
        self.is_compiled = is_compiled
        for model, optimizer in zip(models, self.optimizers):
            if is_compiled:
                model.compile(optimizer, "mse")
        parts = {f"model_{number}": model for number, model in enumerate(models)}
        parts.update({f"opt_{number}": own for number, own in enumerate(self.optimizers)})
        self.checkpoint = tf.train.Checkpoint(**parts)

    def go_on(self):
        for model, optimizer in zip(self.models, self.optimizers):
            if self.is_compiled:
                model.fit(INPUTS, TARGETS, epochs=3, shuffle=False, verbose=0)
                continue
            for _ in range(3):
                step(model, optimizer)

    def outputs(self) -> List[Any]:
        return [np.asarray(model(INPUTS)) for model in self.models]


def step(model: Any, optimizer: Any):
    variables = list(model.trainable_variables)
    is_of_keras_3 = hasattr(optimizer, "scale_loss")
    scaled = optimizer.scale_loss if is_of_keras_3 else optimizer.get_scaled_loss
    with tf.GradientTape() as tape:
        loss = scaled(tf.reduce_mean((model(INPUTS) - TARGETS) ** 2))
    watched = [own.value if is_of_keras_3 else own for own in variables]
    gradients = tape.gradient(loss, watched)
    if not is_of_keras_3:
        gradients = optimizer.get_unscaled_gradients(gradients)
    optimizer.apply_gradients(zip(gradients, variables))


def assert_equal(first: Program, second: Program, tolerance: float = 1e-5):
    for left, right in zip(first.outputs(), second.outputs()):
        np.testing.assert_allclose(left, right, atol=tolerance)


def assert_goes_on_twice(make: Callable[[str], Program], folder: Any) -> Any:
    """Restores a file of Keras 2, saves it on Keras 3, and starts again; returns the report."""
    original, resumed, again = make("new"), make("keras3"), make("keras3")
    original.go_on()
    report = restore(original.checkpoint.save(str(folder / "c")), resumed.checkpoint)
    assert not report.initial
    assert not report.unused
    for program in (original, resumed):
        program.go_on()
    assert_equal(original, resumed, 1e-4)
    path = resumed.checkpoint.save(str(folder / "d"))
    for model, optimizer in zip(again.models, again.optimizers):
        optimizer.build(model.trainable_variables)
    again.checkpoint.restore(path).assert_consumed()
    assert_equal(resumed, again)
    for program in (resumed, again):
        program.go_on()
    assert_equal(resumed, again)
    return report


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_next_start_finds_each_slot(model: str, is_compiled: bool, name: str, tmp_path: Any):
    def make(kind: str) -> Program:
        return Program(kind, [MODELS[model](keras_of(kind))], name, is_compiled)

    notes = assert_goes_on_twice(make, tmp_path).notes
    order = [note for note in notes if "was built for the variables in the order" in note]
    assert bool(order) == (model != "functional" and not is_compiled)
    assert any("order in which Keras 2" in note for note in notes) == (model == "equal names")


@pytest.mark.parametrize("name", sorted(OPTIONS))
@pytest.mark.parametrize("ends", [("gout", "dout"), ("gout", "")])
def test_names_that_two_models_share(ends: Any, name: str, tmp_path: Any):
    """The slots of layers with other names show which model an optimizer trains."""

    def make(kind: str) -> Program:
        names = [["in", "mid", *filter(None, [end])] for end in ends]
        return Program(kind, [sequential(keras_of(kind), *own) for own in names], name, False)

    assert_goes_on_twice(make, tmp_path)


def joint(kind: str) -> Any:
    models = [sequential(keras_of(kind), "in", "mid", end) for end in ("gout", "dout")]
    variables = [own for model in models for own in model.trainable_variables]
    optimizer = optimizer_of(kind)
    parts = dict(zip("gdo", [*models, optimizer]))
    return optimizer, variables, tf.train.Checkpoint(**parts)


def online_and_target(kind: str) -> Any:
    models = [sequential(keras_of(kind), "in", "mid") for _ in range(2)]
    optimizer = optimizer_of(kind)
    parts = dict(zip("gdo", [*models, optimizer]))
    return optimizer, models[0].trainable_variables, tf.train.Checkpoint(**parts)


@pytest.mark.parametrize("is_built", [True, False])
@pytest.mark.parametrize("program", [joint, online_and_target])
def test_one_optimizer_beside_models_with_equal_names(program: Any, is_built: bool, tmp_path: Any):
    old, variables, checkpoint = program("new")
    old.apply_gradients([(tf.fill(own.shape, float(i)), own) for i, own in enumerate(variables)])
    path = checkpoint.save(str(tmp_path / "c"))
    optimizer, trained, checkpoint = program("keras3")
    if program is online_and_target and not is_built:
        for partial in (True, False):
            with pytest.raises(RestoreError, match=r"build\(model.trainable_variables\)"):
                restore(path, checkpoint, partial=partial)
        return
    if is_built:
        optimizer.build(trained)
    report = restore(path, checkpoint)
    assert not report.unused
    assert not [note for note in report.notes if "order" in note]
    inner = optimizer.inner_optimizer
    assert list(map(id, inner._trainable_variables)) == list(map(id, trained))
    for left, right in zip(old.inner_optimizer._momentums, inner._momentums):
        np.testing.assert_array_equal(left, right)


def test_an_order_that_names_contradict_is_not_taken(tmp_path: Any):
    old, variables, checkpoint = joint("new")
    old.apply_gradients([(tf.ones(own.shape), own) for own in variables[::-1]])
    path = checkpoint.save(str(tmp_path / "c"))
    optimizer, trained, checkpoint = joint("keras3")
    with pytest.raises(RestoreError, match=r"Call optimizer.build\(variables\)"):
        restore(path, checkpoint)
    optimizer.build(trained)
    with pytest.raises(RestoreError, match="in that order"):
        restore(path, checkpoint, partial=True)
    optimizer, trained, checkpoint = joint("keras3")
    optimizer.build(trained[::-1])
    report = restore(path, checkpoint)
    assert [note for note in report.notes if "in the order of optimizer.build()" in note]


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adagrad", "SGD"])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_file_from_before_the_first_step(name: str, is_compiled: bool, tmp_path: Any):
    def program(kind: str) -> Any:
        model = sequential(keras_of(kind), "in", "out")
        optimizer = OURS(getattr(KINDS[kind].optimizers, name)(0.01))
        if is_compiled:
            model.compile(optimizer, "mse")
        return model, optimizer, tf.train.Checkpoint(model=model, optimizer=optimizer)

    original, resumed = program("new"), program("keras3")
    report = restore(original[2].save(str(tmp_path / "c")), resumed[2])
    assert bool([note for note in report.notes if "order of the model" in note]) != is_compiled
    for model, optimizer, _ in (original, resumed):
        for _ in range(3):
            step(model, optimizer)
    np.testing.assert_allclose(original[0](INPUTS), resumed[0](INPUTS), atol=1e-5)


def test_an_optimizer_of_a_strategy_is_built_outside_of_its_scope(tmp_path: Any):
    def program(kind: str) -> Any:
        model = sequential(keras_of(kind), "in", "out")
        model.compile(optimizer_of(kind), "mse")
        return model

    original = program("legacy")
    original.fit(INPUTS, TARGETS, verbose=0)
    checkpoint = tf.train.Checkpoint(model=original, optimizer=original.optimizer)
    path = checkpoint.save(str(tmp_path / "c"))
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        resumed = program("keras3")
    restore(path, resumed)
    for model in (original, resumed):
        model.fit(INPUTS, TARGETS, epochs=3, shuffle=False, verbose=0)
    np.testing.assert_allclose(original(INPUTS), resumed(INPUTS), atol=1e-4)


@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_the_optimizer_in_a_wrapper_is_not_the_wrapper(kind: str, tmp_path: Any):
    model, optimizer = sequential(keras_of(kind), "in"), optimizer_of(kind)
    step(model, optimizer)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "c"))
    resumed, wrapper = sequential(keras_of("keras3"), "in"), optimizer_of("keras3")
    inner = tf.train.Checkpoint(model=resumed, optimizer=wrapper.inner_optimizer)
    with pytest.raises(RestoreError, match="Pass the loss-scale optimizer instead"):
        restore(path, inner)
    restore(path, tf.train.Checkpoint(model=resumed, optimizer=wrapper))
    assert float(wrapper.dynamic_scale) == float(optimizer.loss_scale)
