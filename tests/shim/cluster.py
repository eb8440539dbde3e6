"""What the programs of several workers share: the strategy, and optimizers to be wrapped.

Workers have a Session, on SERVER with CONFIG, if the last argument ends with `session`.
"""

import functools
import sys

import numpy as np
import replicas
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
IN_SESSION = sys.argv[-1].endswith("session")
if IN_SESSION:
    tf1.disable_eager_execution()
else:
    tf1.enable_v2_behavior()
WORKERS, INDEX = replicas.task()
STRATEGY = replicas.multi_worker()
SERVER, CONFIG = replicas.serve(STRATEGY) if IN_SESSION else (None, None)
RUN = functools.partial(replicas.run, STRATEGY)
namespace = tfls.compat.v1.tpu


class Assigning(tf1.train.Optimizer):
    """Does the whole step by itself, as the optimizer of BERT does."""

    def __init__(self, rate):
        super().__init__(False, "Assigning")
        self._rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        steps = [
            variable.assign_sub(tf.cast(self._rate, gradient.dtype) * gradient)
            for gradient, variable in grads_and_vars
        ]
        return tf.group(steps, name=name)


OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.5, 0.5),
    "assigning": lambda: Assigning(0.5),
}


def local(value):
    """What this worker holds, or returned."""
    value = getattr(value, "_value", value)  # of Keras 3, within
    return replicas.local(STRATEGY, value)[0]


def values(variables):
    """Returns what this worker's copies hold, as flat lists."""
    return [
        np.asarray(local(variable).numpy(), np.float64).ravel().tolist() for variable in variables
    ]
