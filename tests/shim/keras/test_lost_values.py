"""What a restore by TensorFlow itself loses of a checkpoint of Keras 2, and what a program drops.

The oracle is the same program on tf_keras.
"""

from typing import Any, Callable, Dict, List, NamedTuple

import numpy as np
import pytest
import recorded
import tensorflow as tf
from test_keras2_checkpoints import (
    KINDS,
    ORIGINALS,
    OURS,
    WITH_TF_KERAS,
    model_of,
    models,
    on_keras_3,
    pytestmark,  # noqa: F401 - pytest reads it
    step,
    train,
)

import tf_lossscale as tfls

EXPERIMENTAL = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
OPTIMIZERS = pytest.mark.parametrize(
    ("kind", "name"), [("legacy", "Adam"), ("new", "Adam"), ("legacy", "SGD"), ("new", "SGD")]
)
LEGACY = pytest.mark.parametrize("name", ["Adam", "SGD"])
PARTLY = "only a part of it"


class Module(tf.Module):
    """A model of variables, whose names the program chooses."""

    def __init__(self, value: float, *names: str):
        super().__init__()
        for number, name in enumerate(names or ("kernel", "bias")):
            setattr(self, name, tf.Variable([value, value + number]))

    def value(self) -> List[Any]:
        return [variable.numpy().tolist() for variable in self.variables]


def original_of(kind: str, name: str) -> Any:
    subject = ORIGINALS[kind]
    return subject.dynamic(subject.inner(name, learning_rate=0.0625), 64.0, 3)


def resumed_of(name: str) -> Any:
    return on_keras_3(name, learning_rate=0.0625)


class Side(NamedTuple):
    """A program on one of the two Kerases, after its restore."""

    optimizer: Any
    module: Any
    checkpoint: Any


def sides(kind: str, name: str, path: str, made: Callable[[], Any]) -> List[Side]:
    """Restores `path` into the same program on tf_keras and on Keras 3."""
    found = []
    for optimizer in (original_of(kind, name), resumed_of(name)):
        module = made()
        checkpoint = tf.train.Checkpoint(model=module, optimizer=optimizer)
        checkpoint.restore(path).expect_partial()
        found.append(Side(optimizer, module, checkpoint))
    return found


def written(kind: str, name: str, folder: Any, **others: Any) -> Any:
    """Returns a trained module of tf_keras's class, its optimizer, and the path of its file."""
    module, optimizer = Module(1.0), original_of(kind, name)
    for factor in (1.0, 2.0):
        step(optimizer, module.variables, factor)
    checkpoint = tf.train.Checkpoint(model=module, optimizer=optimizer, **others)
    return module, optimizer, checkpoint.save(str(folder / "c"))


# Layers that are not trained, which no slot shows.


def own_layer(keras: Any, units: int, **options: Any) -> Any:
    class Own(keras.layers.Layer):
        def build(self, shape: Any):
            self.w = self.add_weight(name="w", shape=(shape[-1], units), initializer="ones")

        def call(self, inputs: Any) -> Any:
            return inputs @ self.w

    return Own(**options)


def with_frozen_embedding(keras: Any) -> Any:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(5, 3, trainable=False)
            self.norm = keras.layers.LayerNormalization()
            self.head = own_layer(keras, 2)

        def call(self, inputs: Any, training: bool = False) -> Any:
            rows = self.embedding(tf.cast(inputs > 0, tf.int32))
            return self.head(tf.reduce_mean(self.norm(rows), axis=1))

    return called(Model())


def with_frozen_list(keras: Any) -> Any:
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [own_layer(keras, 4, trainable=False) for _ in range(2)]
            self.head = own_layer(keras, 4)

        def call(self, inputs: Any, training: bool = False) -> Any:
            for block in self.blocks:
                inputs = block(inputs)
            return self.head(inputs)

    return called(Model())


class Backbone(tf.Module):
    """A frozen model of Keras, and a head of the program's own."""

    def __init__(self, keras: Any):
        super().__init__()
        self.backbone = model_of(keras)
        self.backbone.trainable = False
        self.head = tf.Variable(np.ones([2, 2], "float32"))

    @property
    def trainable_weights(self) -> List[Any]:
        return [self.head]

    @property
    def weights(self) -> List[Any]:
        return [*self.backbone.weights, self.head]


def called(model: Any) -> Any:
    model(np.ones([8, 4], "float32"))
    return model


@WITH_TF_KERAS
@OPTIMIZERS
@pytest.mark.parametrize("made", [with_frozen_embedding, with_frozen_list, Backbone])
def test_frozen_layers_that_are_not_restored_are_an_error(
    kind: str, name: str, made: Any, tmp_path: Any
):
    old, optimizer = made(ORIGINALS[kind].kind.keras), original_of(kind, name)
    for weight in old.weights:
        weight.assign(np.full(weight.shape, 0.5, "float32"))
    step(optimizer, old.trainable_weights, 1.0)
    path = tf.train.Checkpoint(model=old, optimizer=optimizer).save(str(tmp_path / "c"))
    new = made(ORIGINALS[kind].kind.keras)
    tf.train.Checkpoint(model=new, optimizer=original_of(kind, name)).restore(path)
    for left, right in zip(new.weights, old.weights):
        np.testing.assert_array_equal(left.numpy(), right.numpy())
    new, optimizer = made(KINDS["keras3"].keras), resumed_of(name)
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    with pytest.raises(RuntimeError, match=PARTLY):
        step(optimizer, new.trainable_weights, 1.0)
    with pytest.raises(RuntimeError, match=PARTLY):
        checkpoint.save(str(tmp_path / "again"))


@WITH_TF_KERAS
@OPTIMIZERS
def test_a_loss_scale_of_an_own_class_loses_nothing_in_files_of_keras(
    kind: str, name: str, tmp_path: Any
):
    _, _, path, new, _ = models(kind, name, model_of, True, tmp_path)
    own = recorded.below_100(tfls.mixed_precision.experimental)(4.0)
    optimizer = EXPERIMENTAL(getattr(KINDS["keras3"].optimizers, name)(0.0625), own)
    optimizer.build(new.trainable_variables)
    new.compile(optimizer, "mse")
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    for file in ("model.keras", "model.weights.h5"):
        save = new.save_weights if "weights" in file else new.save
        with pytest.raises(RuntimeError, match=PARTLY):
            save(str(tmp_path / file))


@WITH_TF_KERAS
@LEGACY
def test_a_traced_step_does_not_report_what_is_lost(name: str, tmp_path: Any):
    _, _, path, new, optimizer = models("legacy", name, model_of, True, tmp_path)
    new.compile(optimizer, "mse")
    values = np.ones([8, 4], "float32"), np.ones([8, 2], "float32")
    new.fit(*values, verbose=0)
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    new.fit(*values, verbose=0)
    with pytest.raises(RuntimeError, match=PARTLY):
        checkpoint.save(str(tmp_path / "again"))


# What a program leaves out on purpose.


@WITH_TF_KERAS
@LEGACY
@pytest.mark.parametrize("built", [False, True])
def test_values_that_a_program_has_dropped_are_no_error(name: str, built: bool, tmp_path: Any):
    generator = tf.random.Generator.from_seed(1)
    others = {"epoch": tf.Variable(3), "generator": generator, "other": Module(5.0)}
    _, _, path = written("legacy", name, tmp_path, **others)
    original, resumed = sides("legacy", name, path, lambda: Module(0.0))
    if built or name == "Adam":
        resumed.optimizer.build(resumed.module.variables)
    resumed.checkpoint.save(str(tmp_path / "again"))
    for side in (original, resumed):
        step(side.optimizer, side.module.variables, 1.0)
    assert resumed.module.value() == original.module.value()
    resumed.checkpoint.save(str(tmp_path / "again"))


@WITH_TF_KERAS
@OPTIMIZERS
def test_variables_that_live_no_longer_are_restored(kind: str, name: str, tmp_path: Any):
    _, _, path = written(kind, name, tmp_path, epoch=tf.Variable(3))
    module, optimizer = Module(0.0), resumed_of(name)
    optimizer.build(module.variables)

    def epoch_of_file() -> int:
        epoch = tf.Variable(0)
        checkpoint = tf.train.Checkpoint(model=module, optimizer=optimizer, epoch=epoch)
        checkpoint.restore(path).assert_existing_objects_matched()
        return int(epoch)

    assert epoch_of_file() == 3
    checkpoint = tf.train.Checkpoint(model=module, optimizer=optimizer)
    checkpoint.save(str(tmp_path / "again"))
    step(optimizer, module.variables, 1.0)


@WITH_TF_KERAS
@LEGACY
def test_a_new_head_of_a_module_begins_as_on_keras_2(name: str, tmp_path: Any):
    _, _, path = written("legacy", name, tmp_path)
    found = sides("legacy", name, path, lambda: Module(0.0, "kernel", "head"))
    for side in found:
        for factor in (1.0, 2.0):
            step(side.optimizer, side.module.variables, factor)
        side.checkpoint.save(str(tmp_path / "again"))
    assert found[1].module.value() == found[0].module.value()


@WITH_TF_KERAS
@LEGACY
def test_slots_of_variables_that_are_no_longer_trained_are_dropped(
    name: str, tmp_path: Any, log: List[str]
):
    _, _, path = written("legacy", name, tmp_path)
    both = sides("legacy", name, path, lambda: Module(0.0))
    for side in both:
        for factor in (1.0, 2.0):
            step(side.optimizer, [side.module.kernel], factor)
        side.checkpoint.save(str(tmp_path / "again"))
    assert both[1].module.value() == both[0].module.value()
    found = [message for message in log if "does not train ('Variable:0')" in message]
    assert len(found) == (name == "Adam"), log


@WITH_TF_KERAS
@OPTIMIZERS
def test_a_layer_that_is_added_needs_no_value(kind: str, name: str, tmp_path: Any):
    """The counter of the file is dropped on purpose, so that a value is left over."""
    old, optimizer = Backbone.__new__(Backbone), original_of(kind, name)
    tf.Module.__init__(old)
    old.head = tf.Variable(np.ones([2, 2], "float32"))
    step(optimizer, [old.head], 1.0)
    checkpoint = tf.train.Checkpoint(model=old, optimizer=optimizer, epoch=tf.Variable(3))
    path = checkpoint.save(str(tmp_path / "c"))
    new, optimizer = Backbone(KINDS["keras3"].keras), resumed_of(name)
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    step(optimizer, [new.head], 1.0)
    checkpoint.save(str(tmp_path / "again"))


@WITH_TF_KERAS
@OPTIMIZERS
def test_a_saved_model_needs_no_slots_but_weights(kind: str, name: str, tmp_path: Any):
    module, optimizer, path = written(kind, name, tmp_path)
    trainer, new = tf.Module(), Module(0.0)
    trainer.model, trainer.optimizer = new, resumed_of(name)
    tf.train.Checkpoint(model=new, optimizer=trainer.optimizer).restore(path)
    tf.saved_model.save(trainer, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded.model.kernel.numpy(), module.kernel.numpy())
    _, _, path, model, optimizer = models(kind, name, model_of, False, tmp_path)
    trainer.model, trainer.optimizer = model, optimizer
    tf.train.Checkpoint(model=model, optimizer=optimizer).restore(path).expect_partial()
    with pytest.raises(RuntimeError, match=PARTLY):
        tf.saved_model.save(trainer, str(tmp_path / "saved"))


@WITH_TF_KERAS
def test_the_optimizer_that_waits_is_named(tmp_path: Any):
    first, second = original_of("legacy", "Adam"), original_of("legacy", "Adam")
    old = [Module(1.0), Module(2.0)]
    step(first, old[0].variables, 1.0)
    step(second, old[1].variables, 1.0)
    path = tf.train.Checkpoint(models=old, a=first, b=second).save(str(tmp_path / "c"))
    inner = KINDS["keras3"].optimizers.Adam(0.0625, name="of_the_teacher")
    new, first, second = [Module(0.0), Module(0.0)], resumed_of("Adam"), OURS(inner)
    checkpoint = tf.train.Checkpoint(models=new, a=first, b=second)
    checkpoint.restore(path)
    step(first, new[0].variables, 1.0)
    with pytest.raises(RuntimeError, match=r"Adam \('of_the_teacher'\), which is not built"):
        checkpoint.save(str(tmp_path / "again"))


# Another file after that of Keras 2.


@WITH_TF_KERAS
@OPTIMIZERS
@pytest.mark.parametrize("built", [False, True])
def test_an_own_file_restores_all(kind: str, name: str, built: bool, tmp_path: Any):
    _, _, path, new, optimizer = models(kind, name, model_of, built, tmp_path)
    own = model_of(KINDS["keras3"].keras)
    own_optimizer = resumed_of(name)
    train(own, own_optimizer, 2)
    own_path = tf.train.Checkpoint(model=own, optimizer=own_optimizer).save(str(tmp_path / "own"))
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    checkpoint.restore(own_path)
    checkpoint.save(str(tmp_path / "again"))
    expected = train(own, own_optimizer, 2)
    np.testing.assert_allclose(train(new, optimizer, 2), expected, rtol=1e-5)


@WITH_TF_KERAS
@OPTIMIZERS
def test_an_own_file_without_the_model_restores_no_weights(kind: str, name: str, tmp_path: Any):
    _, _, path, new, optimizer = models(kind, name, model_of, False, tmp_path)
    own_path = tf.train.Checkpoint(optimizer=resumed_of(name)).save(str(tmp_path / "own"))
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    tf.train.Checkpoint(optimizer=optimizer).restore(own_path)
    with pytest.raises(RuntimeError, match=PARTLY):
        checkpoint.save(str(tmp_path / "again"))
    with pytest.raises(RuntimeError, match=PARTLY):
        train(new, optimizer, 1)


@WITH_TF_KERAS
@OPTIMIZERS
def test_the_variables_of_a_file_of_keras_restore_all(kind: str, name: str, tmp_path: Any):
    _, _, path, new, optimizer = models(kind, name, model_of, True, tmp_path)
    own, own_optimizer = model_of(KINDS["keras3"].keras), resumed_of(name)
    train(own, own_optimizer, 2)
    stored: Dict[str, Any] = {}
    own_optimizer.save_own_variables(stored)
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    new.set_weights(own.get_weights())
    optimizer.load_own_variables(stored)
    checkpoint.save(str(tmp_path / "again"))
    expected = train(own, own_optimizer, 2)
    np.testing.assert_allclose(train(new, optimizer, 2), expected, rtol=1e-5)


# Files that do not fit.


@WITH_TF_KERAS
@pytest.mark.parametrize("name", ["Adam", "SGD", "RMSprop", "Nadam"])
def test_a_new_style_file_from_before_the_first_step_has_no_slots(name: str, tmp_path: Any):
    module, optimizer = Module(1.0), original_of("new", name)
    path = tf.train.Checkpoint(model=module, optimizer=optimizer).save(str(tmp_path / "c"))
    found = sides("new", name, path, lambda: Module(0.0))
    for side in found:
        step(side.optimizer, side.module.variables, 1.0)
        side.checkpoint.save(str(tmp_path / "again"))
    for left, right in zip(found[1].module.variables, found[0].module.variables):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)


@WITH_TF_KERAS
@pytest.mark.parametrize("built", [False, True])
@LEGACY
def test_a_schedule_counts_instead_of_decay(name: str, built: bool, tmp_path: Any, log: List[str]):
    subject, module = ORIGINALS["legacy"], Module(1.0)
    original = subject.dynamic(subject.inner(name, learning_rate=0.0625, decay=0.5), 64.0, 3)
    step(original, module.variables, 1.0)
    path = tf.train.Checkpoint(model=module, optimizer=original).save(str(tmp_path / "c"))
    schedules = KINDS["keras3"].keras.optimizers.schedules
    optimizer = on_keras_3(name, learning_rate=schedules.InverseTimeDecay(0.0625, 1, 0.5))
    new = Module(0.0)
    if built:
        optimizer.build(new.variables)
    tf.train.Checkpoint(model=new, optimizer=optimizer).restore(path)
    for factor in (1.0, 2.0):
        step(original, module.variables, factor)
        step(optimizer, new.variables, factor)
    for left, right in zip(new.variables, module.variables):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)
    assert sum("has decay=0.5, which" in message for message in log) == 1


@WITH_TF_KERAS
@LEGACY
def test_a_restore_that_has_failed_cannot_be_saved(name: str, tmp_path: Any):
    subject, module = ORIGINALS["legacy"], Module(1.0)
    original = subject.dynamic(subject.inner(name, learning_rate=0.0625, decay=0.5), 64.0, 3)
    step(original, module.variables, 1.0)
    path = tf.train.Checkpoint(model=module, optimizer=original).save(str(tmp_path / "c"))
    new, optimizer = Module(0.0), resumed_of(name)
    optimizer.build(new.variables)
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    with pytest.raises(ValueError, match=r"has decay=0\.5"):
        checkpoint.restore(path)
    with pytest.raises(RuntimeError, match=r"has failed.*decay=0\.5"):
        checkpoint.save(str(tmp_path / "again"))
    with pytest.raises(RuntimeError, match=r"has failed.*decay=0\.5"):
        step(optimizer, new.variables, 1.0)
    _, _, path = written("legacy", name, tmp_path)
    checkpoint.restore(path)
    step(optimizer, new.variables, 1.0)


@WITH_TF_KERAS
def test_a_built_optimizer_refuses_another_class_at_once(tmp_path: Any):
    """A step that was traced before does not look for a file."""
    _, _, path = written("legacy", "Adamax", tmp_path)
    new, optimizer = Module(0.0), resumed_of("Adam")

    @tf.function
    def traced():
        step(optimizer, new.variables, 1.0)

    traced()
    before = new.value()
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    with pytest.raises(ValueError, match="adamax, and the program has Adam"):
        checkpoint.restore(path)
    assert new.value() == before
    with pytest.raises(RuntimeError, match="adamax, and the program has Adam"):
        checkpoint.save(str(tmp_path / "again"))


@WITH_TF_KERAS
def test_build_compares_the_class(tmp_path: Any):
    _, _, path = written("legacy", "Adamax", tmp_path)
    new, optimizer = Module(0.0), resumed_of("Adam")
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path)
    with pytest.raises(ValueError, match="adamax, and the program has Adam"):
        optimizer.build(new.variables)
    with pytest.raises(RuntimeError, match="adamax, and the program has Adam"):
        checkpoint.save(str(tmp_path / "again"))
