"""The two namespaces that every contract is held against, and the modes that code runs in."""

import contextlib
import json
import os
from typing import Any, Dict, Iterator, List

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data")
IS_TF1 = tf.__version__.startswith("1.")
TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])


def v1_namespaces() -> Dict[str, Any]:
    return {"original": tf1.train.experimental, "ours": tfls.compat.v1.train.experimental}


def contrib_namespaces() -> Dict[str, Any]:
    ours = {"ours": tfls.contrib.mixed_precision}
    if not IS_TF1:
        return ours
    from tensorflow.contrib import mixed_precision

    return dict(ours, original=mixed_precision)


def sgd() -> Any:
    return tf1.train.GradientDescentOptimizer(0.5)


def contrib_optimizer(inner: Any, *arguments: Any, whose: str = "ours") -> Any:
    """A contrib optimizer, whose manager takes `arguments`, and what reads its loss scale."""
    namespace = contrib_namespaces()[whose]
    manager = namespace.ExponentialUpdateLossScaleManager(*(arguments or (8.0, 2, 1, 2, 0.5)))
    return namespace.LossScaleOptimizer(inner, manager), manager.get_loss_scale


def v1_optimizer(inner: Any, *arguments: Any, whose: str = "ours") -> Any:
    """A v1 optimizer and its dynamic loss scale, which takes `arguments`."""
    namespace = v1_namespaces()[whose]
    scale = namespace.DynamicLossScale(*(arguments or (8.0, 2)))
    return namespace.MixedPrecisionLossScaleOptimizer(inner, scale), scale


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Eager mode, which TensorFlow 1.15 does not start in."""
    if not IS_TF1:
        assert tf.executing_eagerly()
        yield
        return
    from tensorflow.python.eager import context

    with context.eager_mode():
        yield


@contextlib.contextmanager
def graph(control_flow_v2: bool = False) -> Iterator[Any]:
    """A new graph, and a Session on it, with the control flow that is asked for."""
    before = tf1.control_flow_v2_enabled()
    (tf1.enable_control_flow_v2 if control_flow_v2 else tf1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default(), tf1.Session() as session:
            # The functions of control flow v2 cannot take reference variables.
            tf1.get_variable_scope().set_use_resource(control_flow_v2)
            yield session
    finally:
        (tf1.enable_control_flow_v2 if before else tf1.disable_control_flow_v2)()


def trained(session: Any, step: Any, fetches: Any) -> Any:
    """Initializes the variables, takes a step, and returns the values of `fetches`."""
    session.run(tf1.global_variables_initializer())
    session.run(step)
    return session.run(fetches)


def recorded_program(wrapped: Any, inner: Any, resource: bool) -> Any:
    """The program of the recorded files: its step, its factor, and the tensors of its state."""
    variable = tf1.get_variable("v", initializer=[1.0, 2.0, 3.0], use_resource=resource)
    factor = tf1.placeholder(tf.float32, [])
    global_step = tf1.train.get_or_create_global_step()
    loss = tf.reduce_sum(variable * factor)
    step = wrapped.minimize(loss, global_step=global_step, var_list=[variable])
    state = {"v": variable, "global_step": global_step}
    for slot in inner.get_slot_names():
        state["slot_" + slot] = inner.get_slot(variable, slot)
    return step, factor, state


def same(first: Any, second: Any) -> bool:
    """Whether two arrays are equal to the bit; one NaN is as good as another."""
    nan = np.isnan(first)
    if not np.array_equal(nan, np.isnan(second)):
        return False
    return np.where(nan, 0, first).tobytes() == np.where(nan, 0, second).tobytes()


def number(value: Any) -> float:
    """A number of the recorded data, where NaN and infinity are strings."""
    return float(value)


def recorded(name: str) -> List[Dict[str, Any]]:
    with open(os.path.join(DATA, "golden", name + ".json"), encoding="utf-8") as file:
        return json.load(file)["cases"]


def parameters(case: Dict[str, Any]) -> Dict[str, Any]:
    return {k: number(v) if isinstance(v, str) else v for k, v in case["params"].items()}


def optimizer(name: str) -> Any:
    """The optimizers that the recorded files were written with."""
    return {
        "sgd": lambda: tf1.train.GradientDescentOptimizer(0.125),
        "momentum": lambda: tf1.train.MomentumOptimizer(0.125, 0.5),
        "adam": lambda: tf1.train.AdamOptimizer(0.125),
    }[name]()
