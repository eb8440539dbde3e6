"""Rows of `docs/known-differences.md` that need a few lines, of both classes side by side."""

import copy
import functools
import logging
import pickle
import threading
from typing import Any, Callable, Dict, List

import numpy as np
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
INF = float("inf")
SUBJECTS = recorded.originals() + recorded.ours()
LEGACY = [subject for subject in SUBJECTS if subject.kind.name == "legacy"]
KERAS_2 = [subject for subject in SUBJECTS if subject.kind.name != "keras3"]
KERAS_3 = [subject for subject in SUBJECTS if subject.kind.name == "keras3"]
KERAS_3_VERSION = tuple(
    int(part) for subject in KERAS_3[:1] for part in subject.kind.keras.__version__.split(".")[:2]
)
needs_keras_3 = pytest.mark.skipif(not KERAS_3, reason="there is no Keras 3")


def dynamic(subject: recorded.Subject, **options: Any) -> Any:
    return subject.dynamic(subject.inner("SGD", learning_rate=0.5, **options), 8.0, 1)


def trained(subject: recorded.Subject, **options: Any) -> Any:
    """An optimizer after one finite step, which has doubled the scale to 16."""
    optimizer = dynamic(subject, **options)
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    subject.step(optimizer, [variable], [tf.constant(1.0)])
    return optimizer


def minimize(optimizer: Any, variable: Any):
    optimizer.minimize(lambda: variable * 1.0, [variable])


def loop(optimizer: Any, variable: Any):
    optimizer.get_scaled_loss(variable * 1.0)
    unscaled = optimizer.get_unscaled_gradients([tf.constant(1.0)])
    optimizer.apply_gradients(zip(unscaled, [variable]))


def only_apply(optimizer: Any, variable: Any):
    """Of a gradient that is no constant: otherwise a conditional on it has one branch only."""
    optimizer.apply_gradients([(tf.random.uniform([]), variable)])


def iterations_of_two(subject: recorded.Subject, step: Callable[[Any, Any], None]) -> List[str]:
    """The names of the counters of two optimizers in a graph of TensorFlow 1."""
    with tf.Graph().as_default():
        variable = tf1.get_variable("v", initializer=1.0, use_resource=True)
        for _ in range(2):
            step(dynamic(subject), variable)
        names = [variable.op.name for variable in tf1.global_variables()]
    return sorted(name for name in names if "iter" in name)


@pytest.mark.parametrize("step", [minimize, loop, only_apply])
def test_variables_of_a_second_optimizer_in_a_graph_are_no_difference(step: Any):
    found = {str(subject): iterations_of_two(subject, step) for subject in LEGACY}
    assert all(len(set(names)) == 2 for names in found.values())
    assert len({tuple(names) for names in found.values()}) <= 1, found


def warnings_of_steps(subject: recorded.Subject) -> List[str]:
    """What TensorFlow logs while an optimizer applies gradients that nobody scaled."""
    found: List[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord):
            found.append(record.getMessage())

    handler, logger = Handler(), logging.getLogger("tensorflow")
    optimizer = dynamic(subject)
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    try:
        for _ in range(2):
            optimizer.apply_gradients([(tf.constant(1.0), variable)])
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return [line for line in found if "You forgot to call" in line]


def test_gradients_that_nobody_scaled():
    for subject in KERAS_2:
        warns = subject.who == "original" and recorded.TF >= (2, 9)
        assert len(warnings_of_steps(subject)) == (2 if warns else 0), str(subject)


def test_the_function_that_singledispatch_prefers():
    """Of one for the base `Optimizer` and one for the public class."""
    for subject in SUBJECTS:
        function = functools.singledispatch(lambda _: "object")
        function.register(subject.kind.optimizers.Optimizer, lambda _: "base")
        function.register(subject.cls, lambda _: "public")
        has_base = subject.who == "original" and subject in KERAS_2 and recorded.TF >= (2, 9)
        assert function(dynamic(subject)) == ("base" if has_base else "public"), str(subject)


def test_get_weights_of_keras_2_lacks_the_scale():
    for subject in LEGACY:
        if recorded.TF >= (2, 3):  # earlier originals have no weights (K4)
            assert len(trained(subject).get_weights()) == 1, str(subject)


@needs_keras_3
def test_get_weights_on_keras_3_has_the_scale():
    optimizer = trained(KERAS_3[-1])
    names = [variable.path.rpartition("/")[2] for variable in optimizer.variables]
    assert names[0] in ("iteration", "iterations")
    assert names[-4:-2] == ["dynamic_scale", "step_counter"]  # and then two that are not used
    for listed in (optimizer.variables(), optimizer.weights):
        assert [variable.path for variable in listed] == [v.path for v in optimizer.variables]
    weights = optimizer.get_weights()
    assert weights == [variable.numpy() for variable in optimizer.variables]
    assert 16.0 in weights
    optimizer.set_weights([32.0 if weight == 16.0 else weight for weight in weights])
    assert float(optimizer.loss_scale) == 32.0


@needs_keras_3
def test_a_sparse_gradient_with_a_row_that_is_listed_twice():
    for subject in KERAS_3:
        optimizer = dynamic(subject)
        variable = recorded.make_variable(subject.kind, np.ones([3, 1], "float32"), "v")
        optimizer.build([variable])
        optimizer.scale_loss(tf.constant(1.0))
        values, rows = tf.constant([[INF], [1.0]]), tf.constant([1, 1])
        optimizer.apply([tf.IndexedSlices(values, rows, tf.constant([3, 1]))], [variable])
        is_applied = not np.all(np.isfinite(variable.numpy()))
        assert is_applied is (subject.who == "original"), str(subject)


@needs_keras_3
def test_fewer_gradients_than_variables():
    for subject in KERAS_3:
        variables = [recorded.make_variable(subject.kind, 1.0, name) for name in "vw"]
        optimizer = dynamic(subject)
        optimizer.build(variables)
        optimizer.scale_loss(tf.constant(1.0))
        if subject.who == "ours":
            with pytest.raises(ValueError, match="gradient"):
                optimizer.apply([tf.constant(1.0)], variables)
        else:
            optimizer.apply([tf.constant(8.0)], variables)  # the second variable is left out
        expected = [1.0 if subject.who == "ours" else 0.5, 1.0]
        assert [float(variable.numpy()) for variable in variables] == expected


@needs_keras_3
def test_a_half_precision_loss_before_the_first_step():
    """Keras's class scales it in float32 from then on only."""
    for subject in KERAS_3:
        optimizer, loss = dynamic(subject), tf.constant(1.0, tf.float16)
        before = optimizer.scale_loss(loss).dtype
        optimizer.build([recorded.make_variable(subject.kind, 1.0, "v")])
        assert before == ("float16" if subject.who == "original" else "float32"), str(subject)
        assert optimizer.scale_loss(loss).dtype == "float32", str(subject)


@needs_keras_3
def test_a_step_at_a_scale_of_0():
    """Keras's class divides by it after it has tested the gradients."""
    optimizer, variable = dynamic(KERAS_3[0]), recorded.make_variable(KERAS_3[0].kind, 1.0, "v")
    optimizer.build([variable])
    optimizer.dynamic_scale.assign(0.0)
    KERAS_3[0].step(optimizer, [variable], [tf.constant(1.0)])
    assert np.isnan(variable.numpy())


@needs_keras_3
def test_the_first_of_the_variables():
    for subject in KERAS_3:
        optimizer = trained(subject)
        first, counter = optimizer.variables[0], optimizer.inner_optimizer.iterations
        assert int(counter.numpy()) == 1
        is_ours = subject.who == "ours"
        assert (first is counter, int(first.numpy())) == (is_ours, int(is_ours)), str(subject)
        assert callable(optimizer.variables) is is_ours, str(subject)
        own = [path.split("/")[-1] for path in paths(optimizer) if "loss_scale" in path]
        assert sorted(own) == ["dynamic_scale", "iteration", "learning_rate", "step_counter"]


def paths(optimizer: Any) -> List[str]:
    return [variable.path for variable in optimizer.variables]


@needs_keras_3
def test_an_override_of_apply_gradients():
    for subject in KERAS_3:
        calls: List[str] = []

        class Noting(subject.kind.optimizers.SGD):  # type: ignore[misc, name-defined]  # untyped base
            def apply_gradients(self, *args: Any, calls: List[str] = calls, **kwargs: Any) -> Any:
                calls.append("called")
                return super().apply_gradients(*args, **kwargs)

        optimizer = subject.dynamic(Noting(0.5), 8.0, 1)
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        subject.step(optimizer, [variable], [tf.constant(1.0)])
        assert float(variable.numpy()) == 0.5
        assert calls == ([] if subject.who == "original" else ["called"]), str(subject)


@needs_keras_3
def test_arguments_of_the_constructor():
    for subject in KERAS_3:
        if subject.api == "experimental":
            continue
        is_ours = subject.who == "ours"

        def make(*args: Any, subject: recorded.Subject = subject, **options: Any) -> Any:
            return subject.cls(subject.inner("SGD", learning_rate=0.5), *args, **options)

        assert make(True).initial_scale == (2.0**15 if is_ours else 1.0)
        assert make(name="mine").name == "mine"
        if is_ours:
            assert float(make(dynamic=False, initial_scale=8.0).loss_scale) == 8.0
        else:
            with pytest.raises(ValueError, match="dynamic=False"):
                make(dynamic=False, initial_scale=8.0)
        for options in ({"clipnorm": 1.0}, {"weight_decay": 0.5}):
            if not is_ours and KERAS_3_VERSION <= (3, 6):  # 3.15 refuses them
                make(**options)
            else:
                with pytest.raises(ValueError, match="does not support"):
                    make(**options)


@needs_keras_3
def test_weights_of_an_optimizer_that_is_not_built(tmp_path: Any):
    """Ours restores the slots, too, though Keras warns that it skips them."""
    keras = KERAS_3[0].kind.keras
    ones = np.ones((1, 1), "float32")
    for subject in KERAS_3:
        models = []
        for _ in range(2):
            dense = keras.layers.Dense(1, kernel_initializer="zeros")
            models.append(keras.Sequential([keras.layers.Input((1,)), dense]))
            models[-1].compile(dynamic(subject, momentum=0.5), "mse", run_eagerly=True)
        models[0].fit(ones, ones, verbose=0)
        models[0].save_weights(str(tmp_path / "m.weights.h5"))
        with pytest.warns(UserWarning, match="Skipping variable loading for optimizer '(?i:sgd)"):
            models[1].load_weights(str(tmp_path / "m.weights.h5"))
        for model in models:
            model.fit(ones, ones, verbose=0)
        first, second = (model.get_weights() for model in models)
        same = all(np.array_equal(*pair) for pair in zip(first, second))
        assert same is (subject.who == "ours"), str(subject)


@needs_keras_3
def test_a_second_build_adds_variables_to_files():
    for subject in KERAS_3:
        optimizer = trained(subject)
        first: Dict[str, Any] = {}
        optimizer.save_own_variables(first)
        optimizer.build([recorded.make_variable(subject.kind, 1.0, "v")])
        second: Dict[str, Any] = {}
        optimizer.save_own_variables(second)
        assert (len(second) > len(first)) is (subject.who == "original"), str(subject)


@needs_keras_3
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_have_no_slots(duplicate: Callable[[Any], Any]):
    for subject in KERAS_3:
        optimizer = trained(subject, momentum=0.5)
        copied = duplicate(optimizer)
        if subject.who == "original":
            with pytest.raises(AttributeError):
                subject.read(copied)
            continue
        assert subject.read(copied)[0] == 16.0
        assert any("momentum" in path for path in paths(optimizer))
        assert not any("momentum" in path for path in paths(copied))


@needs_keras_3
def test_names_of_a_second_optimizer():
    for subject in KERAS_3:
        subject.kind.keras.backend.clear_session()  # which numbers names again
        names = [trained(subject).name for _ in range(2)]
        number = "_1" if subject.who == "original" else ""
        assert names == ["loss_scale_optimizer", "loss_scale_optimizer" + number], str(subject)


@needs_keras_3
def test_name_scopes_in_the_path_of_the_scale():
    for subject in KERAS_3:
        with subject.kind.keras.name_scope("made"):
            optimizer = dynamic(subject)
        variable = recorded.make_variable(subject.kind, 1.0, "v")
        with subject.kind.keras.name_scope("stepped"):
            subject.step(optimizer, [variable], [tf.constant(1.0)])
        (path,) = [
            variable.path for variable in optimizer.variables if "dynamic_scale" in variable.path
        ]
        scope = "stepped" if subject.who == "original" else "made"
        assert path.startswith(f"{scope}/loss_scale_optimizer"), str(subject)


@needs_keras_3
def test_the_class_that_a_file_names():
    theirs, ours = KERAS_3[0], KERAS_3[-1]
    keras = ours.kind.keras
    modules = {}
    for subject in (theirs, ours):
        optimizer = dynamic(subject)
        written = keras.saving.serialize_keras_object(optimizer)
        modules[subject.who] = written["module"]
        again = theirs.cls.from_config(written["config"])
        assert again.initial_scale == 8.0
    assert modules["original"] == "keras.optimizers"
    assert modules["ours"].startswith("keras.src.optimizers.")


@needs_keras_3
def test_where_a_checkpoint_names_the_trained_variables(tmp_path: Any):
    for subject in KERAS_3:
        optimizer = trained(subject)
        if not recorded.is_trackable(subject.kind):
            continue
        path = tf.train.Checkpoint(o=optimizer).write(str(tmp_path / str(subject)))
        names = [name for name, _ in tf.train.list_variables(path)]
        inner_only = subject.who == "original" and KERAS_3_VERSION <= (3, 8)
        owner = "o/inner_optimizer/" if inner_only else "o/"
        assert any(name.startswith(owner + "_trainable_variables/0") for name in names), names


@needs_keras_3
def test_the_global_policy_ends_with_clear_session_and_belongs_to_a_thread():
    names = tfls.keras.mixed_precision
    if recorded.default_kind() != "keras3":
        return  # tf.keras is tf_keras, whose policy is one for all threads
    names.set_global_policy("mixed_float16")
    try:
        seen: List[str] = []
        thread = threading.Thread(target=lambda: seen.append(names.global_policy().name))
        thread.start()
        thread.join()
        assert seen == ["float32"]
        tf.keras.backend.clear_session()
        assert names.global_policy().name == "float32"
    finally:
        names.set_global_policy("float32")
