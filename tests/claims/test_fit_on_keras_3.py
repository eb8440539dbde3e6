"""What LS405 says of `fit` on Keras 3: which methods it calls, and with which gradients."""

import numpy as np
import pytest

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
