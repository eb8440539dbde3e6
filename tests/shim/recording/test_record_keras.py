"""Recording of Keras optimizers: what is recorded, and that the training does not change."""

import numpy as np
import pytest
import recorded
import replicated
import tensorflow as tf
from recordings import Recording, check_steps

import tf_lossscale as tfls
from tf_lossscale._cli.main import main

tf1 = tf.compat.v1
keras = tf.keras
KERAS_3 = hasattr(keras, "Operation")
STEPS, NOT_FINITE = 12, (2, 3, 7)
ORIGINALS = recorded.originals()
# The experimental class shares the step of the final one, where there are both.
SUBJECTS = recorded.with_own_step() + ORIGINALS
OF_TF_KERAS = [
    subject
    for subject in SUBJECTS
    if subject.kind.optimizers.SGD is keras.optimizers.SGD and subject.kind.name != "legacy"
]
if recorded.TF < (2, 11):
    OF_TF_KERAS = SUBJECTS


@pytest.fixture(autouse=True, scope="module")
def in_eager_mode():
    with recorded.eagerly():
        yield


@pytest.mark.sampled(2, each="subject")
@pytest.mark.parametrize("mode", ["eager", "function"])
@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_recording_changes_nothing_and_says_what_happened(subject, mode):
    what = f"{subject}:{mode}"
    check_steps(replicated.of_one(what, "record"), what, 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("original", ORIGINALS, ids=str)
def test_compare_finds_the_original_and_ours_the_same(original, tmp_path, capsys):
    paths = []
    for subject in (original, original.counterpart()):
        paths.append(str(tmp_path / str(subject)))
        replicated.of_one(f"{subject}:function", "record", paths[-1])
    assert main(["compare", *paths]) == 0
    assert "equal initial weights" in capsys.readouterr().out


def fit(subject, strategy=None, **options):
    """Returns what must not change, with what a callback sees before and after each step."""
    keras.backend.clear_session()
    tf1.set_random_seed(5)
    constant = keras.initializers.Constant(0.1)
    if KERAS_3:
        options = {"jit_compile": False, **options}
    with (strategy or tf.distribute.get_strategy()).scope():
        layers = [keras.layers.Dense(size, kernel_initializer=constant) for size in (3, 1)]
        model = keras.Sequential(layers)
        model.build([None, 4])
        inner = subject.inner("SGD", learning_rate=0.01, momentum=0.9)
        optimizer = subject.dynamic(inner, 64.0, 3)
        model.compile(optimizer, "mse", **options)
    scales, losses = [], []

    class Seen(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            model.reset_metrics()  # the loss is a mean over the batches since then
            unbuilt = KERAS_3 and not optimizer.built
            scale = 64.0 if unbuilt else subject.scale_and_counter(optimizer)[0]
            scales.append(recorded.number(scale))

        def on_train_batch_end(self, batch, logs=None):
            losses.append(float(logs["loss"]))

    inputs = np.stack([np.full([2, 4], step * 0.1, np.float32) for step in range(STEPS)])
    inputs[NOT_FINITE, 0, 0] = np.inf
    inputs, targets = inputs.reshape([-1, 4]), np.ones([2 * STEPS, 1], np.float32)
    arguments = {"batch_size": 2, "shuffle": False, "callbacks": [Seen()], "verbose": 0}
    model.fit(inputs, targets, **arguments)
    inner = getattr(optimizer, "inner_optimizer", None) or optimizer._optimizer
    variables = recorded.variables_of(inner)
    return {
        "weights": [weight.tolist() for weight in model.get_weights()],
        "names": [getattr(variable, "path", variable.name) for variable in variables],
        "state": [variable.numpy().tolist() for variable in variables],
        "random": tf.random.normal([2]).numpy().tolist(),
        "scales": scales,
        "losses": losses,
    }


def check(kept, record):
    """Asserts that a record of `fit` says what the callback saw."""
    assert record.shapes == [[4, 3], [3], [3, 1], [1]]
    assert record.steps == list(range(STEPS))
    assert record.scales == kept["scales"]
    np.testing.assert_allclose(record.loss, kept["losses"], rtol=1e-5)
    assert record.finite == [step not in NOT_FINITE for step in range(STEPS)]
    assert record.applied == record.finite
    assert [norm is None for norm in record.norm] == [not is_finite for is_finite in record.finite]
    assert [bad == 0 for bad in record.bad] == [not is_finite for is_finite in record.finite]
    assert record.initial_weights is not None


@pytest.mark.sampled(2, each="subject")
@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize("subject", OF_TF_KERAS, ids=str)
def test_fit(subject, run_eagerly, tmp_path):
    with Recording(tmp_path) as recording:
        kept = fit(subject, run_eagerly=run_eagerly)
    np.testing.assert_equal(kept, fit(subject, run_eagerly=run_eagerly))
    check(kept, recording.record)


@pytest.mark.sampled(2)
@pytest.mark.skipif(not KERAS_3, reason="only Keras 3 compiles steps itself")
@pytest.mark.parametrize("subject", OF_TF_KERAS, ids=str)
def test_fit_with_steps_that_xla_compiles(subject, tmp_path):
    with Recording(tmp_path) as recording:
        kept = fit(subject, jit_compile=True)
    for weight, other in zip(kept["weights"], fit(subject, run_eagerly=True)["weights"]):
        np.testing.assert_allclose(weight, other, rtol=2e-6)
    check(kept, recording.record)
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


@pytest.mark.skipif(not KERAS_3, reason="only the class of Keras 3 lets the scale become 0")
@pytest.mark.parametrize("decorator", [lambda step: step, tf.function], ids=["eager", "function"])
def test_a_loss_scale_that_has_become_zero_leaves_the_norm_unknown(decorator, tmp_path):
    with Recording(tmp_path) as recording:
        weight = keras.Variable(1.0)
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), 2.0**-149)
        optimizer.build([weight])
        step = decorator(lambda gradient: optimizer.apply([gradient], [weight]))
        for gradient in (np.inf, 0.5):
            step(tf.constant(gradient))
    assert recording.record.scales[1] == 0.0
    assert recording.record.norm == [None, None]
