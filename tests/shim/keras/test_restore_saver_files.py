"""`tfls.checkpoints.restore` continues graphs of TensorFlow 1 from the files of `tf.train.Saver`.

The oracle is what the real classes did after they wrote the files in `tests/data/fixtures`.
"""

import inspect
import os
import shutil
from typing import Any, Callable, Dict

import numpy as np
import pytest
import recorded
import recorded_files
import tensorflow as tf

import tf_lossscale as tfls

OURS = tfls.keras.mixed_precision.LossScaleOptimizer
KIND = sorted(recorded.kinds(), key=lambda kind: kind.name)[0]
CONTRIB = "1.15.5/contrib.LossScaleOptimizer/exponential_adam_{}"
V1 = "{}/v1.MixedPrecisionLossScaleOptimizer/dynamic_{}_graph"
V1_ADAM = V1.format("1.15.5", "adam")
RestoreError = tfls.checkpoints.RestoreError


def adam(**options: Any) -> Any:
    inner = KIND.optimizers.Adam(learning_rate=0.125, epsilon=1e-8, **options)
    return OURS(inner, initial_scale=64.0, dynamic_growth_steps=3)


def step(variable: Any, optimizer: Any, multiplier: float):
    with tf.GradientTape() as tape:
        loss = optimizer.get_scaled_loss(tf.reduce_sum(variable * multiplier))
    gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, [variable]))
    optimizer.apply_gradients(list(zip(gradients, [variable])))


@pytest.mark.parametrize(
    "pattern",
    [
        CONTRIB.format("resource"),
        CONTRIB.format("refvars"),
        *(V1.format(version, "adam") for version in ("1.15.5", "2.3.4", "2.15.1")),
    ],
)
def test_adam_goes_on(pattern: str):
    path, expected = recorded_files.prefix_of(pattern, "saver_prefix")
    saved = expected["state_at_save"]
    variable, optimizer = tf.Variable(tf.zeros([3])), adam()
    # A counter of contrib that Keras lacks: its class lowers the scale at each second bad step.
    partial = bool(saved.get("bad_steps"))
    if partial:
        refused(path, "no variable for bad_steps")
    report = tfls.checkpoints.restore(
        path, optimizer=optimizer, names={"v": variable}, partial=partial
    )
    assert [entry.in_file for entry in report.unused] == ["bad_steps"] * partial
    assert int(optimizer.iterations.numpy()) == saved["global_step"]
    assert float(optimizer.loss_scale) == saved["loss_scale"]
    # Keras counts skipped steps, and TensorFlow 1 does not: of both, the finite steps are compared.
    multipliers = map(float, expected["multipliers_after_save"])
    for multiplier, after in zip(multipliers, expected["trace_after_save"]):
        if np.isfinite(multiplier):
            step(variable, optimizer, multiplier)
        np.testing.assert_allclose(variable.numpy(), after["v"], rtol=2e-6, atol=1e-6)
        assert int(optimizer.iterations.numpy()) == after["global_step"]


def names_of(variable: Any) -> Dict[str, Any]:
    return {"v": variable}


def truncated(folder: str) -> str:
    file = os.path.join(folder, "model.data-00000-of-00001")
    with open(file, "r+b") as opened:
        opened.truncate(os.path.getsize(file) - 5)
    return os.path.join(folder, "model")


def changed(folder: str) -> str:
    file = os.path.join(folder, "model.data-00000-of-00001")
    with open(file, "r+b") as opened:
        opened.seek(-3, os.SEEK_END)
        byte = opened.read(1)
        opened.seek(-3, os.SEEK_END)
        opened.write(bytes([byte[0] ^ 1]))
    return os.path.join(folder, "model")


@pytest.mark.parametrize("damage", [truncated, changed])
def test_damaged_files_are_an_error(damage: Callable[[str], str], tmp_path: Any):
    path, _ = recorded_files.prefix_of(V1_ADAM, "saver_prefix")
    shutil.copytree(os.path.dirname(path), str(tmp_path / "saver"))
    refused(damage(str(tmp_path / "saver")), "damaged|cannot be read")


def refused(path: str, words: str, names: Any = names_of, **options: Any):
    variable, optimizer = tf.Variable(tf.zeros([3])), adam(**options)
    with pytest.raises(RestoreError, match=words):
        tfls.checkpoints.restore(
            path, optimizer=optimizer, names=None if names is None else names(variable)
        )
    np.testing.assert_array_equal(variable.numpy(), [0, 0, 0])
    assert int(optimizer.iterations.numpy()) == 0
    assert float(optimizer.loss_scale) == 64.0


@pytest.mark.parametrize(
    ("words", "names", "options"),
    [
        (r"Pass names=\{'v': variable, ", None, {}),
        ("names= is a list", lambda variable: ["v"], {}),
        ("the file has no 'w'", lambda variable: {"w": variable}, {}),
        ("the model has no variable 'w'", lambda variable: {"v": "w"}, {}),
        (r"v has shape \[3\] in the file", lambda variable: {"v": tf.Variable([0.0])}, {}),
        ("no number of steps gives", names_of, {"beta_1": 0.5}),
    ],
)
def test_what_does_not_fit_is_an_error(words: str, names: Any, options: Any):
    path, _ = recorded_files.prefix_of(V1_ADAM, "saver_prefix")
    refused(path, words, names, **options)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("2.15.1/keras_final.LossScaleOptimizer/dynamic_adam", "is no file of tf.train.Saver"),
        ("2.15.1/keras_final.LossScaleOptimizer/model_dyn_h5", "names= is for files of"),
    ],
)
def test_names_are_refused_for_other_files(pattern: str, words: str):
    refused(recorded_files.file_of(pattern), words)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-7])
def test_another_epsilon_is_noted(epsilon: float):
    """The file has none; `tf.train.AdamOptimizer` has 1e-8 by default, and Keras 1e-7."""
    defaults = inspect.signature(tf.compat.v1.train.AdamOptimizer.__init__).parameters
    assert defaults["epsilon"].default == 1e-8
    assert KIND.optimizers.Adam().get_config()["epsilon"] == 1e-7
    path, _ = recorded_files.prefix_of(V1_ADAM, "saver_prefix")
    variable, optimizer = tf.Variable(tf.zeros([3])), KIND.optimizers.Adam(epsilon=epsilon)
    report = tfls.checkpoints.restore(path, optimizer=OURS(optimizer), names={"v": variable})
    assert (f"epsilon is {epsilon} here" in str(report)) == (epsilon == 1e-7)


def test_counters_that_differ_are_an_error(tmp_path: Any):
    """As in programs that count something else in `global_step`, which `names` can say."""
    path, _ = recorded_files.prefix_of(V1_ADAM, "saver_prefix")
    reader = tf.train.load_checkpoint(path)
    values = {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}
    values["global_step"] += 1
    changed_path = str(tmp_path / "model")
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=changed_path,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[values[name] for name in names],
    )
    refused(changed_path, "the counters differ")
    variable, step_of_program = tf.Variable(tf.zeros([3])), tf.Variable(0, dtype=tf.int64)
    optimizer = adam()
    tfls.checkpoints.restore(
        changed_path, optimizer=optimizer, names={"v": variable, "global_step": step_of_program}
    )
    assert int(optimizer.iterations.numpy()) == 7
    assert int(step_of_program.numpy()) == 8


def two_optimizers(prefix: str, steps: Dict[str, int], **options: Any) -> str:
    """Saves a graph of TensorFlow 1 in which each of two Adams has taken its own steps."""
    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        count = tf1.train.get_or_create_global_step()
        for name, number in steps.items():
            variable = tf1.get_variable(name, initializer=tf.constant([1.0, 2.0]))
            optimizer = tf1.train.AdamOptimizer(0.125, **options.get(name, {}))
            step_once = optimizer.minimize(tf.reduce_sum(variable), count, [variable])
            session.run(tf1.variables_initializer(tf1.global_variables()[-5:]))
            if name == "g":
                session.run(count.initializer)
            for _ in range(number):
                session.run(step_once)
        return str(tf1.train.Saver().save(session, prefix))


@pytest.mark.parametrize("name", ["g", "d"])
def test_steps_of_one_of_two_optimizers_are_not_guessed(name: str, tmp_path: Any):
    path = two_optimizers(str(tmp_path / "model"), {"g": 3, "d": 5})
    variable, optimizer = tf.Variable(tf.zeros([2])), adam()
    reason = "does not show how many steps this one took: 3 by beta1_power or 5 by beta1_power_1"
    with pytest.raises(RestoreError, match=reason + ". Pass partial=True"):
        tfls.checkpoints.restore(path, optimizer=optimizer, names={name: variable})
    np.testing.assert_array_equal(variable.numpy(), [0, 0])
    report = tfls.checkpoints.restore(
        path, optimizer=optimizer, names={name: variable}, partial=True
    )
    assert variable.numpy().any()
    assert int(optimizer.iterations.numpy()) == 0
    assert "iterations" in [entry.in_program for entry in report.initial]
    assert {"beta1_power", "beta1_power_1"} <= {entry.in_file for entry in report.unused}
    assert reason in str(report)


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        ({"g": 4, "d": 4}, {}),
        ({"g": 3, "d": 4}, {"g": {"beta1": 0.5}}),
        ({"g": 3, "d": 4}, {"g": {"beta2": 0.5}}),
    ],
)
def test_steps_of_one_of_two_optimizers_may_show(steps: Any, options: Any, tmp_path: Any):
    """Both took the same steps, or the betas of the program are those of one of them."""
    path = two_optimizers(str(tmp_path / "model"), steps, **options)
    variable, step_of_program = tf.Variable(tf.zeros([2])), tf.Variable(0, dtype=tf.int64)
    optimizer = adam()
    report = tfls.checkpoints.restore(
        path,
        optimizer=optimizer,
        names={"d": variable, "global_step": step_of_program},
        partial=True,
    )
    assert int(optimizer.iterations.numpy()) == 4
    assert int(step_of_program.numpy()) == sum(steps.values())
    assert "iterations" not in [entry.in_program for entry in report.initial]


def test_a_global_step_does_not_count_the_steps_of_one_of_two_optimizers(tmp_path: Any):
    """Powers that are 0, as after long runs, show none."""
    path = two_optimizers(str(tmp_path / "model"), {"g": 3, "d": 4}, d={"beta2": 1e-20})
    with pytest.raises(
        RestoreError, match="3 by beta1_power or an unknown number by beta1_power_1"
    ):
        tfls.checkpoints.restore(path, optimizer=adam(), names={"d": tf.Variable(tf.zeros([2]))})


def test_sums_of_gradients_are_refused():
    path, _ = recorded_files.prefix_of(V1.format("1.15.5", "momentum"), "saver_prefix")
    variable = tf.Variable(tf.zeros([3]))
    inner = KIND.optimizers.SGD(learning_rate=0.125, momentum=0.5)
    with pytest.raises(RestoreError, match="is a sum of gradients"):
        tfls.checkpoints.restore(path, optimizer=OURS(inner), names={"v": variable})
    np.testing.assert_array_equal(variable.numpy(), [0, 0, 0])
    with pytest.raises(RestoreError, match="no variable for"):
        tfls.checkpoints.restore(path, names={"v": variable})
    tfls.checkpoints.restore(path, names={"v": variable}, partial=True)
    assert variable.numpy().any()


OPTIMIZERS: Dict[str, Any] = {
    "RMSProp": ("RMSprop", {"momentum": 0.5, "epsilon": 1e-7}),
    "centered": ("RMSprop", {"momentum": 0.5, "epsilon": 1e-7, "centered": True}),
    "Adagrad": ("Adagrad", {"initial_accumulator_value": 0.1}),
    "Adadelta": ("Adadelta", {"rho": 0.5, "epsilon": 1e-6}),
    "Ftrl": ("Ftrl", {}),
}


def gradient(step_number: int) -> np.ndarray:
    return np.float32([1.0, -0.5, 0.25]) * (1 + step_number % 3)


def run_of_tensorflow_1(name: str, prefix: str) -> Any:
    """Takes four steps of an optimizer of TensorFlow 1, saves, and takes four more."""
    tf1 = tf.compat.v1
    options = dict(OPTIMIZERS[name][1])
    if "momentum" in options:
        options["decay"] = 0.9
    made = getattr(tf1.train, {"centered": "RMSProp"}.get(name, name) + "Optimizer")
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", initializer=tf.constant([1.0, 2.0, 3.0]))
        fed = tf1.placeholder(tf.float32, [3])
        count = tf1.train.get_or_create_global_step()
        step_once = made(0.125, **options).apply_gradients([(fed, variable)], count)
        session.run(tf1.global_variables_initializer())
        for number in range(8):
            if number == 4:
                path = tf1.train.Saver().save(session, prefix)
            session.run(step_once, {fed: gradient(number)})
        return path, session.run(variable)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_other_optimizers_go_on(name: str, tmp_path: Any):
    path, expected = run_of_tensorflow_1(name, str(tmp_path / "model"))
    keras_name, options = OPTIMIZERS[name]
    optimizer = getattr(KIND.optimizers, keras_name)(learning_rate=0.125, **options)
    variable = tf.Variable(tf.zeros([3]))
    tfls.checkpoints.restore(path, optimizer=optimizer, names={"v": variable})
    assert int(optimizer.iterations.numpy()) == 4
    for number in range(4, 8):
        optimizer.apply_gradients([(tf.constant(gradient(number)), variable)])
    np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5, atol=1e-5)
