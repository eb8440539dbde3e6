"""The contract of the final class, for our class and for the original if this Keras has it."""

import copy
from typing import Any

import numpy as np
import pytest
import recorded
import tensorflow as tf

import tf_lossscale as tfls

EVERY = [subject for subject in recorded.originals() + recorded.ours() if subject.api == "final"]
OURS = [subject for subject in EVERY if subject.who == "ours"]
WRAPS_TWICE = recorded.TF < (2, 6)  # the errors for wrapping twice came with 2.6

every = pytest.mark.parametrize("subject", EVERY, ids=str)
ours = pytest.mark.parametrize("subject", OURS, ids=str)


def make(subject, *args: Any, **kwargs: Any) -> Any:
    return subject.cls(subject.inner("SGD", learning_rate=0.5), *args, **kwargs)


@every
def test_arguments(subject):
    optimizer = make(subject)
    assert optimizer.dynamic is True
    assert optimizer.initial_scale == 2.0**15
    assert optimizer.dynamic_growth_steps == 2000
    assert float(optimizer.loss_scale) == 2.0**15
    assert tf.is_tensor(optimizer.loss_scale)
    assert int(optimizer.dynamic_counter.numpy()) == 0
    optimizer = make(subject, True, 4.0, 10)
    assert (optimizer.initial_scale, optimizer.dynamic_growth_steps) == (4.0, 10)
    optimizer = make(subject, dynamic=False, initial_scale=8)
    assert optimizer.dynamic is False
    assert optimizer.initial_scale == 8.0
    assert optimizer.dynamic_growth_steps is None
    assert optimizer.dynamic_counter is None
    assert float(optimizer.loss_scale) == 8.0


@ours
def test_the_loss_scale_is_not_a_function(subject):
    with pytest.raises(TypeError, match="not callable"):
        make(subject).loss_scale()


@every
def test_arguments_are_converted(subject):
    optimizer = make(subject, True, "8", 2.5)
    assert (optimizer.initial_scale, optimizer.dynamic_growth_steps) == (8.0, 2)
    assert subject.read(optimizer)[0] == 8.0


@every
def test_wrong_arguments(subject):
    for wrong in (1, "dynamic", np.bool_(True), None):
        with pytest.raises(TypeError, match='"dynamic" argument'):
            make(subject, wrong)
    with pytest.raises(ValueError, match='"initial_scale" must be specified'):
        make(subject, False)
    with pytest.raises(ValueError, match='"dynamic_growth_steps" must be None'):
        make(subject, False, 8.0, 5)
    for wrong in ("sgd", None, 8.0, tf.compat.v1.train.GradientDescentOptimizer(0.5)):
        with pytest.raises(TypeError, match='"inner_optimizer" must be an instance'):
            subject.cls(wrong)


@ours
def test_a_failed_construction_leaves_the_inner_optimizer_free(subject):
    inner = subject.inner("SGD", learning_rate=0.5)
    for wrong in ({"dynamic": 1}, {"dynamic": False}, {"dynamic_growth_steps": 0}):
        with pytest.raises((TypeError, ValueError)):
            subject.cls(inner, **wrong)
    assert subject.cls(inner).inner_optimizer is inner


@ours
def test_keras_3_keeps_the_scale_between_1_and_the_largest_float32(subject):
    if subject.kind.name != "keras3":
        make(subject, True, 0.5)  # Keras 2 takes any scale
        return
    for wrong in (0.5, 0.0, -1.0, float("inf"), float("nan"), 1e39):
        with pytest.raises(ValueError, match="initial_scale"):
            make(subject, True, wrong)


@every
def test_wrapping_twice(subject):
    if subject.who == "original" and WRAPS_TWICE:
        errors: Any = (ValueError, AttributeError)
        messages = ("", "")
    else:
        errors = (TypeError, ValueError)
        messages = ("cannot wrap another LossScaleOptimizer", "already wrapped")
    with pytest.raises(errors, match=messages[0]):
        subject.cls(make(subject))
    inner = subject.inner("SGD", learning_rate=0.5)
    subject.cls(inner)
    with pytest.raises(errors, match=messages[1]):
        subject.cls(inner)


@pytest.mark.skipif(
    recorded.TF < (2, 6), reason="Keras does not mark what it wraps before TensorFlow 2.6"
)
def test_wrappers_of_the_other_side_are_known():
    for subject in OURS:
        if subject.kind.name == "keras3":
            continue
        original = subject._replace(who="original")
        with pytest.raises(TypeError, match="cannot wrap another"):
            subject.cls(make(original))
        with pytest.raises((TypeError, ValueError), match=r"cannot wrap another|already wrapped"):
            original.cls(make(subject))
        inner = subject.inner("SGD", learning_rate=0.5)
        original.cls(inner)
        with pytest.raises(ValueError, match="already wrapped"):
            subject.cls(inner)


@every
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_scaling_keeps_dtypes(subject, dtype: str):
    optimizer = make(subject, True, 8.0)
    loss = tf.cast(3.0, dtype)
    scaled = optimizer.get_scaled_loss(loss)
    assert scaled.dtype == dtype
    assert float(tf.cast(scaled, tf.float32)) == 24
    called = optimizer.get_scaled_loss(lambda: loss)()
    assert called.dtype == dtype
    assert float(tf.cast(called, tf.float32)) == 24
    (unscaled,) = optimizer.get_unscaled_gradients([scaled])
    assert unscaled.dtype == dtype
    assert float(tf.cast(unscaled, tf.float32)) == 3


@every
def test_unscaling_keeps_none_and_sparse_gradients(subject):
    optimizer = make(subject, False, 3.0)
    sparse = tf.IndexedSlices(tf.constant([[3.0], [6.0]]), tf.constant([1, 0]), tf.constant([4, 1]))
    gradients = optimizer.get_unscaled_gradients([None, sparse, tf.constant(7.0, tf.float16)])
    assert gradients[0] is None
    assert isinstance(gradients[1], tf.IndexedSlices)
    np.testing.assert_array_equal(gradients[1].indices, [1, 0])
    np.testing.assert_allclose(gradients[1].values, [[1.0], [2.0]], rtol=1e-6)
    assert float(gradients[2]) == 2.33203125  # the reciprocal, cast to float16


@ours
def test_scale_loss_gives_float32_or_wider(subject):
    if subject.kind.name != "keras3":
        return  # it has no such method
    optimizer = make(subject, False, 8.0)
    for loss, dtype in ((2, "float32"), (tf.constant(2.0, tf.float16), "float32")):
        assert optimizer.scale_loss(loss).dtype == dtype
        assert float(optimizer.scale_loss(loss)) == 16.0
    assert optimizer.scale_loss(tf.constant(2.0, tf.float64)).dtype == "float64"


@every
@pytest.mark.parametrize(
    "gradient",
    [np.float32(8.0), np.array([8.0]), np.array([8.0], np.float16)],
    ids=lambda gradient: f"{gradient.dtype}{gradient.shape}",
)
def test_unscaling_numpy(subject, gradient: Any):
    (unscaled,) = make(subject, False, 8.0).get_unscaled_gradients([gradient])
    assert unscaled.dtype == gradient.dtype
    np.testing.assert_array_equal(unscaled, np.ones_like(gradient))


@every
def test_unscaling_ragged_gradients(subject):
    ragged = tf.ragged.constant([[8.0], [8.0, 16.0]])
    (unscaled,) = make(subject, False, 8.0).get_unscaled_gradients([ragged])
    assert unscaled.to_list() == [[1.0], [1.0, 2.0]]


@every
def test_a_function_may_return_what_a_step_returns(subject):
    if subject.kind.name == "legacy":
        return  # an operation, which no function can return
    optimizer = make(subject, True, 8.0)
    variable = recorded.make_variable(subject.kind, 1.0, "v")

    @tf.function
    def train() -> Any:
        gradients = optimizer.get_unscaled_gradients([tf.constant(8.0)])
        return optimizer.apply_gradients(list(zip(gradients, [variable])))

    train()
    assert float(variable.numpy()) == 0.5


@every
def test_a_private_method_is_found_on_the_inner_optimizer(subject):
    """TensorFlow's class around legacy optimizers lacks what `_decayed_lr` reads."""
    inner = subject.inner("SGD", learning_rate=0.25)
    optimizer = subject.cls(inner)
    if not hasattr(inner, "_decayed_lr"):
        pytest.skip("it is of the optimizers that TensorFlow 2.11 calls legacy")
    if subject.who == "original":
        with pytest.raises(AttributeError, match=r"_hypers_created|_decayed_lr"):
            optimizer._decayed_lr("float32")
    rate = optimizer.inner_optimizer._decayed_lr("float32")
    assert float(tf.convert_to_tensor(rate)) == 0.25


@every
def test_a_fixed_scale_applies_everything(subject):
    optimizer = make(subject, False, 8.0)
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    subject.step(optimizer, [variable], [tf.constant(2.0)])
    assert float(variable.numpy()) == 0
    subject.step(optimizer, [variable], [tf.constant(float("inf"))])
    assert float(variable.numpy()) == float("-inf")
    assert subject.read(optimizer) == (8.0, None, 2)


@every
def test_gradients_that_are_not_there(subject):
    optimizer = make(subject, True, 8.0, 2)
    first = recorded.make_variable(subject.kind, 1.0, "first")
    second = recorded.make_variable(subject.kind, 1.0, "second")
    optimizer.get_unscaled_gradients([None])
    state = subject.read(optimizer)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.apply_gradients([(None, first), (None, second)])
    if subject.who == "ours":
        assert subject.read(optimizer) == state
    subject.step(optimizer, [first, second], [None, tf.constant(1.0)])
    assert (float(first.numpy()), float(second.numpy())) == (1.0, 0.5)


@ours
def test_hyperparameters_are_the_inner_optimizers(subject):
    """Attributes that the originals do not have (K1) or do not forward (K8)."""
    inner = subject.inner("Adam", learning_rate=0.5, epsilon=0.25)
    optimizer = subject.cls(inner)
    assert recorded.number(optimizer.learning_rate) == recorded.number(optimizer.lr) == 0.5
    assert recorded.number(optimizer.beta_1) == pytest.approx(0.9)
    assert optimizer.epsilon == 0.25
    optimizer.learning_rate = 0.25
    assert recorded.number(inner.learning_rate) == 0.25
    optimizer.lr = 0.125
    assert recorded.number(inner.learning_rate) == 0.125
    optimizer.beta_1 = 0.5
    assert recorded.number(inner.beta_1) == 0.5
    optimizer.epsilon = 0.5
    assert inner.epsilon == 0.5
    optimizer.remark = "mine"
    assert not hasattr(inner, "remark")
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        optimizer.nothing_of_this_name
    assert {"epsilon", "get_scaled_loss"} <= set(dir(optimizer))


@ours
def test_the_inner_optimizer_clips_unscaled_gradients(subject):
    for argument in ("clipnorm", "clipvalue", "global_clipnorm"):
        if argument == "global_clipnorm" and recorded.TF < (2, 4):
            continue
        inner = subject.inner("SGD", learning_rate=1.0, **{argument: 1.0})
        optimizer = subject.cls(inner, False, 1024.0)
        assert getattr(optimizer, argument) == 1.0
        variable = recorded.make_variable(subject.kind, 3.0, "v")
        optimizer.minimize(lambda v=variable: tf.convert_to_tensor(v) * 4.0, [variable])
        assert float(variable.numpy()) == 2.0
        optimizer.minimize(lambda v=variable: tf.convert_to_tensor(v) * 0.5, [variable])
        assert float(variable.numpy()) == 1.5


@ours
def test_weights(subject):
    inner = subject.inner("Adam", learning_rate=0.5)
    optimizer = subject.cls(inner)
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    subject.step(optimizer, [variable], [tf.constant(1.0)])
    assert int(optimizer.iterations.numpy()) == int(inner.iterations.numpy()) == 1
    assert optimizer.iterations.dtype == inner.iterations.dtype
    listed = recorded.variables_of(optimizer)
    assert {id(variable) for variable in recorded.variables_of(inner)} <= {
        id(variable) for variable in listed
    }
    if subject.kind.name == "new":
        return  # these optimizers have no weights in the old sense
    values = optimizer.get_weights()
    assert len(values) == len(optimizer.weights) == len(listed)
    for wrong in (values[:-1], [*values, *values], [*values[:-1], np.zeros([2, 3])]):
        with pytest.raises(ValueError):
            optimizer.set_weights([value * 0 for value in wrong])
    assert [np.any(value) for value in optimizer.get_weights()] == [bool(value) for value in values]
    optimizer.set_weights([value * 0 for value in values])
    assert all(not np.any(value) for value in optimizer.get_weights())


AVERAGING = [subject for subject in EVERY if subject.kind.name != "legacy"] + [
    subject for subject in recorded.originals() if subject.api == "keras3"
]


@pytest.mark.skipif(not AVERAGING, reason="optimizers average weights from TensorFlow 2.11 on")
@pytest.mark.parametrize("subject", AVERAGING, ids=str)
def test_averages_of_weights_are_the_inner_optimizers(subject):
    """A step moves the average half of the way to the weight; a skipped step does not."""
    inner = subject.inner("SGD", learning_rate=1.0, use_ema=True, ema_momentum=0.5)
    optimizer = subject.dynamic(inner, 8.0, 100)
    if subject.who == "ours":
        assert optimizer.use_ema is True
        assert optimizer.ema_momentum == 0.5
    variable = recorded.make_variable(subject.kind, 4.0, "v")
    if subject.api == "keras3":
        optimizer.build([variable])
    scale = 8.0
    for gradient in (2.0, float("nan"), 2.0):
        if subject.api == "keras3":
            optimizer.apply([tf.constant(gradient * scale)], [variable])
        else:
            subject.step(optimizer, [variable], [tf.constant(gradient)])
        scale = 4.0
    assert float(variable.numpy()) == 0.0
    bare = subject.inner("SGD", learning_rate=1.0, use_ema=True, ema_momentum=0.5)
    other = recorded.make_variable(subject.kind, 4.0, "v")
    for _ in range(2):
        bare.apply_gradients([(tf.constant(2.0), other)])
    for owner, averaged in ((bare, other), (optimizer, variable)):
        owner.finalize_variable_values([averaged])
    assert float(variable.numpy()) == float(other.numpy()) != 0.0


@every
def test_configs(subject):
    for arguments in ((True, 8.0, 3), (False, 16.0), ()):
        optimizer = make(subject, *arguments)
        config = optimizer.get_config()
        # The original changes the config that it is given.
        given = config if subject.who == "ours" else copy.deepcopy(config)
        again = type(optimizer).from_config(given)
        assert_same_class(again, optimizer)
        assert again.get_config() == config
        assert again.initial_scale == optimizer.initial_scale
        assert again.dynamic_growth_steps == optimizer.dynamic_growth_steps
        assert again.inner_optimizer is not optimizer.inner_optimizer
        assert recorded.number(again.learning_rate) == 0.5


def assert_same_class(again: Any, optimizer: Any):
    # Up to 2.3 a file names one class for both, and a program calls `loss_scale()` of what it read.
    experimental = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
    assert type(again) is (type(optimizer) if recorded.TF >= (2, 4) else experimental)


@ours
def test_the_public_class_reads_a_config_with_the_keras_that_wrote_it(subject):
    optimizer = make(subject, True, 8.0, 3)
    again = subject.cls.from_config(optimizer.get_config())
    assert type(again.inner_optimizer) is type(optimizer.inner_optimizer)
    assert again.get_config() == optimizer.get_config()


@pytest.mark.skipif(recorded.TF < (2, 4), reason="there is no original")
def test_configs_are_the_originals():
    """Those that the class returns, and what Keras writes around them, such as registered names."""
    for subject in OURS:
        if subject.kind.name == "keras3":
            continue
        original = subject._replace(who="original")
        serialize = subject.kind.keras.optimizers.serialize
        for arguments in ((True, 8.0, 3), (False, 16.0), ()):
            optimizer, expected = make(subject, *arguments), make(original, *arguments)
            assert list(optimizer.get_config().items()) == list(expected.get_config().items())
            assert serialize(optimizer) == serialize(expected)
            named = subject.kind.keras.utils.get_registered_name
            assert named(type(optimizer)) == named(type(expected))


NAMES = ("LossScaleOptimizer", "LossScaleOptimizerV1", "LossScaleOptimizerV3")


@pytest.mark.parametrize("name", [*NAMES, *map(str.lower, NAMES)])
@ours
def test_every_name_of_the_class_is_found(subject, name: str):
    optimizers = subject.kind.keras.optimizers
    serialized = dict(optimizers.serialize(make(subject, True, 8.0, 3)), class_name=name)
    if "registered_name" in serialized:
        serialized["registered_name"] = name
    forms = [serialized]
    if subject.kind.name != "keras3":  # the files of TensorFlow up to 2.11
        forms.append({key: serialized[key] for key in ("class_name", "config")})
    for form in forms:
        again = optimizers.deserialize(form)
        assert isinstance(again, tfls.keras.mixed_precision.LossScaleOptimizer)
        assert (again.initial_scale, again.dynamic_growth_steps) == (8.0, 3)


@ours
def test_from_loss_scale(subject):
    make_from = tfls.keras.mixed_precision.from_loss_scale
    scales = tfls.compat.v1.mixed_precision

    def inner() -> Any:
        return subject.inner("SGD", learning_rate=0.5)

    with pytest.raises(ValueError, match="Invalid value passed to loss_scale"):
        make_from(inner(), None)
    for loss_scale, expected in (
        ("dynamic", (True, 2.0**15, 2000)),
        (8, (False, 8.0, None)),
        (8.0, (False, 8.0, None)),
        (scales.FixedLossScale(4), (False, 4.0, None)),
        (scales.DynamicLossScale(4, 5), (True, 4.0, 5)),
        (tf.compat.v1.train.experimental.FixedLossScale(4), (False, 4.0, None)),
        (tf.compat.v1.train.experimental.DynamicLossScale(4, 5), (True, 4.0, 5)),
    ):
        optimizer = make_from(inner(), loss_scale)
        assert isinstance(optimizer, tfls.keras.mixed_precision.LossScaleOptimizer)
        assert not isinstance(optimizer, tfls.keras.mixed_precision.experimental.LossScaleOptimizer)
        found = optimizer.dynamic, optimizer.initial_scale, optimizer.dynamic_growth_steps
        assert found == expected
    with pytest.raises(ValueError, match="Invalid value passed to loss_scale"):
        make_from(inner(), "static")
    optimizer = make_from(inner(), scales.DynamicLossScale(4, 5, 3.0))
    assert isinstance(optimizer, tfls.keras.mixed_precision.experimental.LossScaleOptimizer)
    assert isinstance(optimizer, tfls.keras.mixed_precision.LossScaleOptimizer)


PRIVATE = [subject for subject in recorded.ours() + recorded.originals() if subject.api != "keras3"]


@pytest.mark.parametrize("subject", PRIVATE, ids=str)
def test_private_attributes_that_programs_read(subject):
    inner = subject.inner("SGD", learning_rate=0.5)
    optimizer = subject.dynamic(inner, 8.0, 2)
    assert optimizer._optimizer is inner
    assert float(optimizer._loss_scale()) == 8.0
    if hasattr(optimizer._loss_scale, "current_loss_scale"):  # from 2.4 on
        optimizer._loss_scale.current_loss_scale.assign(16.0)
        assert subject.read(optimizer)[0] == 16.0
        optimizer._loss_scale.current_loss_scale.assign(8.0)
        assert optimizer._loss_scale.multiplier == 2
    else:
        assert recorded.TF < (2, 4)
    for gradient, applied, scale in ((1.0, True, 8.0), (float("inf"), False, 4.0)):
        _, should_apply = optimizer._loss_scale.update([tf.constant(gradient)])
        assert bool(should_apply) is applied
        assert float(optimizer._loss_scale()) == scale
        assert subject.read(optimizer)[0] == scale
    fixed = subject.fixed(subject.inner("SGD", learning_rate=0.5), 8.0)._loss_scale
    if callable(fixed):  # up to 2.3; a float later
        assert float(fixed()) == 8.0
        assert fixed.update([tf.constant(float("inf"))])[1] is True
    if subject.who == "ours":
        assert callable(fixed)
        assert float(fixed) == 8.0


@pytest.mark.parametrize(
    "subject", [subject for subject in OURS if subject.kind.name == "keras3"], ids=str
)
def test_a_backend_other_than_tensorflow_is_refused(subject, monkeypatch: Any):
    """Only Keras 3 has others."""
    inner = subject.inner("SGD", learning_rate=0.5)
    assert subject.cls(inner).inner_optimizer is inner
    monkeypatch.setattr(subject.kind.keras.config, "backend", lambda: "jax")
    for api in (subject, subject._replace(api="experimental")):
        with pytest.raises(RuntimeError, match="Keras runs on jax: set the environment variable"):
            api.dynamic(subject.inner("SGD", learning_rate=0.5))


@pytest.mark.parametrize("mode", ["function", "eager"])
@pytest.mark.parametrize("subject", recorded.originals() + recorded.ours(), ids=str)
def test_the_inner_optimizer_runs_in_a_conditional(subject, mode):
    """`docs/cost.md`: its operations do not run in a step that is skipped."""
    runs = []
    sgd = subject.kind.optimizers.SGD
    method = "_resource_apply_dense" if hasattr(sgd, "_resource_apply_dense") else "update_step"

    def update(self, *args, **kwargs):
        tf.numpy_function(lambda: runs.append(1) or 0, [], tf.int64)
        return getattr(sgd, method)(self, *args, **kwargs)

    with recorded.eagerly():
        optimizer = subject.dynamic(type("Counted", (sgd,), {method: update})(0.5), 8.0)
        variable = recorded.make_variable(subject.kind, 1.0, "v")

        def train(gradient):
            subject.step(optimizer, [variable], [gradient])

        train = tf.function(train, autograph=False) if mode == "function" else train
        for value in (1.0, float("inf")):
            train(tf.constant(value))
    assert runs == [1]
