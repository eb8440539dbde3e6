"""Hyperparameters that are set through the loss-scale optimizer, and their keys in checkpoints."""

from typing import Any, List

import numpy as np
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

PAIRS = [
    subject for subject in recorded.originals() if subject.kind.name != "keras3"
]  # Keras 3 cannot save an optimizer whose learning rate was replaced by a schedule
pairs = pytest.mark.parametrize("subject", PAIRS, ids=str)


def schedule(subject) -> Any:
    return subject.kind.keras.optimizers.schedules.InverseTimeDecay(0.5, 1, 0.5)


def step(subject, optimizer: Any, variable: Any) -> float:
    subject.step(optimizer, [variable], [tf.constant([1.0, 1.0])])
    return float(np.asarray(variable.numpy())[0])


def keys_and_weight(subject, when: str, name: str, folder: Any) -> Any:
    """The keys of a checkpoint and the weight, with a schedule, or a number, set at some time."""
    rate = schedule(subject) if when == "in the constructor" else 0.5
    optimizer = subject.dynamic(subject.inner("Adam", learning_rate=rate), 8.0, 2)
    variable = recorded.make_variable(subject.kind, [1.0, 2.0], "v")
    if when == "after a step":
        step(subject, optimizer, variable)
    if when != "in the constructor":
        setattr(optimizer, name, 0.25 if when == "a number" else schedule(subject))
    weight = None if when == "no step" else step(subject, optimizer, variable)
    path = tf.train.Checkpoint(opt=optimizer).save(str(folder / subject.who))
    return sorted(key for key, _ in tf.train.list_variables(path)), weight


WHEN = ("in the constructor", "before a step", "after a step", "a number", "no step")


@pytest.mark.parametrize("name", ["learning_rate", "lr"])
@pytest.mark.parametrize("when", WHEN)
@pairs
def test_a_learning_rate_has_the_keys_of_the_original(subject, when: str, name: str, tmp_path: Any):
    original = keys_and_weight(subject, when, name, tmp_path)
    assert keys_and_weight(subject.counterpart(), when, name, tmp_path) == original


def calls_when_set(subject, name: str, value: Any) -> List[str]:
    """What an `OptimizerV2` does when a hyperparameter is set through the loss-scale optimizer."""
    calls: List[str] = []
    cls = subject.kind.optimizers.SGD

    class Logging(cls):  # type: ignore[misc,valid-type]
        def _create_hypers(self):
            calls.append("create all")
            super()._create_hypers()

        def _set_hyper(self, name: str, value: Any):
            calls.append(f"set {name}")
            super()._set_hyper(name, value)

    optimizer = subject.dynamic(Logging(0.5), 8.0, 2)
    calls.clear()
    setattr(optimizer, name, value)
    return calls


# Up to 2.3, the original sets others on the loss-scale optimizer, where they do nothing (K8).
NAMES = ("learning_rate", "lr") + (("momentum", "decay") if recorded.TF >= (2, 4) else ())
LEGACY = [subject for subject in PAIRS if subject.kind.name == "legacy"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("subject", LEGACY, ids=str)
def test_variables_are_made_when_the_original_makes_them(subject, name: str):
    """In a graph, their names depend on it."""
    original = calls_when_set(subject, name, 0.25)
    assert calls_when_set(subject.counterpart(), name, 0.25) == original
    assert ("create all" in original) is (recorded.TF >= (2, 5) and name in ("learning_rate", "lr"))


def momentum_set(subject, value: float, compiled: bool, log: List[str]) -> Any:
    """Whether the last of three steps has momentum, and what is logged, if it is set before it."""
    optimizer = subject.dynamic(subject.inner("SGD", learning_rate=0.5, momentum=0.5), 8.0, 2)
    variable = recorded.make_variable(subject.kind, [1.0, 2.0], "v")
    gradient = tf.constant([1.0, 1.0])

    def body() -> None:
        subject.step(optimizer, [variable], [gradient])

    run = tf.function(body) if compiled else body
    run()
    run()
    before = np.asarray(variable.numpy())[0]
    del log[:]
    optimizer.momentum = value
    logged = [message for message in log if "momentum" in message]
    run()
    return bool(np.asarray(variable.numpy())[0] != before - 0.5), logged


OURS = recorded.ours()
WITH_BOTH_KERAS = pytest.mark.skipif(
    not {"legacy", "keras3"} <= {subject.kind.name for subject in OURS},
    reason="restores a file of a legacy optimizer on Keras 3: needs Keras 3 and tf_keras",
)


@pytest.mark.parametrize("subject", OURS, ids=str)
def test_a_hyperparameter_that_is_set_takes_effect_or_is_logged(subject, log: List[str]):
    """In a function that is traced already, the newer optimizers go on with the old number."""
    has_momentum, logged = momentum_set(subject, 0.0, compiled=True, log=log)
    assert has_momentum == bool(logged) == (subject.kind.name != "legacy")
    if logged:
        assert "was 0.5, and is 0.0 from now on. Functions that are traced already" in logged[0]


def of_both_keras() -> List[Any]:
    """Our classes around a legacy optimizer and one of Keras 3."""
    named = {subject.kind.name: subject for subject in reversed(OURS)}
    return [named["legacy"], named["keras3"]]


@WITH_BOTH_KERAS
@pytest.mark.parametrize("with_restore", [False, True], ids=["tensorflow", "restore"])
def test_one_that_is_restored_after_a_traced_step_is_logged(
    with_restore: bool, log: List[str], tmp_path: Any
):
    """Of the optimizers of Keras 2, it is a variable."""
    old, subject = of_both_keras()
    variable = recorded.make_variable(old.kind, [1.0, 2.0], "v")
    optimizer = old.dynamic(old.inner("Adam", beta_1=0.5), 8.0, 2)
    step(old, optimizer, variable)
    path = tf.train.Checkpoint(opt=optimizer, v=variable).save(str(tmp_path / "old"))
    variable = tf.Variable([1.0, 2.0])
    optimizer = subject.dynamic(subject.inner("Adam"), 8.0, 2)
    tf.function(lambda: subject.step(optimizer, [variable], [tf.constant([1.0, 1.0])]))()
    del log[:]
    checkpoint = tf.train.Checkpoint(opt=optimizer, v=variable)
    if with_restore:
        tfls.checkpoints.restore(path, checkpoint)
    else:
        checkpoint.restore(path)
    (logged,) = [message for message in log if "traced" in message]
    assert logged.startswith("beta_1 of Adam was 0.9, and is 0.5 from now on")
    assert optimizer.inner_optimizer.beta_1 == 0.5


@WITH_BOTH_KERAS
@pytest.mark.parametrize("is_ours", [False, True])
@pytest.mark.parametrize("beta_1", [0.5, 0.9])
def test_the_report_names_one_that_the_program_has_otherwise(
    beta_1: float, is_ours: bool, tmp_path: Any
):
    """The next checkpoint does not have it."""

    def with_scale(subject: Any, inner: Any) -> Any:
        return subject.dynamic(inner, 8.0, 2) if is_ours else inner

    old, new = of_both_keras()
    variable = recorded.make_variable(old.kind, [1.0, 2.0], "v")
    optimizer = with_scale(old, old.inner("Adam", beta_1=beta_1))
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), variable)])
    path = tf.train.Checkpoint(opt=optimizer, v=variable).save(str(tmp_path / "old"))
    inner = new.inner("Adam")
    checkpoint = tf.train.Checkpoint(opt=with_scale(new, inner), v=tf.Variable([1.0, 2.0]))
    report = tfls.checkpoints.restore(path, checkpoint)
    assert inner.beta_1 == pytest.approx(beta_1)
    expected = "beta_1 is 0.5 now, as in the file, and was 0.9: pass beta_1=0.5 to the optimizer"
    assert [expected in note for note in report.notes].count(True) == (beta_1 == 0.5)
    path = checkpoint.save(str(tmp_path / "new"))
    assert not [name for name, _ in tf.train.list_variables(path) if "beta" in name]


@pytest.mark.parametrize(("value", "compiled"), [(0.5, True), (0.0, False)])
@pytest.mark.parametrize("subject", OURS, ids=str)
def test_nothing_is_logged_otherwise(subject, value: float, compiled: bool, log: List[str]):
    has_momentum, logged = momentum_set(subject, value, compiled, log)
    assert (has_momentum, logged) == (value != 0.0, [])
