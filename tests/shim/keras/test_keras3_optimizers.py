"""Every optimizer of Keras 3 in our class and in Keras's: same variables, and files of each other.

Keras builds its loss-scale optimizer without tracking. An optimizer that sets a variable as an
attribute (Nadam, Adafactor, or a user's) would otherwise list one more, and a file with another
number of variables is dropped as a whole, `iterations` included.
"""

import functools
import inspect
import operator

import numpy as np
import pytest
import tensorflow as tf

import tf_lossscale as tfls

keras = pytest.importorskip("keras", reason="up to TensorFlow 2.5, Keras is a part of it")
if not hasattr(tf.keras, "Operation"):
    pytest.skip("only Keras 3 has these optimizers", allow_module_level=True)

OURS = tfls.keras.mixed_precision.LossScaleOptimizer
THEIRS = keras.mixed_precision.LossScaleOptimizer
CLASSES = pytest.mark.parametrize(("writer", "reader"), [(OURS, THEIRS), (THEIRS, OURS)])
# MultiOptimizer needs a function that assigns variables to optimizers.
SKIPPED = ["LossScaleOptimizer", "MultiOptimizer", "Optimizer"]
if keras.__version__.startswith("3.12."):
    SKIPPED.append("Muon")  # no step of it can be made in Keras's own loss-scale optimizer
INPUTS = np.arange(16.0, dtype=np.float32).reshape(8, 2) / 16
NAMES = sorted(
    name
    for name, member in vars(keras.optimizers).items()
    if inspect.isclass(member)
    and issubclass(member, keras.optimizers.Optimizer)
    and name not in SKIPPED
)


class SetsInBuild(keras.optimizers.SGD):
    """An optimizer of a user, which sets a variable as an attribute."""

    def build(self, variables):
        if not self.built:
            super().build(variables)
            self.extra = keras.Variable(np.float32(3.0), name="extra")


def compiled(cls, name):
    keras.utils.set_random_seed(1)
    made = SetsInBuild if name == "SetsInBuild" else getattr(keras.optimizers, name)
    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3)])
    optimizer = cls(made(0.01), initial_scale=8.0, dynamic_growth_steps=3)
    model.compile(optimizer, "mse", run_eagerly=True)
    return model


@functools.lru_cache(maxsize=None)
def trained(cls, name):
    model = compiled(cls, name)
    for batch in np.split(INPUTS, 2):
        model.train_on_batch(batch, batch.sum(1, keepdims=True))
    return model


def in_keras_order(optimizer):
    """The variables of either class in the order of Keras's own, which its files have."""
    return [*optimizer._variables, *optimizer.inner_optimizer.variables]


def state(model):
    # The first two are Keras's unused counter and rate, which its own steps do not set, either.
    return [np.asarray(variable.value) for variable in in_keras_order(model.optimizer)][2:]


def assert_same(mine, other):
    assert len(mine) == len(other)
    for left, two in zip(mine, other):
        np.testing.assert_allclose(left, two, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [*NAMES, "SetsInBuild"])
def test_the_variables_are_those_of_kerass_class(name):
    assert_same(state(trained(OURS, name)), state(trained(THEIRS, name)))


def restored(cls, name, restore):
    model = compiled(cls, name)
    model.optimizer.build(model.trainable_variables)
    restore(model)
    return model


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
@CLASSES
def test_files_of_each_class_are_read_by_the_other(tmp_path, writer, reader, name):
    model = trained(writer, name)
    model.save(str(tmp_path / "model.keras"))
    assert_same(state(keras.models.load_model(str(tmp_path / "model.keras"))), state(model))
    model.save_weights(str(tmp_path / "model.weights.h5"))
    for file in ("model.keras", "model.weights.h5"):
        load = operator.methodcaller("load_weights", str(tmp_path / file))
        assert_same(state(restored(reader, name, load)), state(model))

    if isinstance(model.optimizer, tf.__internal__.tracking.Trackable):  # not those of Keras 3.0
        prefix = str(tmp_path / "checkpoint")
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(prefix)

        def restore(m):
            status = tf.train.Checkpoint(model=m, optimizer=m.optimizer).read(prefix)
            status.assert_existing_objects_matched()

        assert_same(state(restored(reader, name, restore)), state(model))


def test_configs_have_the_order_of_kerass_class():
    ours, theirs = (cls(keras.optimizers.SGD()).get_config() for cls in (OURS, THEIRS))
    # Up to Keras 3.6 the original also writes options that it does not use.
    assert list(ours) == [key for key in theirs if key in ours]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("built", [False, True])
def test_the_paths_are_those_of_kerass_class(built, in_function):
    found = []
    for cls in (OURS, THEIRS):
        keras.backend.clear_session()  # which numbers names again
        variable = keras.Variable(np.float32(1.0), name="w")
        optimizer = cls(keras.optimizers.Adam())
        if built:
            optimizer.build([variable])
        step = functools.partial(optimizer.apply, [tf.constant(8.0)], [variable])
        (tf.function(step) if in_function else step)()
        found.append([variable.path for variable in in_keras_order(optimizer)])
    assert found[0] == found[1]


def test_the_name_of_a_step_may_be_passed_as_on_keras_2():
    variable = keras.Variable(np.float32(1.0))
    optimizer = OURS(keras.optimizers.SGD(0.5), initial_scale=8.0)
    optimizer.apply_gradients([(tf.constant(1.0), variable)], "train")
    assert float(variable.value) == 0.5


@pytest.mark.parametrize("cls", [OURS, THEIRS])
def test_the_growth_steps_can_be_set_later(cls):
    optimizer = cls(keras.optimizers.SGD(0.5), initial_scale=8.0, dynamic_growth_steps=100)
    variable = keras.Variable(np.float32(1.0))
    optimizer.apply([tf.constant(8.0)], [variable])
    optimizer.dynamic_growth_steps = 2
    optimizer.apply([tf.constant(8.0)], [variable])
    assert float(optimizer.dynamic_scale.value) == 16.0


@pytest.mark.parametrize("cls", [OURS, THEIRS])
@pytest.mark.parametrize(("built", "expected"), [(False, 4.0), (True, 8.0)])
def test_the_initial_scale_can_be_set_until_the_first_step(cls, built, expected):
    optimizer = cls(keras.optimizers.SGD(0.5), initial_scale=8.0)
    variable = keras.Variable(np.float32(1.0))
    if built:
        optimizer.build([variable])
    optimizer.initial_scale = 4.0
    assert optimizer.get_config()["initial_scale"] == 4.0
    assert float(optimizer.scale_loss(tf.constant(1.0))) == expected
    optimizer.apply([tf.constant(1.0)], [variable])
    assert float(optimizer.dynamic_scale.value) == expected


def weight_and_scale(cls, method, gradient, in_function):
    weight = keras.Variable([[1.0]])
    optimizer = cls(keras.optimizers.SGD(0.5), initial_scale=8.0)
    optimizer.build([weight])

    def step():
        optimizer.scale_loss(tf.constant(1.0))
        if method == "apply":
            optimizer.apply([gradient], [weight])
        else:
            optimizer.apply_gradients([(gradient, weight)])

    (tf.function(step, autograph=False) if in_function else step)()
    return weight.numpy().item(), optimizer.dynamic_scale.numpy().item()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", ["apply", "apply_gradients"])
def test_integer_gradients_are_divided_as_by_the_original(method, is_sparse, dtype, in_function):
    gradient = tf.cast([[8]], dtype)
    if is_sparse:
        gradient = tf.IndexedSlices(gradient, tf.constant([0]), tf.constant([1, 1]))
    found = [weight_and_scale(cls, method, gradient, in_function) for cls in (THEIRS, OURS)]
    assert found == [(0.5, 8.0)] * 2


def test_unscaled_integer_gradients_are_refused():
    """As by the classes of Keras 2: the step does not divide them."""
    optimizer = OURS(keras.optimizers.SGD(0.5), initial_scale=8.0)
    weight = keras.Variable([1.0])
    with pytest.raises(TypeError, match="Only float gradients can be tested"):
        optimizer.apply_gradients([(tf.constant([8]), weight)])
    assert weight.numpy().item() == 1.0


def made_or_error(cls, options):
    try:
        made = cls(keras.optimizers.SGD(0.5), **options)
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)
    made.build([keras.Variable([1.0])])
    return made.name, [variable.path for variable in made._variables]


DEFAULTS = {"clipnorm": None, "weight_decay": None, "use_ema": False, "ema_momentum": 0.99}
DEFAULTS |= {"loss_scale_factor": None, "gradient_accumulation_steps": None}
OPTIONS = [
    {"name": "mine"},
    {"name": "mine", "use_ema": False},
    *({k: v} for k, v in DEFAULTS.items()),
]
WRONG = [{"clipnorm": 0.5}, {"weight_decay": 0.0}, {"use_ema": True}, {"ema_momentum": 0.5}]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_arguments_of_keras_3_are_taken(options):
    keras.backend.clear_session()  # which numbers the name of the original
    assert made_or_error(OURS, options) == made_or_error(THEIRS, options)


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_options_that_do_nothing_are_refused(options):
    """The original of Keras 3.3 still takes them, and ignores them."""
    error, message = made_or_error(OURS, options)
    (name,) = options
    assert (error, f"does not support `{name}`. Instead, set" in message) == ("ValueError", True)
    theirs = made_or_error(THEIRS, options)
    assert theirs[0] != "ValueError" or theirs == (error, message)


def test_other_arguments_are_refused():
    assert made_or_error(OURS, {"learning_rate": 0.5})[0] == "TypeError"


def test_a_name_is_kept_by_the_configuration():
    optimizer = OURS(keras.optimizers.SGD(0.5), name="mine")
    for made in (
        OURS.from_config(optimizer.get_config()),
        THEIRS.from_config(optimizer.get_config()),
        keras.optimizers.deserialize(keras.optimizers.serialize(optimizer)),
    ):
        assert made.name == "mine"

    class Named(OURS):
        def __init__(self, inner_optimizer, name="own", **options):
            super().__init__(inner_optimizer, name=name, **options)

    class OtherName(OURS):
        """Has an argument of this name, for something else."""

        def __init__(self, inner_optimizer, name="other", **options):
            super().__init__(inner_optimizer, **options)
            self.label = name

    named = Named(keras.optimizers.SGD(0.5))
    assert (named.name, Named.from_config(named.get_config()).name) == ("own", "own")
    other = OtherName(keras.optimizers.SGD(0.5))
    assert (other.name, OtherName.from_config(other.get_config()).label) == (
        "loss_scale_optimizer",
        "other",
    )


def test_what_a_program_sets_after_it_has_restored_weights_is_kept():
    """The slots of the weights are set in the first step, and nothing else."""

    def take_step(optimizer: keras.optimizers.Optimizer, variable: tf.Variable):
        optimizer.apply_gradients([(tf.constant([1.0, 2.0]), variable)])

    source, variable = OURS(keras.optimizers.Adam(0.5)), tf.Variable([1.0, 2.0])
    take_step(source, variable)
    resumed, copy = OURS(keras.optimizers.Adam(0.5)), tf.Variable(variable)
    resumed.set_weights(source.get_weights())
    for optimizer, own in ((source, variable), (resumed, copy)):
        optimizer.learning_rate = 0.125
        optimizer.iterations.assign(7)
        take_step(optimizer, own)
    assert (resumed.learning_rate.numpy(), resumed.iterations.numpy()) == (0.125, 8)
    for value, expected in zip(resumed.get_weights(), source.get_weights()):
        np.testing.assert_array_equal(value, expected)
    np.testing.assert_array_equal(copy.numpy(), variable.numpy())


@pytest.mark.parametrize("cls", [OURS, THEIRS])
@pytest.mark.parametrize("gradient", [1.0, np.inf])
def test_stateless_apply_is_refused(cls, gradient):
    """Keras's class refuses finite gradients only, and takes the variables in another order."""
    optimizer = cls(keras.optimizers.SGD(0.5), initial_scale=8.0)
    variable = keras.Variable(1.0)
    optimizer.build([variable])
    values = [item.value for item in optimizer.variables]
    if cls is THEIRS and np.isinf(gradient):
        optimizer.stateless_apply(values, [tf.constant(gradient)], [variable.value])
        return
    with pytest.raises(ValueError, match="not supported with the TensorFlow backend"):
        optimizer.stateless_apply(values, [tf.constant(gradient)], [variable.value])
