"""What loss scaling costs in a step, with the original and with ours: time and peak memory."""

import functools
import gc
from typing import Any, Callable, Dict

import tensorflow as tf

import tf_lossscale as tfls
from gpu.table import NotRun, Setting, medians

tf1 = tf.compat.v1
MANY, LARGE, SMALL = (200, 1000), (20, 5000000), (4, 1000)
CALLS = 101

Wrap = Callable[[Any], Any]


def v1_wrappers() -> Dict[str, Wrap]:
    """The plain optimizer, the original and ours; each takes an inner optimizer."""

    def wrap(namespace: Any, inner: Any) -> Any:
        scale = namespace.DynamicLossScale(8.0)
        return namespace.MixedPrecisionLossScaleOptimizer(inner, scale)

    return _wrappers(wrap, tf1.mixed_precision, tfls.compat.v1.mixed_precision)


def keras_wrappers() -> Dict[str, Wrap]:
    """The same for the final class of Keras."""
    if not hasattr(tf.keras.mixed_precision, "LossScaleOptimizer"):
        raise NotRun("needs TensorFlow 2.4 or newer")

    def wrap(namespace: Any, inner: Any) -> Any:
        return namespace.LossScaleOptimizer(inner, initial_scale=8.0)

    return _wrappers(wrap, tf.keras.mixed_precision, tfls.keras.mixed_precision)


def _wrappers(wrap: Callable[[Any, Any], Any], original: Any, ours: Any) -> Dict[str, Wrap]:
    return {
        "plain": lambda inner: inner,
        "original": functools.partial(wrap, original),
        "ours": functools.partial(wrap, ours),
    }


def v1_step(wrap: Wrap, count: int, size: int) -> Callable[[], Any]:
    """One compiled step of Momentum; its result is there once the step has ended."""
    variables = [tf.Variable(tf.ones([size])) for _ in range(count)]
    optimizer = wrap(tf1.train.MomentumOptimizer(1e-3, 0.9))

    @tf.function
    def step() -> Any:
        optimizer.minimize(
            lambda: tf.add_n([tf.reduce_sum(variable * variable) for variable in variables]),
            var_list=variables,
        )
        return variables[-1].read_value()[0]

    return step


def keras_step(wrap: Wrap, count: int, size: int) -> Callable[[], Any]:
    """The same with Keras's SGD and momentum; with Keras 3 as its `fit` does it."""
    variables = [tf.Variable(tf.ones([size])) for _ in range(count)]
    optimizer = wrap(tf.keras.optimizers.SGD(1e-3, momentum=0.9))
    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    in_one = hasattr(tf.keras.mixed_precision.LossScaleOptimizer, "scale_loss")

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(variable * variable) for variable in variables])
            if hasattr(optimizer, "inner_optimizer"):
                loss = optimizer.scale_loss(loss) if in_one else optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(loss, variables)
        if hasattr(optimizer, "inner_optimizer") and not in_one:
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(list(zip(gradients, variables)))
        return variables[-1].read_value()[0]

    return step


def duration(make: Callable[..., Any], wrappers: Callable[[], Any], setting: Setting) -> str:
    """The median time of a plain step, and what the original and ours add to it."""
    if not tf.executing_eagerly():
        raise NotRun("this TensorFlow has only Sessions")
    shown = []
    for count, size in (MANY, LARGE) if setting.large else (SMALL,):
        gc.collect()
        with tf.device(setting.devices[0]):
            steps = {name: make(wrap, count, size) for name, wrap in wrappers().items()}
            ways = {name: lambda step=step: step().numpy() for name, step in steps.items()}
            median = medians(ways, CALLS if setting.large else 3, first=2)
        added = [f"{name} {median[name] - median['plain']:+.2f}" for name in ("original", "ours")]
        shown.append(f"{count} x {size:,}: plain {median['plain']:.2f} ms, {', '.join(added)}")
    return "; ".join(shown)


def peak(setting: Setting) -> str:
    """The peak memory is not higher than with the original."""
    measure = getattr(tf.config.experimental, "reset_memory_stats", None)
    if measure is None or not tf.executing_eagerly() or "GPU" not in setting.devices[0]:
        raise NotRun("TensorFlow measures only the memory of GPUs, and only from 2.5 on")
    peaks = {name: _peak(wrap, setting.devices[0]) for name, wrap in v1_wrappers().items()}
    if peaks["ours"] > 1.02 * peaks["original"]:
        raise AssertionError(f"peak memory in bytes: {peaks}")
    return ", ".join(f"{name} {peak / 2**20:.0f} MiB" for name, peak in peaks.items())


def _peak(wrap: Wrap, device: str) -> int:
    gc.collect()  # the variables of the one before, which would count
    with tf.device(device):
        step = v1_step(wrap, *LARGE)
        step()
        tf.config.experimental.reset_memory_stats("GPU:0")
        step()
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


CHECKS: Dict[str, Callable[[Setting], str]] = {
    "peak memory of a v1 step": peak,
    "time of a v1 step": functools.partial(duration, v1_step, v1_wrappers),
    "time of a Keras step": functools.partial(duration, keras_step, keras_wrappers),
}
