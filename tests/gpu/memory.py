"""Peak memory of a step, compared with the original and the plain optimizer."""

from typing import Any, Callable, Dict

import tensorflow as tf

import tf_lossscale as tfls
from gpu.table import NotRun, Setting

__all__ = ["CHECKS"]

tf1 = tf.compat.v1
VARIABLES, SIZE = 20, 5000000


def peak(setting: Setting) -> str:
    """The peak memory is not higher than with the original."""
    measure = getattr(tf.config.experimental, "reset_memory_stats", None)
    if measure is None or not tf.executing_eagerly() or "GPU" not in setting.devices[0]:
        raise NotRun("TensorFlow measures only the memory of GPUs, and only from 2.5 on")
    original = tf1.mixed_precision
    ours = tfls.compat.v1.mixed_precision
    peaks = {
        "bare": _peak(lambda inner: inner, setting.devices[0]),
        "original": _peak(lambda inner: _wrapped(original, inner), setting.devices[0]),
        "ours": _peak(lambda inner: _wrapped(ours, inner), setting.devices[0]),
    }
    if peaks["ours"] > 1.02 * peaks["original"]:
        raise AssertionError(f"peak memory in bytes: {peaks}")
    return ", ".join(f"{name} {each / 2**20:.0f} MiB" for name, each in peaks.items())


def _wrapped(namespace: Any, inner: Any) -> Any:
    return namespace.MixedPrecisionLossScaleOptimizer(inner, namespace.DynamicLossScale(8.0))


def _peak(wrap: Callable[[Any], Any], device: str) -> int:
    with tf.device(device):
        variables = [tf.Variable(tf.ones([SIZE])) for _ in range(VARIABLES)]
        optimizer = wrap(tf1.train.MomentumOptimizer(0.1, 0.9))

        @tf.function
        def step() -> Any:
            optimizer.minimize(
                lambda: tf.add_n([tf.reduce_sum(each * each) for each in variables]),
                var_list=variables,
            )
            return tf.constant(0)

        step()
        tf.config.experimental.reset_memory_stats("GPU:0")
        step()
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


CHECKS: Dict[str, Callable[[Setting], str]] = {"peak memory of a v1 step": peak}
