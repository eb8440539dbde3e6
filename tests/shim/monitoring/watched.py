"""Our optimizers that are monitored, and a model that is trained with one."""

import contextlib

import numpy as np
import recorded
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
INF = float("inf")


def v1():
    return support.v1_optimizer(tf1.train.MomentumOptimizer(0.5, 0.5), 16.0, 3)[0]


def contrib():
    return support.contrib_optimizer(tf1.train.AdamOptimizer(0.5), 16.0, 3, 1, 2, 0.5)[0]


TF1_FAMILIES = {"v1": v1, "contrib": contrib}


def keras(kind, **arguments):
    inner = kind.optimizers.SGD(learning_rate=0.5, momentum=0.5, name="inner", **arguments)
    cls = tfls.keras.mixed_precision.LossScaleOptimizer
    return cls(inner, initial_scale=16.0, dynamic_growth_steps=3)


KIND = recorded.kinds()[-1]
KERAS_KINDS = {kind.name: kind for kind in recorded.kinds()}


def model(kind, optimizer):
    keras = kind.keras
    inputs = keras.layers.Input((2,))
    outputs = keras.layers.Dense(1, use_bias=False, name="dense", kernel_initializer="ones")(inputs)
    made = keras.Model(inputs, outputs)
    made.compile(optimizer, "mse")
    return made


def fit(callbacks, epochs=2, kind=KIND):
    """Four batches of one sample each, of which the second one is infinite."""
    x = np.ones((4, 2), "float32")
    x[1] = INF
    optimizer = keras(kind)
    made = model(kind, optimizer)
    arguments = {"batch_size": 1, "epochs": epochs, "shuffle": False, "verbose": 0}
    history = made.fit(x, np.zeros((4, 1), "float32"), callbacks=callbacks(optimizer), **arguments)
    return history.history, made.get_weights(), optimizer


@contextlib.contextmanager
def mixed_float16(keras):
    """Sets the policy; yields the arguments that layers need in TensorFlow 1.15, which has none."""
    namespace = keras.mixed_precision
    if support.IS_TF1:
        yield {"dtype": namespace.experimental.Policy("mixed_float16")}
        return
    is_final = hasattr(namespace, "set_global_policy")
    set_policy = namespace.set_global_policy if is_final else namespace.experimental.set_policy
    set_policy("mixed_float16")
    try:
        yield {}
    finally:
        set_policy("float32")
