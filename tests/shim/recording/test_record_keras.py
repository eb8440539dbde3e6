"""Recording of Keras optimizers: what is recorded, and that the training does not change."""

import os

import numpy as np
import pytest
import tensorflow as tf
from recordings import Recording

import tf_lossscale as tfls
from tf_lossscale._cli.main import main

tf1 = tf.compat.v1
keras = tf.keras
TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
KERAS_3 = getattr(keras, "__version__", "2").startswith("3")

STEPS = 12
NOT_FINITE = (2, 3, 7)
MODES = ("eager", "function", "fit", "fit eagerly")
FEWER_MODES = ("eager",)
# Functions with the originals are recorded by `test_compare_finds_the_original_and_ours_the_same`.
OF_ORIGINALS = MODES if os.environ.get("TFLS_TEST_SIZE") == "long" else ("eager", "fit")


@pytest.fixture(autouse=True, scope="module")
def in_eager_mode():
    if TF_VERSION >= (2, 0):
        yield
        return
    from tensorflow.python.eager import context

    with context.eager_mode():
        yield


def wrappers():
    """The functions that wrap an optimizer, by name."""

    def final(cls):
        return lambda inner: cls(inner, initial_scale=64.0, dynamic_growth_steps=3)

    def experimental(cls, dynamic):
        return lambda inner: cls(inner, dynamic(64.0, 3))

    ours = tfls.keras.mixed_precision
    dynamic = tfls.compat.v1.mixed_precision.DynamicLossScale
    found = {
        "final": final(ours.LossScaleOptimizer),
        "experimental": experimental(ours.experimental.LossScaleOptimizer, dynamic),
    }
    if TF_VERSION >= (2, 4):
        found["final original"] = final(keras.mixed_precision.LossScaleOptimizer)
    if TF_VERSION <= (2, 8):
        original = tf1.train.experimental.DynamicLossScale
        installed = keras.mixed_precision.experimental.LossScaleOptimizer
        found["experimental original"] = experimental(installed, original)
    return found


def data():
    rows = np.stack([np.full([2, 4], step * 0.1, np.float32) for step in range(STEPS)])
    for step in NOT_FINITE:
        rows[step, 0, 0] = np.inf
    return rows, np.ones([STEPS, 2, 1], np.float32)


def inner_optimizer(which):
    optimizers = keras.optimizers
    if which == "legacy":
        optimizers = getattr(optimizers, "legacy", optimizers)
    if which == "momentum":  # Keras 3's own class does not count skipped steps, which Adam needs
        return optimizers.SGD(0.01, momentum=0.9)
    return optimizers.Adam(0.01)


def train(name, mode, which="default", jit_compile=False):
    """Returns what must not change, and the losses, scales and counts that the program sees."""
    keras.backend.clear_session()
    tf1.set_random_seed(5)
    model = keras.Sequential(
        [
            keras.layers.Dense(3, kernel_initializer=keras.initializers.Constant(0.1)),
            keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(0.1)),
        ]
    )
    model.build([None, 4])
    optimizer = wrappers()[name](inner_optimizer(which))
    rows = []

    def scale():
        if KERAS_3 and not optimizer.built:
            return 64.0
        value = optimizer.dynamic_scale if KERAS_3 else optimizer.loss_scale
        return float(value() if callable(value) and not hasattr(value, "numpy") else value)

    inputs, targets = data()
    if mode.startswith("fit"):
        options = {"run_eagerly": mode == "fit eagerly"}
        if KERAS_3:
            options["jit_compile"] = jit_compile
        model.compile(optimizer, "mse", **options)

        class Rows(keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                self.scale = scale()

            def on_train_batch_end(self, batch, logs=None):
                rows.append((None, self.scale))

        # Not in one array: the loss that callbacks see is a mean over the batches so far.
        model.fit(
            inputs.reshape([-1, 4]),
            targets.reshape([-1, 1]),
            batch_size=2,
            shuffle=False,
            callbacks=[Rows()],
            verbose=0,
        )
    else:
        like_keras_3 = KERAS_3 and name.endswith("original")

        def step(images, labels):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(images) - labels))
                scaled = (
                    optimizer.scale_loss(loss) if like_keras_3 else optimizer.get_scaled_loss(loss)
                )
            variables = model.trainable_variables
            gradients = tape.gradient(scaled, variables)
            if like_keras_3:
                optimizer.apply(gradients, variables)
            else:
                unscaled = optimizer.get_unscaled_gradients(gradients)
                optimizer.apply_gradients(list(zip(unscaled, variables)))
            return loss

        if mode == "function":
            step = tf.function(step)
        for images, labels in zip(inputs, targets):
            before = scale()
            rows.append((float(step(tf.constant(images), tf.constant(labels))), before))
    has_property = hasattr(type(optimizer), "inner_optimizer") or KERAS_3
    state = optimizer.inner_optimizer if has_property else optimizer._optimizer
    variables = state.variables() if callable(state.variables) else state.variables
    kept = {
        "weights": [each.tolist() for each in model.get_weights()],
        "names": [getattr(each, "path", each.name) for each in variables],
        "state": [each.numpy().tolist() for each in variables],
        "random": tf.random.normal([2]).numpy().tolist(),
        "rows": rows,
    }
    return kept, rows


def check(rows, record):
    """Asserts that a record says what the program saw."""
    assert record.shapes == [[4, 3], [3], [3, 1], [1]]
    assert record.steps == list(range(STEPS))
    assert record.scales == [scale for _, scale in rows]
    losses = [loss for loss, _ in rows]
    if losses[0] is not None:
        np.testing.assert_array_equal(record.loss, losses)
    assert None not in record.loss
    assert record.finite == [step not in NOT_FINITE for step in range(STEPS)]
    assert record.applied == record.finite
    assert [each is None for each in record.norm] == [not each for each in record.finite]
    assert [each == 0 for each in record.bad] == [not each for each in record.finite]
    assert record.initial_weights is not None


def _cases():
    # The experimental classes share the step of the final ones, where there are both.
    both = TF_VERSION >= (2, 4)
    for name in wrappers():
        modes = OF_ORIGINALS if name.endswith("original") else MODES
        for mode in FEWER_MODES if both and name.startswith("experimental") else modes:
            yield name, mode


@pytest.mark.parametrize(("name", "mode"), list(_cases()))
def test_recording_changes_nothing_and_says_what_happened(name, mode, tmp_path):
    with Recording(tmp_path) as recording:
        kept, rows = train(name, mode)
    np.testing.assert_equal(kept, train(name, mode)[0])
    check(rows, recording.record)


if TF_VERSION >= (2, 11) and not KERAS_3:

    @pytest.mark.parametrize("name", ["final", "final original"])
    def test_legacy_optimizers_are_recorded_too(name, tmp_path):
        with Recording(tmp_path) as recording:
            kept, rows = train(name, "function", "legacy")
        np.testing.assert_equal(kept, train(name, "function", "legacy")[0])
        check(rows, recording.record)


@pytest.mark.parametrize(
    ("original", "ours"),
    [(each, each.replace(" original", "")) for each in wrappers() if each.endswith("original")],
)
def test_compare_finds_the_original_and_ours_the_same(original, ours, tmp_path, capsys):
    paths = []
    for name in (original, ours):
        with Recording(tmp_path / name) as recording:
            train(name, "function", "momentum")
        paths.append(recording.path)
    assert main(["compare", *paths]) == 0
    assert "equal initial weights" in capsys.readouterr().out


if KERAS_3:

    @pytest.mark.parametrize("name", ["final", "final original"])
    def test_fit_with_steps_that_xla_compiles_is_recorded(name, tmp_path):
        with Recording(tmp_path) as recording:
            # Keras's own class does not count skipped steps, which Adam needs.
            kept, rows = train(name, "fit", "momentum", True)
        bare = train(name, "fit eagerly", "momentum")[0]
        for one, other in zip(kept["weights"], bare["weights"]):
            np.testing.assert_allclose(one, other, rtol=2e-6)
        check(rows, recording.record)
        assert recording.header.xla is True


class _Transforming(keras.optimizers.SGD):
    """Has its own steps, so our class tests the gradients again where they are applied."""

    def apply_gradients(self, *args, **kwargs):
        return super().apply_gradients(*args, **kwargs)

    def apply(self, *args, **kwargs):
        return super().apply(*args, **kwargs)


def test_a_step_that_is_tested_again_when_it_is_applied_is_known(tmp_path):
    with Recording(tmp_path) as recording:
        weight = tf.Variable([3.0])
        inner = _Transforming(0.1)
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)
        for gradient in (1.0, np.inf):
            optimizer.get_unscaled_gradients([tf.constant([gradient])])
            optimizer.apply_gradients([(tf.constant([gradient]), weight)])
    assert recording.record.applied == [True, False]
    assert recording.record.finite == [True, False]


def test_the_norm_of_a_sparse_gradient_adds_what_belongs_to_one_row(tmp_path):
    with Recording(tmp_path) as recording:
        weight = tf.Variable([[3.0], [2.0]])
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
        rows = tf.constant([1, 0, 1])
        gradient = tf.IndexedSlices(tf.constant([[1.0], [3.0], [3.0]]), rows, tf.constant([2, 1]))
        optimizer.get_unscaled_gradients([gradient])
        optimizer.apply_gradients([(gradient, weight)])
    assert recording.record.norm == [5.0]
