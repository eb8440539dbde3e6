"""A step of each family in a session, in a function and under XLA; overflows are skipped."""

import functools
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls
from gpu.table import NotRun, Setting

tf1 = tf.compat.v1
FACTORS = (1.0, 2.0, float("inf"), 3.0)
LEARNING_RATE, MOMENTUM = 0.5, 0.5
SHAPES: Tuple[Tuple[int, ...], ...] = ((), (3,), (2, 4))


def contrib() -> Any:
    manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8.0, 1000, 1)
    inner = tf1.train.MomentumOptimizer(LEARNING_RATE, MOMENTUM)
    return tfls.contrib.mixed_precision.LossScaleOptimizer(inner, manager)


def v1() -> Any:
    namespace = tfls.compat.v1.mixed_precision
    inner = tf1.train.MomentumOptimizer(LEARNING_RATE, MOMENTUM)
    return namespace.MixedPrecisionLossScaleOptimizer(inner, namespace.DynamicLossScale(8.0, 1000))


def keras() -> Any:
    inner = tf.keras.optimizers.SGD(LEARNING_RATE, momentum=MOMENTUM)
    return tfls.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=8.0)


def loss_of(variables: List[Any], factor: Any) -> Any:
    return factor * tf.add_n([tf.reduce_sum(variable * variable) / 8.0 for variable in variables])


def expected() -> List[np.ndarray]:
    """The result of the same steps in NumPy; the third step overflows."""
    weights = [np.ones(shape, np.float32) for shape in SHAPES]
    slots = [np.zeros(shape, np.float32) for shape in SHAPES]
    for factor in FACTORS:
        if np.isfinite(factor):
            for weight, slot in zip(weights, slots):
                slot *= MOMENTUM
                slot += factor * weight / 4.0
                weight -= LEARNING_RATE * slot
    return weights


def in_session(make: Callable[[], Any], setting: Setting) -> str:
    with tf.Graph().as_default(), tf.device(setting.devices[0]):
        variables = [
            tf1.Variable(np.ones(shape, np.float32), use_resource=True) for shape in SHAPES
        ]
        factor = tf1.placeholder(tf.float32, [])
        step = make().minimize(loss_of(variables, factor), var_list=variables)
        with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf1.global_variables_initializer())
            for value in FACTORS:
                session.run(step, {factor: value})
            found = session.run(variables)
    return _compared(found)


def in_function(make: Callable[[], Any], xla: bool, setting: Setting) -> str:
    if not tf.executing_eagerly():
        raise NotRun("this TensorFlow has only Sessions")
    if xla and make is contrib and "GPU" in setting.devices[0]:
        raise NotRun("its int32 variables are on the CPU, where XLA for GPUs cannot read them")
    with tf.device(setting.devices[0]):
        variables = [tf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]
        optimizer = make()
        build = getattr(getattr(optimizer, "inner_optimizer", None), "build", None)
        if build is not None:  # a compiled function must not create these
            optimizer.build(variables)

        def step(factor: Any) -> Any:
            if hasattr(optimizer, "get_scaled_loss"):
                with tf.GradientTape() as tape:
                    loss = optimizer.get_scaled_loss(loss_of(variables, factor))
                gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, variables))
                optimizer.apply_gradients(zip(gradients, variables))
            else:
                optimizer.minimize(lambda: loss_of(variables, factor), var_list=variables)
            return tf.constant(0)

        compiled = tf.function(step)
        if xla:
            compiled(tf.constant(0.0))  # creates the slots, which XLA cannot do; changes nothing
            try:
                compiled = tf.function(step, jit_compile=True)
            except TypeError:
                compiled = tf.function(step, experimental_compile=True)
        for factor in FACTORS:
            compiled(tf.constant(factor))
    return _compared([variable.numpy() for variable in variables])


def _compared(found: List[Any]) -> str:
    for left, right in zip(found, expected()):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    return f"{len(FACTORS)} steps, one skipped"


FAMILIES = {"contrib": contrib, "v1": v1, "Keras": keras}
CHECKS: Dict[str, Callable[[Setting], str]] = {}
for _name, _make in FAMILIES.items():
    if _name != "Keras":
        CHECKS[f"{_name} step in a session"] = functools.partial(in_session, _make)
    CHECKS[f"{_name} step in a function"] = functools.partial(in_function, _make, False)
    CHECKS[f"{_name} step under XLA"] = functools.partial(in_function, _make, True)
