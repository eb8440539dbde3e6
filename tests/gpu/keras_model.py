"""A Keras model in mixed precision: it trains, and steps that overflow are skipped."""

from typing import Any, Callable, Dict

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls
from gpu.table import NotRun, Setting


def mixed_model(setting: Setting) -> str:
    if not hasattr(tf.keras.mixed_precision, "set_global_policy"):
        raise NotRun("needs TensorFlow 2.4 or newer")
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        with tf.device(setting.devices[0]):
            return _train()
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


def _train() -> str:
    tf.random.set_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.InputLayer((8,)),
            layers.Dense(16, activation="relu"),
            layers.Dense(1, dtype="float32"),
        ]
    )
    inner = tf.keras.optimizers.SGD(0.05)
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=1024.0)
    model.compile(optimizer, "mse")
    inputs = np.random.RandomState(1).normal(size=(64, 8)).astype(np.float32)
    targets = inputs.sum(axis=1, keepdims=True) / 4.0
    history = model.fit(inputs, targets, batch_size=16, epochs=8, verbose=0).history["loss"]
    if not history[-1] < 0.8 * history[0]:
        raise AssertionError(f"the loss went from {history[0]:.4f} to {history[-1]:.4f}")
    before, scale = model.get_weights(), _scale(optimizer)
    model.fit(np.full((16, 8), 1e5, np.float32), targets[:16], batch_size=16, verbose=0)
    if not all(np.array_equal(*pair) for pair in zip(before, model.get_weights())):
        raise AssertionError("a step that overflowed was applied")
    if _scale(optimizer) != scale / 2:
        raise AssertionError(f"the loss scale went from {scale} to {_scale(optimizer)}")
    return f"loss {history[0]:.3f} to {history[-1]:.3f}, an overflow was skipped"


def _scale(optimizer: Any) -> float:
    return float(optimizer.loss_scale)


CHECKS: Dict[str, Callable[[Setting], str]] = {"mixed_float16 model, fit": mixed_model}
