"""`tf-lossscale checkpoint convert --to keras3`: what Keras 3's own classes restore.

The oracle is the run that was not interrupted.
"""

import os

import numpy as np
import pytest
import recorded
import recorded_files
import tensorflow as tf
from test_keras2_checkpoints import (
    BUILT,
    IS_TRACKABLE,
    KINDS,
    ORIGINALS,
    PROGRAMS,
    RECORDED_OPTIMIZERS,
    WITH_TF_KERAS,
    Program,
    step,
    variables,
    written,
)
from test_recorded_checkpoints import expected_of, folders

pytestmark = pytest.mark.skipif(
    not IS_TRACKABLE, reason="checkpoints have optimizers of Keras 3.1 and later"
)


@pytest.fixture(autouse=True)
def _eager():
    with recorded.eagerly():
        yield


def own_class(name, **options):
    """A loss-scale optimizer of Keras 3 itself, without the shim."""
    inner = getattr(KINDS["keras3"].optimizers, name)(**options)
    own = KINDS["keras3"].keras.mixed_precision.LossScaleOptimizer
    return own(inner, initial_scale=2.0, dynamic_growth_steps=3)


def step_of_keras_3(optimizer, trained, factor):
    with tf.GradientTape() as tape:
        losses = [tf.reduce_sum(variable**2 + variable) for variable in trained]
        loss = optimizer.scale_loss(tf.add_n(losses) * factor)
    optimizer.apply(tape.gradient(loss, trained), trained)


@pytest.fixture
def converted(checkpoint, tmp_path):
    def convert(source):
        path = str(tmp_path / "new" / "ckpt-1")
        status, out, err = checkpoint("convert", source, path, "--to", "keras3")
        assert status == 0, err
        return path, out

    return convert


IS_LOST = [
    program
    for program in PROGRAMS
    if program.name in ("SGD", "RMSprop", "Lion")
    # The new-style SGD saves slots, too, from which those of Lion cannot be told apart.
    if "momentum" in program.options or str(program) in ("new-SGD", "new-Lion")
]
"""Lists that Keras 3.15 creates twice, so that it does not restore them before `build`."""
COPIED = [program for program in PROGRAMS if program not in IS_LOST]


@pytest.mark.sampled(12)
@WITH_TF_KERAS
@BUILT
@pytest.mark.parametrize("program", COPIED, ids=str)
def test_every_optimizer_goes_on_in_the_class_of_keras_3(program, built, converted, tmp_path):
    original, trained, source = written(program, tmp_path / "old")
    path, out = converted(source)
    resumed = variables()
    optimizer = own_class(program.name, learning_rate=0.5, **program.options)
    if built:
        optimizer.build(resumed)
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    if not built:
        optimizer.build(resumed)
    status.assert_existing_objects_matched()
    status.assert_consumed()
    assert int(optimizer.inner_optimizer.iterations.numpy()) == int(original.iterations)
    assert float(optimizer.dynamic_scale.numpy()) == float(original.loss_scale)
    assert int(optimizer.step_counter.numpy()) == int(original.dynamic_counter)
    assert float(optimizer.inner_optimizer.learning_rate.numpy()) == 0.0625
    for factor in (1.0, 2.0, 1.0, 0.5) * 5:
        step(original, trained, factor)
        step_of_keras_3(optimizer, resumed, factor)
        for left, right in zip(resumed, trained):
            np.testing.assert_allclose(
                left.numpy(), right.numpy(), rtol=program.tolerance, atol=1e-5
            )
        assert float(optimizer.dynamic_scale.numpy()) == float(original.loss_scale)
    assert ("Keras 3 does not store" in out) == (program.kind == "legacy" and bool(hyper(program)))


def hyper(program):
    """Whether `OptimizerV2` saves a hyperparameter beside the learning rate and the decay."""
    return program.name not in ("Adagrad",)


@pytest.mark.parametrize(
    ("layout", "name"), [("A", "adam"), ("A", "sgd"), ("B", "adam"), ("B", "sgd"), ("C", "adam")]
)
def test_recorded_files(layout, name, checkpoint, tmp_path):
    """Of TensorFlow 1.15 to 2.21."""
    for number, folder in enumerate(folders(layout, "dynamic_" + name)):
        expected = expected_of(folder)
        source = os.path.join(recorded_files.FIXTURES, folder, expected["checkpoint_prefix"])
        path = str(tmp_path / str(number))
        status, _, err = checkpoint("convert", source, path, "--to", "keras3")
        assert status == 0, err
        kind, options = RECORDED_OPTIMIZERS[name]
        optimizer, variable = own_class(kind, **options), tf.Variable([0.0, 0.0, 0.0])
        optimizer.build([variable])
        status = tf.train.Checkpoint(opt=optimizer, v=variable).restore(path)
        status.assert_existing_objects_matched()
        at_save = expected["state_at_save"]
        assert variable.numpy().tolist() == at_save["v"], folder
        assert float(optimizer.dynamic_scale.numpy()) == at_save["loss_scale"], folder
        assert int(optimizer.step_counter.numpy()) == at_save["good_steps"], folder
        assert int(optimizer.inner_optimizer.iterations.numpy()) == at_save["iterations"], folder
        report = checkpoint("inspect", path)[1]
        assert "an optimizer of Keras 3" in report


@WITH_TF_KERAS
@BUILT
def test_another_order_of_the_program_is_an_error(built, converted, tmp_path):
    _, _, source = written(Program("legacy", "Adam", {}), tmp_path / "old")
    path, out = converted(source)
    assert "in the order of tf.Module.trainable_variables: v/0, v/1, v/2" in out
    resumed, optimizer = variables(), own_class("Adam")

    def restore():
        if built:
            optimizer.build(resumed[::-1])
        tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
        optimizer.build(resumed[::-1])

    with pytest.raises(ValueError, match=r"(?i)shape"):
        restore()


class Module(tf.Module):
    """Its attributes were not made in the order of their names."""

    def __init__(self):
        super().__init__()
        self.weights = [tf.Variable([[1.0, 2.0]]), tf.Variable([3.0, 4.0, 5.0])]
        self.inner = Inner()
        self.bias = tf.Variable(6.0)


class Inner(tf.Module):
    def __init__(self):
        super().__init__()
        self.table = {"b": tf.Variable([7.0, 8.0]), "a": tf.Variable([9.0])}


@WITH_TF_KERAS
def test_modules_have_the_order_of_tensorflow(converted, tmp_path):
    module, subject = Module(), ORIGINALS["legacy"]
    original = subject.dynamic(subject.inner("Adam", learning_rate=0.0625), 64.0, 3)
    for _ in range(3):
        step(original, module.trainable_variables, 1.0)
    source = tf.train.Checkpoint(net=module, opt=original).save(str(tmp_path / "old"))
    path, _ = converted(source)
    resumed, optimizer = Module(), own_class("Adam")
    optimizer.build(list(resumed.trainable_variables))
    status = tf.train.Checkpoint(net=resumed, opt=optimizer).restore(path)
    status.assert_existing_objects_matched()
    status.assert_consumed()
    for _ in range(3):
        step(original, module.trainable_variables, 1.0)
        step_of_keras_3(optimizer, list(resumed.trainable_variables), 1.0)
    for left, right in zip(resumed.trainable_variables, module.trainable_variables):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)


def saved_twice(folder, shapes, name="Adam", **options):
    subject = ORIGINALS["legacy"]
    original = subject.dynamic(subject.inner(name, **options), 64.0, 3)
    trained = [tf.Variable(tf.ones(shape)) for shape in shapes]
    step(original, trained, 1.0)
    return tf.train.Checkpoint(opt=original, v=trained).save(str(folder / "c"))


REFUSED = {
    "equal shapes": (lambda folder: saved_twice(folder, [[2], [3], [2]]), "v/0 and v/2"),
    "a decay": (lambda folder: saved_twice(folder, [[2]], decay=0.5), "decay=0.5"),
    "Nadam": (lambda folder: saved_twice(folder, [[2]], "Nadam"), "decay=0.004"),
}


@WITH_TF_KERAS
@pytest.mark.parametrize("what", sorted(REFUSED))
def test_what_is_refused(what, refused, tmp_path):
    make, words = REFUSED[what]
    source = make(tmp_path)
    new = tmp_path / "new"
    refused(("convert", source, new, "--to", "keras3"), words, "checkpoints.restore(")
    assert not os.path.exists(str(new) + ".index")


@WITH_TF_KERAS
@pytest.mark.parametrize("program", IS_LOST, ids=str)
def test_slots_that_keras_3_would_lose_are_refused(program, refused, tmp_path):
    _, _, source = written(program, tmp_path / "old")
    name = program.name.replace("Lion", "SGD")
    words = f"{name} of Keras 3 restores", "checkpoints.restore("
    refused(("convert", source, tmp_path / "new", "--to", "keras3"), *words)


@pytest.mark.parametrize("pattern", ["2.2.3/keras_experimental.*", "2.15.1/keras_final.*"])
def test_keras_models_are_refused(pattern, refused, tmp_path):
    source = recorded_files.file_of(pattern + "/model_dyn_checkpoint")
    refused(("convert", source, tmp_path / "new", "--to", "keras3"), "of a Keras model", "restore(")


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_slots_of_centered_rmsprop_are_refused(kind, refused, tmp_path):
    _, _, source = written(Program(kind, "RMSprop", {"centered": True}), tmp_path / "old")
    refused(("convert", source, tmp_path / "new", "--to", "keras3"), "RMSprop of Keras 3 restores")


@pytest.mark.skipif(
    not str(getattr(__import__("keras"), "__version__", "")).startswith("3.15."),
    reason="only this version is known to lose them",
)
@pytest.mark.parametrize("built", [False, True])
def test_keras_3_loses_slots_that_are_only_in_their_list(built, tmp_path):
    """Such as those of SGD, if it restores them before it creates them."""
    resumed, optimizer = variables(), own_class("SGD", learning_rate=0.0625, momentum=0.5)
    slots = [tf.ones_like(variable) for variable in resumed]
    stored = tf.train.Checkpoint(momentums=[tf.Variable(slot) for slot in slots])
    wrapped = tf.train.Checkpoint(inner_optimizer=stored)
    path = tf.train.Checkpoint(opt=wrapped, v=resumed).save(str(tmp_path / "c"))
    if built:
        optimizer.build(resumed)
    tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    if not built:
        optimizer.build(resumed)
    found = [bool(np.any(slot.numpy())) for slot in optimizer.inner_optimizer.momentums]
    assert found == [built] * len(slots)


@WITH_TF_KERAS
def test_a_new_style_optimizer_has_the_order_in_which_it_was_built(converted, tmp_path):
    """Its variables have one shape, so that nothing but the order shows which slot is whose."""
    trained = [tf.Variable([float(number)]) for number in range(3)]
    subject = ORIGINALS["new"]
    original = subject.dynamic(subject.inner("Adam", learning_rate=0.0625), 64.0, 3)
    step(original, trained[::-1], 1.0)
    source = tf.train.Checkpoint(opt=original, v=trained).save(str(tmp_path / "c"))
    path, _ = converted(source)
    resumed = [tf.Variable([0.0]) for _ in trained]
    optimizer = own_class("Adam", learning_rate=0.0625)
    optimizer.build(resumed[::-1])
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    status.assert_existing_objects_matched()
    step(original, trained[::-1], 1.0)
    step_of_keras_3(optimizer, resumed[::-1], 1.0)
    for left, right in zip(resumed, trained):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)


@WITH_TF_KERAS
def test_plain_sgd_has_no_slots_whose_order_could_differ(converted, tmp_path):
    path, _ = converted(saved_twice(tmp_path, [[2], [2]], "SGD", learning_rate=0.125))
    optimizer, resumed = own_class("SGD"), [tf.Variable([0.0, 0.0]), tf.Variable([0.0, 0.0])]
    optimizer.build(resumed)
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    status.assert_existing_objects_matched()
    assert int(optimizer.inner_optimizer.iterations.numpy()) == 1
    assert float(optimizer.inner_optimizer.learning_rate.numpy()) == 0.125
