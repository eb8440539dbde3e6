"""What pages say of Keras 3: what `fit` calls (LS405), and what its class and ours have."""

import re

import numpy as np
import pytest
from documents import ROOT

tf = pytest.importorskip("tensorflow")

import tf_lossscale as tfls  # noqa: E402 - needs TensorFlow

pytestmark = pytest.mark.skipif(
    not tf.keras.__version__.startswith("3."), reason="is about Keras 3"
)

METHODS = ("scale_loss", "get_scaled_loss", "get_unscaled_gradients", "minimize", "apply_gradients")


def logging(base, names, seen):
    """A class whose methods of these names note what they are given first."""

    def logged(name):
        def method(self, given, *more, **options):
            seen[name] = given = given if name == "scale_loss" else list(given)
            return getattr(super(cls, self), name)(given, *more, **options)

        return method

    cls = type("Logging", (base,), {name: logged(name) for name in names})
    return cls


def test_what_fit_calls():
    seen = {}
    inner = logging(tf.keras.optimizers.SGD, ["apply"], seen)(0.1)
    optimizer = logging(tfls.keras.mixed_precision.LossScaleOptimizer, METHODS, seen)(
        inner, dynamic=False, initial_scale=8.0
    )
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = tf.keras.Sequential([layer])
    model.compile(optimizer, "mse", run_eagerly=True)
    model.fit(np.full((2, 1), 2.0, "float32"), np.zeros((2, 1), "float32"), verbose=0)
    assert set(seen) == {"scale_loss", "apply_gradients", "apply"}
    # The gradient of the mean of `(2 * w) ** 2` at `w = 1` is 8.
    assert float(seen["scale_loss"]) == 4.0
    assert float(seen["apply_gradients"][0][0][0][0]) == 8.0 * 8.0
    assert float(seen["apply"][0][0][0]) == 8.0


def test_what_keras_3_refuses(tmp_path):
    with pytest.raises(ValueError, match=r"not recognized: \{'lr'"):
        tf.keras.optimizers.SGD(lr=0.1)
    model = tf.keras.Sequential([tf.keras.Input([1]), tf.keras.layers.Dense(1)])
    model.save_weights(str(tmp_path / "model.weights.h5"))
    for name in ("model", "model.h5"):
        with pytest.raises(ValueError, match=r"must end in `[.]weights[.]h5`"):
            model.save_weights(str(tmp_path / name))


def trained(optimizer, name, traces_again, keras=tf.keras):
    """A weight after four steps of `fit`, where an attribute is set to 0 after two."""

    class Sets(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                setattr(self.model.optimizer.inner_optimizer, name, 0.0)
                if traces_again:
                    self.model.make_train_function(force=True)

    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = keras.Sequential([keras.layers.Input([1]), layer])
    model.compile(optimizer, lambda labels, outputs: outputs)
    model.fit(tf.ones([1, 1]), tf.zeros([1, 1]), epochs=4, verbose=0, callbacks=[Sets()])
    return float(model.get_weights()[0][0, 0])


@pytest.mark.parametrize("is_keras_3", [True, False])
def test_what_is_set_on_an_optimizer_during_fit(is_keras_3):
    """`docs/troubleshooting.md`, training is slower or worse."""
    keras = tf.keras if is_keras_3 else pytest.importorskip("tf_keras")

    def found(name, traces_again=False):
        inner = keras.optimizers.SGD(0.1, momentum=0.5)
        optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner)
        return trained(optimizer, name, traces_again, keras)

    unchanged = found("nothing")
    assert (found("lr") == unchanged) is is_keras_3
    assert found("learning_rate") > unchanged
    assert found("momentum") == unchanged
    assert found("momentum", traces_again=True) > unchanged
    assert found("nothing", traces_again=True) == unchanged


@pytest.mark.parametrize(
    "wrap", [lambda inner: inner, tfls.keras.mixed_precision.LossScaleOptimizer]
)
def test_an_average_that_overwrites_the_weights_fails_in_replicas(wrap):
    """`docs/wrappers.md`, `use_ema`."""

    def fit(**options):
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
            model.compile(wrap(tf.keras.optimizers.SGD(0.1, use_ema=True, **options)), "mse")
        model.fit(tf.ones([4, 3]), tf.zeros([4, 1]), verbose=0)

    fit()
    with pytest.raises(RuntimeError, match="`merge_call` called while defining a new graph"):
        fit(ema_overwrite_frequency=3)


def test_compile_wraps_a_plain_optimizer_in_a_class_without_the_names_of_keras_2():
    policy = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    finally:
        tf.keras.mixed_precision.set_global_policy(policy)
    assert type(model.optimizer) is tf.keras.mixed_precision.LossScaleOptimizer
    for name in ("get_scaled_loss", "get_unscaled_gradients", "loss_scale"):
        assert not hasattr(model.optimizer, name)


def public_names(optimizer):
    return {name for name in dir(optimizer) if not name.startswith("_")}


def test_which_methods_of_both_kerases_the_class_has():
    """As docs/drop-in.md says: those of Keras 3 and of Keras 2's new-style optimizers."""
    tf_keras = pytest.importorskip("tf_keras")
    ours = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))

    def missing(keras, sgd):
        wrapped = keras.mixed_precision.LossScaleOptimizer(sgd(0.1))
        return public_names(wrapped) - public_names(ours)

    assert missing(tf.keras, tf.keras.optimizers.SGD) == set()
    assert missing(tf_keras, tf_keras.optimizers.SGD) == set()
    legacy = missing(tf_keras, tf_keras.optimizers.legacy.SGD)
    page = (ROOT / "docs" / "drop-in.md").read_text(encoding="utf-8")
    assert legacy == set(re.findall(r"`(\w+)`", page.partition("but for ")[2].partition(" of")[0]))


@pytest.mark.parametrize(
    ("returned", "shown"), [("loss", 0.0), ("other", 5.0), ("metric", 5.0)], ids=str
)
def test_a_metric_of_keras_3_hides_the_loss_of_a_train_step(returned, shown):
    """`docs/troubleshooting.md`, a loss of 0."""

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.mean = tf.keras.metrics.Mean(name="loss") if returned == "metric" else None

        def call(self, values):
            return values

        def train_step(self, data):
            loss = tf.constant(5.0)
            if self.mean is not None:
                self.mean.update_state(loss)
                return {"loss": self.mean.result()}
            return {returned: loss}

    model = Model()
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    history = model.fit(np.ones((2, 3)), np.ones((2, 3)), verbose=0).history
    assert history["other" if returned == "other" else "loss"] == [shown]


@pytest.mark.filterwarnings("ignore:.*compiled_metrics")
def test_compiled_metrics_of_keras_3_average_the_predictions_as_loss():
    """`docs/troubleshooting.md`: the `train_step` of TensorFlow's guides for Keras 2."""

    class Model(tf.keras.Model):
        def call(self, values):
            return values

        def train_step(self, data):
            points, labels = data
            self.compiled_metrics.update_state(labels, self(points))
            return {metric.name: metric.result() for metric in self.metrics}

    model = Model()
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    history = model.fit(np.full((2, 1), 3.0), np.ones((2, 1)), verbose=0).history
    assert history["loss"] == [3.0]  # and the mean of the squares is 4


def test_later_optimizers_of_keras_2_ignore_lr():
    """`docs/troubleshooting.md` and `docs/guide-keras.md`, TensorFlow 2.11 to 2.15."""
    tf_keras = pytest.importorskip("tf_keras")
    optimizer = tf_keras.optimizers.SGD(lr=0.5)
    assert float(optimizer.learning_rate) == pytest.approx(0.01)


def test_later_optimizers_compute_in_another_way():
    """`docs/troubleshooting.md` and `docs/prove.md`: those from TensorFlow 2.11 on."""
    tf_keras = pytest.importorskip("tf_keras")

    def weight(name, optimizers, gradient):
        variable = tf.Variable(1.0)
        optimizer = getattr(optimizers, name)(0.01)
        for _ in range(20):
            optimizer.apply_gradients([(tf.constant(gradient), variable)])
        return 1.0 - float(variable)

    for later in (tf_keras.optimizers, tf.keras.optimizers):
        legacy = tf_keras.optimizers.legacy
        assert weight("SGD", later, 1e-4) == weight("SGD", legacy, 1e-4)
        assert weight("Adam", later, 1e-4) != weight("Adam", legacy, 1e-4)
        assert weight("Adam", later, 1e-4) == pytest.approx(weight("Adam", legacy, 1e-4), rel=1e-3)
        assert weight("RMSprop", later, 1e-4) < weight("RMSprop", legacy, 1e-4) / 4
        assert weight("RMSprop", later, 1.0) == pytest.approx(weight("RMSprop", legacy, 1.0), 1e-3)
        assert weight("Nadam", later, 1e-4) != pytest.approx(weight("Nadam", legacy, 1e-4), 1e-2)
