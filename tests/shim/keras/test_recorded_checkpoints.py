"""Checkpoints written by the originals restore into our class, which continues as recorded.

`tests/data/fixtures` holds them, with the state at the save and the steps that followed. Keras has
had four layouts of a loss-scale optimizer in a checkpoint: A (TensorFlow up to 2.2), B (from 2.3
on, and legacy optimizers ever since), C (new-style optimizers) and Keras 3's. Each original that
is installed is put to the same tests on the layouts that it reads.
"""

import glob
import os
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
import recorded
import tensorflow as tf
from recorded_files import FIXTURES, facts, same_names

Recorded = Dict[str, Any]

LAYOUTS = {
    "A": ["1.15.5/keras_experimental.*", "2.2.3/keras_experimental.*"],
    "B": ["2.3.4/keras_*", "2.4.4/keras_*", "2.*/keras_final.*_legacy_inner"],
    "C": ["2.1?.1/keras_final.LossScaleOptimizer", "2.21.0/keras_final.LossScaleOptimizer"],
    "keras3": ["2.21.0/keras3.*"],
}
LAYOUT_OF_KIND = {"legacy": "B", "new": "C", "keras3": "keras3"}
# The originals that wrote the keys that our class must write: same optimizer, same layout.
OLD = recorded.TF < (2, 3)  # where the installed class reads nothing but layout A
WRITERS = {
    "legacy": "1.15.5/keras_experimental.LossScaleOptimizer"
    if OLD
    else "2.4.4/keras_final.LossScaleOptimizer",
    "new": "2.15.1/keras_final.LossScaleOptimizer",
    "keras3": "2.21.0/keras3.LossScaleOptimizer",
}
OPTIMIZERS = {
    "sgd": ("SGD", {"learning_rate": 0.125}),
    "momentum": ("SGD", {"learning_rate": 0.125, "momentum": 0.5}),
    "adam": ("Adam", {"learning_rate": 0.125}),
}
# Adam's last bits differ between versions; SGD and momentum have dyadic numbers here.
TOLERANCE = {"sgd": 0.0, "momentum": 0.0, "adam": 2.0**-20}


FILES = {  # the kind of the scale and the optimizer
    **{f"dynamic_{name}": ("dynamic", name) for name in OPTIMIZERS},
    "fixed8_adam": ("fixed", "adam"),
}


def folders(layout: str, file: str) -> List[str]:
    """The recordings of this name in one layout, relative to `tests/data/fixtures`."""
    patterns = [os.path.join(FIXTURES, pattern, file) for pattern in LAYOUTS[layout]]
    found = {path for pattern in patterns for path in glob.glob(pattern)}
    assert found
    return sorted(os.path.relpath(path, FIXTURES) for path in found)


def expected_of(folder: str) -> Recorded:
    expected = facts(os.path.join(FIXTURES, folder))
    expected["state_at_save"] = same_names(expected["state_at_save"])
    for key in ("trace_before_save", "trace_after_save"):
        expected[key] = [same_names(state) for state in expected[key]]
    return expected


class Training:
    """A variable, and a loss-scale optimizer or a bare one, as the recordings had them."""

    def __init__(
        self, subject: recorded.Subject, name: str, kind: str = "dynamic", value: Any = (0, 0, 0)
    ):
        self.subject = subject
        optimizer, arguments = OPTIMIZERS[name]
        self.name = name
        self.bare = kind == "bare"
        self.v = recorded.make_variable(subject.kind, np.array(value, np.float32), "v")
        self.optimizer = subject.inner(optimizer, **arguments)
        if kind == "dynamic":
            self.optimizer = subject.dynamic(self.optimizer, 64.0, 3)
        elif kind == "fixed":
            self.optimizer = subject.fixed(self.optimizer, 8.0)
        if hasattr(self.optimizer, "build"):
            self.optimizer.build([self.v])

    def checkpoint(self) -> Any:
        if self.subject.kind.name == "keras3":  # the variable is in `opt/_trainable_variables/0`
            return tf.train.Checkpoint(opt=self.optimizer)
        return tf.train.Checkpoint(opt=self.optimizer, v=self.v)

    def save(self, folder: Any) -> str:
        return str(self.checkpoint().save(os.path.join(str(folder), "ckpt")))

    def step(self, multiplier: float):
        """The recorder's step: the loss is `sum(v * multiplier)`."""
        watched = recorded.gradient_source(self.v)

        def loss() -> Any:
            return tf.reduce_sum(watched * np.float32(multiplier))

        if self.subject.kind.name != "keras3":
            self.optimizer.minimize(loss, [self.v])
            return
        with tf.GradientTape() as tape:
            scaled = loss()
            if not self.bare:
                scaled = self.optimizer.scale_loss(scaled)
        self.optimizer.apply([tape.gradient(scaled, watched)], [self.v])

    def state(self) -> Recorded:
        state: Recorded = {"v": self.v.numpy().tolist()}
        if self.bare:
            return dict(state, iterations=int(self.optimizer.iterations.numpy()))
        state["loss_scale"], state["good_steps"], state["iterations"] = self.subject.read(
            self.optimizer
        )
        return state

    def check(self, expected: Recorded, keys: Tuple[str, ...], where: str):
        state = self.state()
        where = f"{where}: {state} instead of {expected}"
        for key in keys:
            assert state[key] == expected.get(key), where
        np.testing.assert_allclose(
            state["v"], expected["v"], rtol=0, atol=TOLERANCE[self.name], err_msg=where
        )


STATE = ("loss_scale", "good_steps", "iterations")
OURS = recorded.ours()
SHARING = [subject for subject in OURS if subject not in recorded.with_own_step()]
READERS = OURS + [subject for subject in recorded.originals() if recorded.TF >= (2, 3)]


def of(subjects: List[recorded.Subject], *kinds: str) -> Any:
    found = [subject for subject in subjects if subject.kind.name in (kinds or LAYOUT_OF_KIND)]
    return pytest.mark.parametrize("subject", found, ids=str)


def restored(subject, folder: str, kind: str, name: str) -> Tuple[Training, Recorded, Any]:
    """A training that was restored from a recording, what was recorded, and the status."""
    expected = expected_of(folder)
    training = Training(subject, name, kind)
    path = os.path.join(FIXTURES, folder, expected["checkpoint_prefix"])
    return training, expected, training.checkpoint().restore(path)


def go_on(training: Training, expected: Recorded, keys: Tuple[str, ...], count: int = 9):
    """Takes the steps that followed the save; `count` is the most."""
    multipliers = expected.get("multipliers_used", [[], expected["multipliers_after_save"]])[1]
    for number, multiplier in list(enumerate(multipliers))[:count]:
        training.step(float(multiplier))
        training.check(expected["trace_after_save"][number], keys, f"step {number}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", FILES)
@of(READERS)
def test_its_own_layout_restores_and_goes_on(subject, file: str):
    kind, name = FILES[file]
    in_keras_3 = subject.kind.name == "keras3"
    if kind == "fixed" and in_keras_3:
        pytest.skip("Keras 3 has no fixed scale")
    for folder in folders(LAYOUT_OF_KIND[subject.kind.name], file):
        training, expected, status = restored(subject, folder, kind, name)
        training.check(expected["state_at_save"], STATE, folder)
        if kind == "dynamic":
            status.assert_existing_objects_matched()
        # The one difference from Keras 3: a skipped step advances `iterations`, which changes what
        # Adam does after it. Up to that step, and without Adam, everything is as recorded.
        differs = in_keras_3 and subject.api != "keras3"
        keys = STATE[:2] if differs else STATE
        go_on(training, expected, keys, 2 if differs and name == "adam" else 9)
        if kind == "dynamic" or not OLD:  # there the fixed scale is an object without a value
            status.assert_consumed()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("layout", ["A", "B"])
@of(READERS, "legacy", "new")
def test_a_file_of_another_layout_gives_weights_slots_and_scale(subject, layout: str, name: str):
    """That of TensorFlow up to 2.2, and for new-style optimizers those of legacy ones with SGD."""
    is_new = subject.kind.name == "new"
    if (is_new and name != "sgd") or (not is_new and layout == "B"):
        pytest.skip("its own layout is tested above; other optimizers lose their slots")
    for folder in folders(layout, "dynamic_" + name):
        training, expected, _ = restored(subject, folder, "dynamic", name)
        training.check(expected["state_at_save"], STATE[:2], folder)
        if name != "adam":  # up to 2.2 a skipped step did not advance what Adam counts by
            go_on(training, expected, STATE[:2])


@pytest.mark.skipif(OLD, reason="the installed class reads this layout itself")
@of(READERS, "legacy")
def test_only_ours_finds_iterations_and_learning_rate_of_another_layout(subject):
    expected = expected_of(folders("A", "dynamic_adam")[-1])
    training = Training(subject, "adam")
    training.optimizer.learning_rate = 0.5
    path = os.path.join(FIXTURES, folders("A", "dynamic_adam")[-1], expected["checkpoint_prefix"])
    training.checkpoint().restore(path).expect_partial()
    found = training.state()["iterations"], float(training.optimizer.learning_rate.numpy())
    restored_values = (expected["state_at_save"]["iterations"], 0.125)
    assert found == (restored_values if subject in OURS else (0, 0.5))


@of(READERS, "legacy", "new")
def test_a_file_of_a_dynamic_scale_leaves_a_fixed_one_as_it_is(subject):
    folder = folders(LAYOUT_OF_KIND[subject.kind.name], "dynamic_momentum")[-1]
    training, expected, status = restored(subject, folder, "fixed", "momentum")
    status.assert_existing_objects_matched()
    state = dict(expected["state_at_save"], loss_scale=8.0, good_steps=None)
    training.check(state, STATE, folder)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("file", FILES)
@of(OURS)
def test_ours_steps_and_writes_as_recorded(subject, file: str, tmp_path: Any):
    """The steps before the save, and the keys and shapes of the file: all of them (Q9)."""
    kind, name = FILES[file]
    if kind == "fixed" and subject.kind.name == "keras3":
        pytest.skip("Keras 3 has no fixed scale")
    expected = expected_of(f"{WRITERS[subject.kind.name]}/{file}")
    training = Training(subject, name, kind, expected["v0"])
    # As above, for the iterations; a fixed scale skips no step.
    keys = STATE[:2] if kind == "dynamic" and (OLD or subject.kind.name == "keras3") else STATE
    multipliers = expected.get("multipliers_used", [expected["multipliers_before_save"]])[0]
    for number, multiplier in enumerate(multipliers):
        training.step(float(multiplier))
        if name != "adam" or keys == STATE or number < 2:
            training.check(expected["trace_before_save"][number], keys, f"{file}, {number}")
    written = tf.train.list_variables(training.save(tmp_path))
    assert [[key, list(shape)] for key, shape in written] == expected["checkpoint_keys"]


def train(training: Training, count: int = 3) -> Recorded:
    for number in range(count):
        training.step(number + 1.0)
    return training.state()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@pytest.mark.parametrize("kinds", ["bare to wrapped", "wrapped to bare"])
@pytest.mark.parametrize(
    "subject", [reader for reader in READERS if reader not in SHARING], ids=str
)
def test_bare_and_wrapped_optimizers_read_each_other(subject, kinds: str, name: str, tmp_path: Any):
    """In two layouts they have other places, and one reads the other's inner optimizer."""
    one, other = ("bare", "dynamic") if kinds == "bare to wrapped" else ("dynamic", "bare")
    writer, reader = Training(subject, name, one, (1, 2, 3)), Training(subject, name, other)
    before = train(writer)
    if OLD or subject.kind.name == "keras3":
        innermost = [
            getattr(training.optimizer, "inner_optimizer", None) for training in (writer, reader)
        ]
        inner_writer, inner_reader = innermost
        with_v = [{"v": training.v} if OLD else {} for training in (writer, reader)]
        written = tf.train.Checkpoint(opt=inner_writer or writer.optimizer, **with_v[0])
        read = tf.train.Checkpoint(opt=inner_reader or reader.optimizer, **with_v[1])
        read.restore(written.save(str(tmp_path / "ckpt")))
    else:
        reader.checkpoint().restore(writer.save(tmp_path))
    reader.check(before, ("iterations",), kinds)
    train(reader)
    reader.check(train(writer), ("iterations",), kinds)


PAIRS = [
    pytest.param((mine, theirs), id=f"{mine}-{theirs}")
    for mine in OURS
    for theirs in recorded.originals()
    if theirs.kind == mine.kind
]


@pytest.mark.parametrize("pair", PAIRS)
def test_each_reads_the_others_checkpoint_of_the_inner_optimizer(pair: Any, tmp_path: Any):
    """From TensorFlow 2.3 on, the inner optimizer of Keras 2 has the loss scale, too."""
    apart = OLD or pair[0].kind.name == "keras3"
    for writer_of, reader_of in (pair, pair[::-1]):
        writer, reader = [
            Training(owner, "momentum", value=value)
            for owner, value in ((writer_of, (1, 2, 3)), (reader_of, (0, 0, 0)))
        ]
        before = train(writer, 4)
        file = checkpoint_of_inner(writer).save(str(tmp_path / str(writer_of)))
        checkpoint_of_inner(reader).restore(file)
        reader.check(before, STATE[2:] if apart else STATE, f"{writer_of}, {reader_of}")


def checkpoint_of_inner(training: Training) -> Any:
    optimizer = training.optimizer
    inner = getattr(optimizer, "inner_optimizer", None) or optimizer._optimizer
    if training.subject.kind.name == "keras3":
        return tf.train.Checkpoint(opt=inner)
    return tf.train.Checkpoint(opt=inner, v=training.v)
