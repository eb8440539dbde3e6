"""Trains with a v1 or contrib optimizer in a Session; what must not change when it is recorded."""

import contextlib
from typing import Any, Dict, List, NamedTuple

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1

STEPS = 12
NOT_FINITE = (2, 3, 7)


class Outcome(NamedTuple):
    """The results of one training.

    Attributes:
      rows: loss, scale before the step and global step after it, of each step.
      kept: all that must be the same with and without recording.
    """

    rows: List[Any]
    kept: Dict[str, Any]


def classes() -> Dict[str, Any]:
    """The functions that wrap an optimizer, and return it with its loss scale, by name."""

    def contrib(namespace: Any, fixed: bool = False) -> Any:
        def wrap(inner: Any) -> Any:
            manager = (
                namespace.FixedLossScaleManager(64.0)
                if fixed
                else namespace.ExponentialUpdateLossScaleManager(64.0, 3, 2, 2.0, 0.5)
            )
            return namespace.LossScaleOptimizer(inner, manager), manager.get_loss_scale()

        return wrap

    def v1(namespace: Any, fixed: bool = False) -> Any:
        def wrap(inner: Any) -> Any:
            scale = namespace.FixedLossScale(64.0) if fixed else namespace.DynamicLossScale(64.0, 3)
            return namespace.MixedPrecisionLossScaleOptimizer(inner, scale), scale()

        return wrap

    original = getattr(tf1, "mixed_precision", None)
    if not hasattr(original, "MixedPrecisionLossScaleOptimizer"):
        original = tf1.train.experimental
    ours = tfls.compat.v1.mixed_precision
    found = {
        "contrib": contrib(tfls.contrib.mixed_precision),
        "contrib fixed": contrib(tfls.contrib.mixed_precision, fixed=True),
        "v1": v1(ours),
        "v1 original": v1(original),
        "v1 fixed": v1(ours, fixed=True),
        "v1 fixed original": v1(original, fixed=True),
    }
    if tf.__version__.startswith("1."):
        from tensorflow.contrib import mixed_precision

        found["contrib original"] = contrib(mixed_precision)
        found["contrib fixed original"] = contrib(mixed_precision, fixed=True)
    return found


def train(name: str, use_resource: bool, monitored: bool, control_flow_v2: bool) -> Outcome:
    """Trains in a graph of its own."""
    with _control_flow(control_flow_v2), tf.Graph().as_default() as graph:
        tf1.set_random_seed(3)
        images = tf1.placeholder(tf.float32, [None, 4])
        kernel, bias = (
            tf1.get_variable(name, initializer=value, use_resource=use_resource)
            for name, value in (
                ("kernel", np.full([4, 3], 0.1, np.float32)),
                ("bias", np.zeros([3], np.float32)),
            )
        )
        loss = tf.reduce_mean(tf.square(tf.matmul(images, kernel) + bias - 1.0))
        counter = tf1.train.get_or_create_global_step()
        optimizer, scale = classes()[name](tf1.train.AdamOptimizer(0.01))
        step = optimizer.minimize(loss, global_step=counter, name="train_step")
        random = tf.random.normal([2])
        variables = tf1.global_variables()
        keys = sorted(map(str, graph.get_all_collection_keys()))
        operations = [each.name for each in graph.get_operations()]
        rows = []
        with tf1.train.MonitoredSession() if monitored else tf1.Session() as session:
            if not monitored:
                session.run(tf1.global_variables_initializer())
            for number in range(STEPS):
                batch = np.full([2, 4], number * 0.1, np.float32)
                if number in NOT_FINITE:
                    batch[0, 0] = np.inf
                before = session.run(scale, {images: batch})
                value, _ = session.run([loss, step], {images: batch})
                rows.append((float(value), float(before), int(session.run(counter))))
            kept = {
                "names": [each.name for each in variables],
                "values": [each.tolist() for each in session.run(variables)],
                "random": session.run(random).tolist(),
                "step": step.name,
                "collections": keys,
                "operations": [each for each in operations if "tf_lossscale_rec" not in each],
                "rows": rows,
            }
        return Outcome(rows, kept)


@contextlib.contextmanager
def _control_flow(v2: bool) -> Any:
    was_v2 = tf1.control_flow_v2_enabled()
    (tf1.enable_control_flow_v2 if v2 else tf1.disable_control_flow_v2)()
    try:
        yield
    finally:
        (tf1.enable_control_flow_v2 if was_v2 else tf1.disable_control_flow_v2)()
