"""The constructor raises an error if Keras 3 runs on a backend other than TensorFlow."""

from typing import Any

import pytest
import recorded

import tf_lossscale as tfls

KERAS_3 = [each for each in recorded.kinds() if each.name == "keras3"]


@pytest.mark.skipif(not KERAS_3, reason="only Keras 3 has other backends")
def test_another_backend_is_refused(monkeypatch: Any) -> None:
    (kind,) = KERAS_3
    inner = kind.optimizers.SGD(0.5)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner)
    assert optimizer.inner_optimizer is inner
    monkeypatch.setattr(kind.keras.config, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="Keras runs on jax: set the environment variable"):
        tfls.keras.mixed_precision.LossScaleOptimizer(kind.optimizers.SGD(0.5))
    with pytest.raises(RuntimeError, match="Keras runs on jax: set the environment variable"):
        tfls.keras.mixed_precision.experimental.LossScaleOptimizer(
            kind.optimizers.SGD(0.5), "dynamic"
        )
