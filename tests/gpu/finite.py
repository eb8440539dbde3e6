"""The finite check: results for each float dtype, and speed compared with the originals."""

import functools
from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow as tf

from gpu.table import Setting, medians
from tf_lossscale._core.finite import all_finite

tf1 = tf.compat.v1
DTYPES = (tf.float16, tf.bfloat16, tf.float32)
LARGE, SMALL = (50, 1000000), (4, 1000)
CALLS = 31


def answers(dtype: Any, setting: Setting) -> str:
    """Infinities and NaN are detected; finite gradients whose sum overflows count as finite."""
    largest = float(np.finfo(np.float16).max) if dtype == tf.float16 else 3.0e38
    cases = {
        "finite": ([1.0, -2.0, 0.5], True),
        "sum overflows": ([largest, largest, largest], True),
        "infinity": ([1.0, float("inf"), 0.5], False),
        "negative infinity": ([float("inf"), float("-inf"), 0.5], False),
        "NaN": ([1.0, float("nan"), 0.5], False),
    }
    for name, (values, expected) in cases.items():
        for mode, answer in _modes(values, dtype, setting.devices[0]).items():
            if answer != expected:
                raise AssertionError(f"{name} ({mode}): {answer}")
    return f"{len(cases)} cases"


def _modes(values: List[float], dtype: Any, device: str) -> Dict[str, bool]:
    found = {}
    with tf.Graph().as_default(), tf.device(device):
        fed = tf1.placeholder(tf.float32, [3])
        answer = all_finite([tf.cast(fed, dtype), tf.cast(tf.ones([2]), dtype)])
        with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
            found["session"] = bool(session.run(answer, {fed: values}))
    if tf.executing_eagerly():
        with tf.device(device):
            gradients = [tf.cast(tf.constant(values), dtype), tf.cast(tf.ones([2]), dtype)]
            found["eager"] = bool(all_finite(gradients))
            found["function"] = bool(tf.function(all_finite)(gradients))
    return found


def speed(dtype: Any, setting: Setting) -> str:
    """Compares the time of the check with the originals' check and with a plain sum."""
    if not tf.executing_eagerly():
        return _ratios(_session_ways(dtype, setting))
    with tf.device(setting.devices[0]):
        count, size = LARGE if setting.large else SMALL
        gradients = [tf.cast(tf.random.normal([size]), dtype) for _ in range(count)]
        functions = {name: tf.function(way) for name, way in WAYS.items()}
        return _ratios(
            {name: lambda run=run: run(gradients).numpy() for name, run in functions.items()}
        )


def _session_ways(dtype: Any, setting: Setting) -> Dict[str, Callable[[], Any]]:
    count, size = LARGE if setting.large else SMALL
    with tf.Graph().as_default(), tf.device(setting.devices[0]):
        gradients = [
            tf1.Variable(tf.cast(tf1.random_normal([size]), dtype), use_resource=True).read_value()
            for _ in range(count)
        ]
        results = {name: way(gradients) for name, way in WAYS.items()}
        session = tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True))
        session.run(tf1.global_variables_initializer())
        return {name: session.make_callable(result) for name, result in results.items()}


def _originals(gradients: List[Any]) -> Any:
    return tf1.reduce_all(
        tf.stack([tf1.reduce_all(tf1.is_finite(_testable(gradient))) for gradient in gradients])
    )


def _testable(gradient: Any) -> Any:
    return tf.cast(gradient, tf.float32) if gradient.dtype == tf.bfloat16 else gradient


def _bare_sum(gradients: List[Any]) -> Any:
    return tf.add_n([tf1.reduce_sum(gradient) for gradient in gradients])


WAYS = {"original": _originals, "ours": all_finite, "sum": _bare_sum}


def _ratios(ways: Dict[str, Callable[[], Any]]) -> str:
    median = medians(ways, CALLS + 3, first=3)
    return "{:.3f} ms; original / ours {:.2f}, ours / bare sum {:.2f}".format(
        median["ours"], median["original"] / median["ours"], median["ours"] / median["sum"]
    )


CHECKS = {
    **{f"finite check, {dtype.name}": functools.partial(answers, dtype) for dtype in DTYPES},
    **{
        f"speed of the finite check, {dtype.name}": functools.partial(speed, dtype)
        for dtype in DTYPES
    },
}
