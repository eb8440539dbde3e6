"""What LS405 says of `fit` on Keras 3: which methods it calls, and with which gradients."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import tf_lossscale as tfls  # noqa: E402 - needs TensorFlow

pytestmark = pytest.mark.skipif(
    not tf.keras.__version__.startswith("3."), reason="is about Keras 3"
)

SCALE = 8.0
GRADIENT = 8.0
"""Of the mean of `(2 * w) ** 2` at `w = 1`."""


def test_what_fit_calls():
    seen = {}

    class Inner(tf.keras.optimizers.SGD):
        def apply(self, grads, trainable_variables=None):
            seen["apply of the inner optimizer"] = float(grads[0][0][0])
            return super().apply(grads, trainable_variables)

    class Logging(tfls.keras.mixed_precision.LossScaleOptimizer):
        def scale_loss(self, loss):
            seen["scale_loss"] = float(loss)
            return super().scale_loss(loss)

        def get_scaled_loss(self, loss):
            seen["get_scaled_loss"] = float(loss)
            return super().get_scaled_loss(loss)

        def get_unscaled_gradients(self, grads):
            seen["get_unscaled_gradients"] = grads
            return super().get_unscaled_gradients(grads)

        def minimize(self, *args, **kwargs):
            seen["minimize"] = args
            return super().minimize(*args, **kwargs)

        def apply_gradients(self, grads_and_vars, **kwargs):
            pairs = list(grads_and_vars)
            seen["apply_gradients"] = float(pairs[0][0][0][0])
            return super().apply_gradients(pairs, **kwargs)

    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = tf.keras.Sequential([layer])
    optimizer = Logging(Inner(0.1), dynamic=False, initial_scale=SCALE)
    model.compile(optimizer, "mse", run_eagerly=True)
    model.fit(np.full((2, 1), 2.0, "float32"), np.zeros((2, 1), "float32"), verbose=0)
    assert seen == {
        "scale_loss": 4.0,
        "apply_gradients": GRADIENT * SCALE,
        "apply of the inner optimizer": GRADIENT,
    }
