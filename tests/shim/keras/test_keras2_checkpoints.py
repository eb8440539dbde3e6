"""Checkpoints of Keras 2 optimizers restore into our class on Keras 3, which continues as they did.

The files are those of the real classes in `tests/data/fixtures`, of TensorFlow 1.15 to 2.21, and
those that tf_keras writes here, where it is installed.
"""

import os
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np
import processes
import pytest
import recorded
import tensorflow as tf
from recorded_files import FIXTURES
from test_recorded_checkpoints import LAYOUTS, expected_of, folders

import tf_lossscale as tfls

KINDS = {kind.name: kind for kind in recorded.kinds()}
IS_TRACKABLE = "keras3" in KINDS and recorded.is_trackable(KINDS["keras3"])
pytestmark = pytest.mark.skipif(
    not IS_TRACKABLE, reason="checkpoints have optimizers of Keras 2, and of Keras 3.1 and later"
)
OURS = tfls.keras.mixed_precision.LossScaleOptimizer
RECORDED_OPTIMIZERS = {
    "sgd": ("SGD", {"learning_rate": 0.125}),
    "momentum": ("SGD", {"learning_rate": 0.125, "momentum": 0.5}),
    "adam": ("Adam", {"learning_rate": 0.125}),
}
BUILT = pytest.mark.parametrize("built", [False, True], ids=["deferred", "built"])


def on_keras_3(name: str, **options: Any) -> Any:
    inner = getattr(KINDS["keras3"].optimizers, name)(**options)
    return OURS(inner, initial_scale=2.0, dynamic_growth_steps=3)


def step(optimizer: Any, variables: List[Any], factor: float):
    """A step of Keras 2 with several variables, whose gradients are not the same."""
    with tf.GradientTape() as tape:
        losses = [tf.reduce_sum(variable**2 + variable) for variable in variables]
        loss = optimizer.get_scaled_loss(tf.add_n(losses) * factor)
    gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, variables))
    optimizer.apply_gradients(zip(gradients, variables))


def state(optimizer: Any, variables: List[Any]) -> Dict[str, Any]:
    return {
        "weights": [variable.numpy().tolist() for variable in variables],
        "scale": float(optimizer.loss_scale),
        "iterations": int(optimizer.iterations.numpy()),
    }


# What TensorFlow 1.15 to 2.21 wrote.


@pytest.mark.sampled(2, each="name")
@BUILT
@pytest.mark.parametrize("name", sorted(RECORDED_OPTIMIZERS))
@pytest.mark.parametrize("layout", ["A", "B", "C"])
def test_recorded_files_go_on(layout: str, name: str, built: bool):
    for folder in folders(layout, "dynamic_" + name):
        expected = expected_of(folder)
        variable = tf.Variable([0.0, 0.0, 0.0])
        kind, options = RECORDED_OPTIMIZERS[name]
        optimizer = on_keras_3(kind, **options)
        if built:
            optimizer.build([variable])
        path = os.path.join(FIXTURES, folder, expected["checkpoint_prefix"])
        status = tf.train.Checkpoint(opt=optimizer, v=variable).restore(path)
        at_save = expected["state_at_save"]
        assert variable.numpy().tolist() == at_save["v"], folder
        assert float(optimizer.loss_scale) == at_save["loss_scale"], folder
        assert int(optimizer.dynamic_counter.numpy()) == at_save["good_steps"], folder
        assert int(optimizer.iterations.numpy()) == at_save["iterations"], folder
        status.assert_existing_objects_matched()
        go_on(optimizer, variable, expected, name)
        status.assert_consumed()


def go_on(optimizer: Any, variable: Any, expected: Dict[str, Any], name: str):
    """Takes the steps that followed the save.

    A skipped step of Keras 3 advances `iterations`, which changes what Adam does after it.
    """
    multipliers = expected.get("multipliers_used", [[], expected["multipliers_after_save"]])[1]
    tolerance = 2.0**-20 if name == "adam" else 0.0
    for multiplier, after in zip(multipliers, expected["trace_after_save"]):
        with tf.GradientTape() as tape:
            loss = optimizer.get_scaled_loss(tf.reduce_sum(variable * np.float32(multiplier)))
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, [variable]))
        optimizer.apply_gradients(zip(gradients, [variable]))
        skipped = not np.isfinite(float(multiplier))
        np.testing.assert_allclose(variable.numpy(), after["v"], rtol=0, atol=tolerance)
        assert float(optimizer.loss_scale) == after["loss_scale"]
        if skipped and name == "adam":
            return


@pytest.mark.parametrize("layout", ["A", "B", "C"])
def test_kerass_own_class_restores_nothing_or_fails(layout: str):
    original = recorded.Subject(KINDS["keras3"], "keras3", "original")
    for folder in folders(layout, "dynamic_adam"):
        optimizer = original.dynamic(original.inner("Adam"), 2.0, 3)
        variable = tf.Variable([0.0, 0.0, 0.0])
        optimizer.build([variable])
        path = os.path.join(FIXTURES, folder, expected_of(folder)["checkpoint_prefix"])
        checkpoint = tf.train.Checkpoint(opt=optimizer, v=variable)
        if layout == "C":
            with pytest.raises(tf.errors.InvalidArgumentError, match="RestoreV2"):
                checkpoint.restore(path)
        else:
            checkpoint.restore(path).assert_nontrivial_match()
            assert np.any(variable.numpy()), "the weights are restored"
            assert original.read(optimizer)[::2] == (2.0, 0), folder


# What tf_keras writes, with every optimizer.


class Program(NamedTuple):
    """An optimizer of Keras 2, and the one of Keras 3 that continues its run."""

    kind: str
    name: str
    options: Dict[str, Any]

    @property
    def skips(self) -> bool:
        """Returns whether the runs have infinities.

        After a skipped step, Nadam of tf_keras multiplies its product once per variable: it
        counts its steps in Python, and compares the number with `iterations`.
        """
        return self.name != "Nadam"

    @property
    def tolerance(self) -> float:
        """The relative difference that rounding makes: centered RMSprop subtracts large numbers."""
        return 2e-4 if self.options.get("centered") else 1e-5

    def __str__(self) -> str:
        return "-".join([self.kind, self.name, *self.options])


OPTIONS = [
    ("Adam", {}),
    ("Adam", {"amsgrad": True}),
    ("Adamax", {}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.5}),
    ("SGD", {"momentum": 0.5, "nesterov": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.5}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Adagrad", {}),
    ("Adadelta", {}),
    ("Ftrl", {}),
]
PROGRAMS = [Program(kind, *option) for kind in ("legacy", "new") for option in OPTIONS]
PROGRAMS += [Program("new", "Nadam", {}), Program("new", "AdamW", {"weight_decay": 0.01})]
PROGRAMS += [Program("new", "Lion", {})]
ORIGINALS = {
    (subject.kind.name): subject for subject in recorded.originals() if subject.api == "final"
}
WITH_TF_KERAS = pytest.mark.skipif("legacy" not in ORIGINALS, reason="tf_keras is not installed")


def variables() -> List[Any]:
    return [tf.Variable([1.0, 2.0]), tf.Variable([[3.0]]), tf.Variable(0.5)]


def written(program: Program, folder: Any) -> Any:
    """A run of tf_keras's class up to its checkpoint: optimizer, variables and path."""
    return written_with(program, 0.0625, folder)


def written_with(program: Program, learning_rate: Any, folder: Any) -> Any:
    subject = ORIGINALS[program.kind]
    cls = getattr(subject.kind.optimizers, program.name)
    optimizer = subject.dynamic(cls(learning_rate=learning_rate, **program.options), 64.0, 3)
    trained = variables()
    for factor in (1.0, 2.0, float("inf"), 1.0, 1.0):
        if program.skips or np.isfinite(factor):
            step(optimizer, trained, factor)
    path = tf.train.Checkpoint(opt=optimizer, v=trained).save(os.path.join(str(folder), "c"))
    return optimizer, trained, path


@pytest.mark.sampled(6)
@WITH_TF_KERAS
@BUILT
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_every_optimizer_goes_on(program: Program, built: bool, tmp_path: Any):
    original, trained, path = written(program, tmp_path)
    resumed = variables()
    optimizer = on_keras_3(program.name, learning_rate=0.0625, **program.options)
    if built:
        optimizer.build(resumed)
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    status.assert_existing_objects_matched()
    for factor in (1.0, 2.0, 1.0, float("inf"), 0.5) * 2:
        if not program.skips and not np.isfinite(factor):
            continue
        step(original, trained, factor)
        step(optimizer, resumed, factor)
        expected, found = state(original, trained), state(optimizer, resumed)
        assert (found["scale"], found["iterations"]) == (expected["scale"], expected["iterations"])
        for left, right in zip(found["weights"], expected["weights"]):
            np.testing.assert_allclose(left, right, rtol=program.tolerance)
    status.assert_consumed()


@WITH_TF_KERAS
def test_variables_that_come_later_are_restored_when_they_come(tmp_path: Any):
    program = Program("legacy", "Adam", {})
    original, trained, path = written(program, tmp_path)
    optimizer = on_keras_3("Adam", learning_rate=0.0625)
    module = tf.train.Checkpoint(opt=optimizer)
    module.restore(path)
    resumed = variables()
    module.v = resumed
    for factor in (1.0, 2.0):
        step(original, trained, factor)
        step(optimizer, resumed, factor)
    assert state(optimizer, resumed) == state(original, trained)


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_an_optimizer_without_the_slots_is_an_error(kind: str, tmp_path: Any):
    _, _, path = written(Program(kind, "SGD", {"momentum": 0.5}), tmp_path)
    resumed = variables()
    optimizer = on_keras_3("Adagrad", learning_rate=0.0625)
    optimizer.build(resumed)
    with pytest.raises(ValueError, match=r"momentum.*Adagrad of Keras 3"):
        tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)


# The class, the options in the file, and the kinds that have slots for them.
OTHER_OPTIONS = [
    ("Adam", {"amsgrad": True}, ["legacy", "new"]),
    ("RMSprop", {"centered": True}, ["legacy", "new"]),
    ("RMSprop", {"momentum": 0.5}, ["new"]),  # legacy: the file has the option itself, too
]


@WITH_TF_KERAS
@BUILT
@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [(name, options, kind) for name, options, kinds in OTHER_OPTIONS for kind in kinds],
)
def test_slots_of_an_option_that_is_not_set_are_an_error(
    name: str, options: Dict[str, Any], kind: str, built: bool, tmp_path: Any
):
    _, _, path = written(Program(kind, name, options), tmp_path)
    resumed, optimizer = variables(), on_keras_3(name, learning_rate=0.0625)
    if built:
        optimizer.build(resumed)

    def go_on():
        tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
        step(optimizer, resumed, 1.0)

    with pytest.raises(ValueError, match=f"{name} of Keras 3 (does not have|has no such slot)"):
        go_on()


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_an_option_of_the_program_begins_with_new_slots(kind: str, tmp_path: Any):
    """As on Keras 2, where `restore` raises no error, either; `checkpoints.restore` does."""
    _, trained, path = written(Program(kind, "Adam", {}), tmp_path)
    rate = {"learning_rate": 0.0625, "amsgrad": True}
    subject, resumed = ORIGINALS[kind], variables()
    original, optimizer = subject.dynamic(subject.inner("Adam", **rate)), on_keras_3("Adam", **rate)
    for restored, own in ((original, trained), (optimizer, resumed)):
        tf.train.Checkpoint(opt=restored, v=own).restore(path).expect_partial()
        step(restored, own, 1.0)
    for left, right in zip(resumed, trained):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)
    with pytest.raises(tfls.checkpoints.RestoreError, match="no value for vhat"):
        tfls.checkpoints.restore(path, tf.train.Checkpoint(opt=optimizer, v=resumed))


@WITH_TF_KERAS
def test_new_style_files_do_not_show_whether_sgd_has_a_momentum(tmp_path: Any):
    keys = []
    for options in ({}, {"momentum": 0.5}):
        _, _, path = written(Program("new", "SGD", options), tmp_path)
        keys.append(tf.train.list_variables(path))
    assert keys[0] == keys[1]


# Optimizers whose slots have the names, or the lists, of those of another class.
OTHER_CLASSES = [
    ("legacy", "Adam", ["RMSprop", "Nadam", "SGD", "Adamax", "AdamW"]),
    ("legacy", "Adamax", ["Adam", "AdamW"]),
    ("legacy", "SGD", ["RMSprop", "Adam", "Ftrl"]),
    ("legacy", "RMSprop", ["Adam", "Adamax", "SGD"]),
    ("legacy", "Adagrad", ["Ftrl", "Adadelta"]),
    ("new", "Adam", ["RMSprop", "Nadam", "Adamax", "SGD", "Lion"]),
    ("new", "RMSprop", ["Adam", "AdamW", "Nadam"]),
    ("new", "SGD", ["Adam", "RMSprop"]),
    ("new", "Adagrad", ["Ftrl", "Adadelta"]),
    ("new", "Nadam", ["Adam", "RMSprop"]),
]


@pytest.mark.sampled(4)
@WITH_TF_KERAS
@BUILT
@pytest.mark.parametrize(("kind", "name", "others"), OTHER_CLASSES)
def test_a_file_of_another_class_is_an_error(
    kind: str, name: str, others: List[str], built: bool, tmp_path: Any
):
    options = {"momentum": 0.5} if name == "SGD" else {}
    _, _, path = written(Program(kind, name, options), tmp_path)

    def go_on_with(other: str):
        resumed = variables()
        optimizer = on_keras_3(other, learning_rate=0.0625)
        if built:
            optimizer.build(resumed)
        tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
        step(optimizer, resumed, 1.0)

    for other in others:
        with pytest.raises((ValueError, RuntimeError), match="checkpoint"):
            go_on_with(other)


# Whether a file names the class: the program gives no other name, and `build` was not called.
@WITH_TF_KERAS
@pytest.mark.parametrize(
    ("kind", "name", "given", "alike"),
    [
        ("legacy", "Adam", None, ""),
        ("legacy", "Adam", "mine", "Adam or AdamW or Adamax"),
        ("legacy", "Adamax", "mine", "Adam or AdamW or Adamax"),
        ("legacy", "SGD", "mine", ""),
        ("new", "Adam", None, "Adam or AdamW"),
        ("new", "AdamW", None, "Adam or AdamW"),
        ("new", "SGD", None, "SGD or Lion"),
        ("new", "Adamax", None, ""),
    ],
)
def test_a_class_that_the_file_does_not_name_is_logged(
    kind: str, name: str, given: Optional[str], alike: str, tmp_path: Any, log: List[str]
):
    options = {"momentum": 0.5} if name == "SGD" else {}
    named = {} if given is None else {"name": given}
    _, _, path = written(Program(kind, name, {**options, **named}), tmp_path)
    resumed = variables()
    optimizer = on_keras_3(name, learning_rate=0.0625, **options)
    tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    step(optimizer, resumed, 1.0)
    step(optimizer, resumed, 1.0)
    found = [message for message in log if "does not say whether" in message]
    assert len(found) == bool(alike)
    assert f"does not say whether {alike} wrote it" in "".join(found) or not alike


@WITH_TF_KERAS
def test_a_bare_optimizer_of_the_later_kind_names_its_class(tmp_path: Any):
    original = ORIGINALS["new"].inner("AdamW", learning_rate=0.0625)
    trained = variables()
    original.apply_gradients([(tf.ones_like(variable), variable) for variable in trained])
    path = tf.train.Checkpoint(opt=original, v=trained).save(os.path.join(str(tmp_path), "c"))
    resumed, optimizer = variables(), on_keras_3("Adam", learning_rate=0.0625)
    tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    with pytest.raises(ValueError, match=r"saved with the optimizer adamw, .* program has Adam\."):
        step(optimizer, resumed, 1.0)


@WITH_TF_KERAS
def test_a_variable_with_the_name_of_a_class_is_no_class(tmp_path: Any):
    subject = ORIGINALS["legacy"]
    original = subject.dynamic(subject.kind.optimizers.Adam(name="mine"), 64.0, 3)
    trained = [tf.Variable([1.0, 2.0], name="sgd/kernel")]
    step(original, trained, 1.0)
    path = tf.train.Checkpoint(opt=original, v=trained).save(os.path.join(str(tmp_path), "c"))
    resumed, optimizer = [tf.Variable([0.0, 0.0])], on_keras_3("Adam")
    tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    step(original, trained, 1.0)
    step(optimizer, resumed, 1.0)
    assert state(optimizer, resumed) == state(original, trained)


@WITH_TF_KERAS
def test_a_hyperparameter_without_a_counterpart_is_an_error(tmp_path: Any):
    """Nadam of Keras 3, and of TensorFlow 2.11, has another schedule of its momentum."""
    _, _, path = written(Program("legacy", "Nadam", {}), tmp_path)
    optimizer = on_keras_3("Nadam", learning_rate=0.0625)
    with pytest.raises(
        ValueError, match=r"has decay=0\.004.* which Nadam of Keras 3 does not have"
    ):
        tf.train.Checkpoint(opt=optimizer, v=variables()).restore(path)
    _, _, path = written(Program("legacy", "SGD", {"decay": 0.5}), tmp_path)
    optimizer = on_keras_3("SGD", learning_rate=0.0625)
    with pytest.raises(ValueError, match=r"has decay=0\.5.* which SGD of Keras 3 does not have"):
        tf.train.Checkpoint(opt=optimizer, v=variables()).restore(path)


@WITH_TF_KERAS
def test_hyperparameters_are_restored(tmp_path: Any):
    _, _, path = written(Program("legacy", "Adam", {"beta_1": 0.5}), tmp_path)
    optimizer = on_keras_3("Adam", learning_rate=0.25)
    tf.train.Checkpoint(opt=optimizer, v=variables()).restore(
        path
    ).assert_existing_objects_matched()
    assert (optimizer.inner_optimizer.beta_1, float(optimizer.learning_rate)) == (0.5, 0.0625)


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
@pytest.mark.parametrize("partial", [False, True], ids=["", "expect_partial"])
def test_slots_that_reach_no_variable_are_an_error(kind: str, partial: bool, tmp_path: Any):
    """A Keras 3 model's variables have other names: nothing of the weights is restored."""
    _, _, path = written(Program(kind, "Adam", {}), tmp_path)
    resumed = variables()
    optimizer = on_keras_3("Adam", learning_rate=0.0625)
    status = tf.train.Checkpoint(opt=optimizer, other=resumed).restore(path)
    if partial:
        status.expect_partial()
    with pytest.raises(RuntimeError, match="only a part of it"):
        step(optimizer, resumed, 1.0)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_fixed_scale_stays_as_it_is(layout: str):
    folder = folders(layout, "dynamic_momentum")[-1]
    expected = expected_of(folder)
    variable = tf.Variable([0.0, 0.0, 0.0])
    inner = KINDS["keras3"].optimizers.SGD(0.125, momentum=0.5)
    optimizer = OURS(inner, dynamic=False, initial_scale=8.0)
    path = os.path.join(FIXTURES, folder, expected["checkpoint_prefix"])
    tf.train.Checkpoint(opt=optimizer, v=variable).restore(path).expect_partial()
    assert float(optimizer.loss_scale) == 8.0
    assert int(optimizer.iterations.numpy()) == expected["state_at_save"]["iterations"]


@WITH_TF_KERAS
def test_a_fixed_scale_has_no_value_in_files(tmp_path: Any):
    subject = ORIGINALS["legacy"]
    original, trained = subject.fixed(subject.inner("Adam", learning_rate=0.0625), 8.0), variables()
    step(original, trained, 1.0)
    path = tf.train.Checkpoint(opt=original, v=trained).save(os.path.join(str(tmp_path), "c"))
    resumed = variables()
    inner = KINDS["keras3"].optimizers.Adam(0.0625)
    optimizer = OURS(inner, dynamic=False, initial_scale=8.0)
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    status.assert_existing_objects_matched()
    step(original, trained, 1.0)
    step(optimizer, resumed, 1.0)
    assert state(optimizer, resumed) == state(original, trained)


@WITH_TF_KERAS
@BUILT
def test_a_file_may_have_several_optimizers(built: bool, tmp_path: Any):
    subject = ORIGINALS["legacy"]
    originals = [subject.dynamic(subject.inner(name), 64.0, 3) for name in ("Adam", "RMSprop")]
    trained = [variables(), variables()]
    for original, own in zip(originals, trained):
        step(original, own, 1.0)
    path = tf.train.Checkpoint(opt=originals, v=trained).save(os.path.join(str(tmp_path), "c"))
    resumed = [variables(), variables()]
    optimizers = [on_keras_3("Adam"), on_keras_3("RMSprop")]
    for optimizer, own in zip(optimizers, resumed):
        if built:
            optimizer.build(own)
    status = tf.train.Checkpoint(opt=optimizers, v=resumed).restore(path)
    status.assert_existing_objects_matched()
    for original, own, optimizer, found in zip(originals, trained, optimizers, resumed):
        step(original, own, 1.0)
        step(optimizer, found, 1.0)
        for left, right in zip(found, own):
            np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)
    status.assert_consumed()


def scheduled(kind: str) -> Any:
    return KINDS[kind].keras.optimizers.schedules.ExponentialDecay(0.0625, 2, 0.5)


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_a_schedule_goes_on(kind: str, tmp_path: Any):
    program = Program(kind, "Adam", {})
    original, trained, path = written_with(program, scheduled(kind), tmp_path)
    resumed = variables()
    optimizer = on_keras_3("Adam", learning_rate=scheduled("keras3"))
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path)
    status.assert_existing_objects_matched()
    for factor in (1.0, 2.0, 1.0):
        step(original, trained, factor)
        step(optimizer, resumed, factor)
        for left, right in zip(resumed, trained):
            np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)
    status.assert_consumed()


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_the_program_may_change_to_a_schedule_or_back(kind: str, tmp_path: Any):
    """As on Keras 2, the learning rate of the program counts then."""
    rates = {"constant": lambda kind: 0.25, "schedule": scheduled}
    for before, after in (("constant", "schedule"), ("schedule", "constant")):
        program = Program(kind, "Adam", {})
        _, trained, path = written_with(program, rates[before](kind), tmp_path)
        subject = ORIGINALS[kind]
        original = subject.dynamic(subject.inner("Adam", learning_rate=rates[after](kind)), 64.0, 3)
        optimizer, resumed = on_keras_3("Adam", learning_rate=rates[after]("keras3")), variables()
        for restored, own in ((original, trained), (optimizer, resumed)):
            tf.train.Checkpoint(opt=restored, v=own).restore(path).expect_partial()
            step(restored, own, 1.0)
        for left, right in zip(resumed, trained):
            np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_slots_that_wait_for_build_cannot_be_lost_by_saving(kind: str, tmp_path: Any):
    """On Keras 2, they exist as soon as they are restored, and are saved again."""
    original, trained, path = written(Program(kind, "Adam", {}), tmp_path)
    resumed, optimizer = variables(), on_keras_3("Adam", learning_rate=0.0625)
    checkpoint = tf.train.Checkpoint(opt=optimizer, v=resumed)
    checkpoint.restore(path).assert_existing_objects_matched()
    again = os.path.join(str(tmp_path), "again")
    with pytest.raises(RuntimeError, match="lack its slots"):
        checkpoint.save(again)
    with pytest.raises(RuntimeError, match="lack its slots"):
        optimizer.save_own_variables({})
    optimizer.build(resumed)
    saved = checkpoint.save(again)
    stepped, other = variables(), on_keras_3("Adam", learning_rate=0.0625)
    checkpoint = tf.train.Checkpoint(opt=other, v=stepped)
    checkpoint.restore(path)
    step(other, stepped, 1.0)
    checkpoint.save(again)
    resumed, optimizer = variables(), on_keras_3("Adam", learning_rate=0.0625)
    tf.train.Checkpoint(opt=optimizer, v=resumed).restore(saved).assert_existing_objects_matched()
    step(original, trained, 1.0)
    step(optimizer, resumed, 1.0)
    for left, right in zip(resumed, trained):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)


@WITH_TF_KERAS
def test_slots_that_wait_for_the_first_step_are_those_of_all_replicas(tmp_path: Any):
    """TensorFlow restores them on the first replica only, and the weights would differ."""
    expected = {}
    for kind in ("legacy", "new"):
        original, trained, path = written(Program(kind, "Adam", {}), tmp_path / kind)
        original.apply_gradients([(tf.ones_like(variable) * 2.0, variable) for variable in trained])
        expected[path] = slots_of(original, trained)
    found = processes.run_program("keras/programs/restored_on_replicas.py", *expected)
    assert found.pop("set_weights")[0]
    for path, (is_equal, slot) in found.items():
        assert is_equal
        np.testing.assert_allclose(slot, expected[path], rtol=1e-5)


def slots_of(original: Any, trained: List[Any]) -> Any:
    inner = original.inner_optimizer
    is_legacy = hasattr(inner, "get_slot")
    return (inner.get_slot(trained[0], "m") if is_legacy else inner._momentums[0]).numpy().tolist()


# Models, of which Keras 3 names the variables in another way.


def model_of(keras: Any) -> Any:
    keras.utils.set_random_seed(0)
    inputs = keras.Input([4])
    hidden = keras.layers.Dense(5, activation="tanh", name="hidden")(inputs)
    hidden = keras.layers.BatchNormalization(name="norm")(hidden)
    hidden = keras.layers.Dropout(0.0)(hidden)
    return keras.Model(inputs, keras.layers.Dense(2, dtype="float32", name="head")(hidden))


def as_lists(model: Any, optimizer: Any) -> Any:
    """The checkpoint of docs/checkpoints.md, which has the same keys on each Keras."""
    return tf.train.Checkpoint(
        optimizer=optimizer,
        trainable=model.trainable_weights,
        not_trainable=model.non_trainable_weights,
    )


def train(model: Any, optimizer: Any, steps: int) -> List[float]:
    values = np.random.default_rng(1).normal(size=[8, 4]).astype("float32")
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(values, training=True) ** 2)
            scaled = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled, model.trainable_variables)
        unscaled = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(unscaled, model.trainable_variables))
        losses.append(float(loss))
    return losses


@pytest.mark.sampled(2, each="kind")
@WITH_TF_KERAS
@BUILT
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_models_go_on_from_lists_of_their_weights(kind: str, built: bool, tmp_path: Any):
    subject = ORIGINALS[kind]
    old = model_of(subject.kind.keras)
    old_optimizer = subject.dynamic(subject.inner("Adam", learning_rate=0.0625), 64.0, 3)
    train(old, old_optimizer, 5)
    path = as_lists(old, old_optimizer).save(os.path.join(str(tmp_path), "c"))
    new = model_of(KINDS["keras3"].keras)
    optimizer = on_keras_3("Adam", learning_rate=0.0625)
    if built:
        optimizer.build(new.trainable_variables)
    status = as_lists(new, optimizer).restore(path)
    status.assert_existing_objects_matched()
    expected = train(old, old_optimizer, 20)
    np.testing.assert_allclose(train(new, optimizer, 20), expected, rtol=1e-4)
    assert float(optimizer.loss_scale) == float(old_optimizer.loss_scale)
    status.assert_consumed()


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_the_names_of_a_model_are_an_error(kind: str, tmp_path: Any):
    """`restore` succeeds, and even `expect_partial` says nothing of the weights."""
    subject = ORIGINALS[kind]
    old = model_of(subject.kind.keras)
    old_optimizer = subject.dynamic(subject.inner("Adam", learning_rate=0.0625), 64.0, 3)
    train(old, old_optimizer, 5)
    checkpoint = tf.train.Checkpoint(model=old, optimizer=old_optimizer)
    path = checkpoint.save(os.path.join(str(tmp_path), "c"))
    new = model_of(KINDS["keras3"].keras)
    optimizer = on_keras_3("Adam", learning_rate=0.0625)
    before = [weight.numpy() for weight in new.weights]
    tf.train.Checkpoint(model=new, optimizer=optimizer).restore(path).expect_partial()
    for left, right in zip(before, new.weights):
        np.testing.assert_array_equal(left, right.numpy())
    with pytest.raises(RuntimeError, match="only a part of it"):
        train(new, optimizer, 1)


@WITH_TF_KERAS
def test_keras_itself_reports_at_most_a_shape(tmp_path: Any):
    """If its optimizer is built, new-style slots of other variables can have other shapes."""
    subject = ORIGINALS["new"]
    old, old_optimizer = model_of(subject.kind.keras), subject.kind.optimizers.Adam()
    train_without_scale(old, old_optimizer)
    path = tf.train.Checkpoint(model=old, optimizer=old_optimizer).save(str(tmp_path / "c"))
    new, optimizer = model_of(KINDS["keras3"].keras), KINDS["keras3"].optimizers.Adam()
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    train_without_scale(new, optimizer)
    with pytest.raises(ValueError, match="Received incompatible tensor with shape"):
        checkpoint.restore(path)


def train_without_scale(model: Any, optimizer: Any):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(np.ones([8, 4], "float32"), training=True) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(list(zip(gradients, model.trainable_variables)))


def subclassed(keras: Any) -> Any:
    """A model of which both Keras save the biases under the same names, but not the kernels."""

    class Subclassed(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = keras.layers.Dense(5)
            self.head = keras.layers.Dense(2)

        def call(self, inputs: Any, training: bool = False) -> Any:
            return self.head(self.hidden(inputs))

    return Subclassed()


class Models(NamedTuple):
    """A trained program of Keras 2 with its file, and that program on Keras 3."""

    old: Any
    old_optimizer: Any
    path: str
    new: Any
    optimizer: Any


def models(kind: str, name: str, made: Any, is_built: bool, folder: Any) -> Models:
    subject = ORIGINALS[kind]
    old = made(subject.kind.keras)
    old_optimizer = subject.dynamic(subject.inner(name, learning_rate=0.0625), 64.0, 3)
    train(old, old_optimizer, 2)
    path = tf.train.Checkpoint(model=old, optimizer=old_optimizer).save(str(folder / "c"))
    new = made(KINDS["keras3"].keras)
    new(np.zeros([1, 4], "float32"))
    optimizer = on_keras_3(name, learning_rate=0.0625)
    if is_built:
        optimizer.build(new.trainable_variables)
    return Models(old, old_optimizer, path, new, optimizer)


@pytest.mark.sampled(4)
@WITH_TF_KERAS
@BUILT
@pytest.mark.parametrize("made", [model_of, subclassed])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_weights_that_are_not_restored_are_an_error(
    kind: str, name: str, made: Any, built: bool, tmp_path: Any
):
    """SGD of `OptimizerV2` has no slots, which would show that weights are missing."""
    _, _, path, new, optimizer = models(kind, name, made, built, tmp_path)
    tf.train.Checkpoint(model=new, optimizer=optimizer).restore(path).expect_partial()
    with pytest.raises(RuntimeError, match=r"only a part of it.*kernel"):
        train(new, optimizer, 1)


@WITH_TF_KERAS
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_more_variables_than_in_the_file_are_no_error(kind: str, tmp_path: Any):
    original, trained, path = written(Program(kind, "SGD", {}), tmp_path)
    resumed, added = variables(), tf.Variable(2.0)
    optimizer = on_keras_3("SGD", learning_rate=0.0625)
    status = tf.train.Checkpoint(opt=optimizer, v=resumed).restore(path).expect_partial()
    step(original, trained, 1.0)
    step(optimizer, [*resumed, added], 1.0)
    for left, right in zip(resumed, trained):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-5)
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        status.assert_existing_objects_matched()
    subject, again = ORIGINALS[kind], variables()
    original = subject.dynamic(subject.inner("SGD", learning_rate=0.0625), 64.0, 3)
    status = tf.train.Checkpoint(opt=original, v=again).restore(path)
    step(original, [*again, added], 1.0)
    if kind == "legacy":  # new-style ones have a slot for each variable, which they never read
        status.assert_existing_objects_matched()


@WITH_TF_KERAS
@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("made", [model_of, subclassed])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("kind", ["legacy", "new"])
def test_weights_that_are_not_restored_cannot_be_lost_by_saving(
    kind: str, name: str, made: Any, is_built: bool, tmp_path: Any
):
    """A run that has reached its last step saves again, and a manager deletes the old file."""
    old, old_optimizer, path, new, optimizer = models(kind, name, made, is_built, tmp_path)
    checkpoint = tf.train.Checkpoint(model=new, optimizer=optimizer)
    checkpoint.restore(path).expect_partial()
    with pytest.raises(RuntimeError, match=r"only a part of it|lack its slots"):
        checkpoint.save(str(tmp_path / "again"))
    with pytest.raises(RuntimeError, match=r"only a part of it"):
        train(new, optimizer, 1)
    with pytest.raises(RuntimeError, match=r"only a part of it"):
        checkpoint.save(str(tmp_path / "again"))
    with pytest.raises(RuntimeError, match=r"only a part of it"):
        optimizer.save_own_variables({})
    tfls.checkpoints.restore(path, checkpoint)
    checkpoint.save(str(tmp_path / "again"))
    train(new, optimizer, 1)
    train(old, old_optimizer, 1)
    for left, right in zip(new.weights, old.weights):
        np.testing.assert_allclose(left.numpy(), right.numpy(), rtol=1e-4, atol=1e-6)
