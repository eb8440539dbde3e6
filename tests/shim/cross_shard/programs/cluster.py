"""What the programs of several workers share: the strategy, and optimizers to be wrapped."""

import json
import os

import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

__all__ = ["INDEX", "OPTIMIZERS", "RUN", "STRATEGY", "WORKERS", "namespace", "values"]

tf1 = tf.compat.v1
tf1.enable_v2_behavior()
TASK = json.loads(os.environ["TF_CONFIG"])
WORKERS, INDEX = len(TASK["cluster"]["worker"]), TASK["task"]["index"]
STRATEGY = (
    getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    or tf.distribute.experimental.MultiWorkerMirroredStrategy
)()
RUN = getattr(STRATEGY, "run", None) or STRATEGY.experimental_run_v2
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


def values(variables):
    """Returns what this worker's copies hold, as flat lists."""
    copies = [STRATEGY.experimental_local_results(each)[0].numpy() for each in variables]
    return [np.asarray(each, np.float64).ravel().tolist() for each in copies]
