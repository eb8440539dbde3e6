"""One worker of a cluster that dies and is started again: `restart.py DIRECTORY [DIE_AT]`.

Each class trains two variables with Momentum, and gradients that depend on the step and the worker;
the last worker overflows in step 1. Each step is saved, and training starts at the last checkpoint
in DIRECTORY. With DIE_AT, the worker first trains without files and prints the result; then it
trains with files, and the last worker kills itself before step DIE_AT; the others wait for it.

Prints as JSON what each class has after each step: its variables and its scale.
"""

import json
import os
import signal
import sys

import numpy as np
import recorded
import replicas
import support
import tensorflow as tf
from cluster import INDEX, STRATEGY, WORKERS, values
from steps import step_of_keras, step_of_v1

import tf_lossscale as tfls

tf1 = tf.compat.v1
STEPS, OVERFLOW = 5, 1
DIRECTORY = os.path.join(sys.argv[1], str(INDEX))
DIE_AT = int(sys.argv[2]) if len(sys.argv) > 2 else None


def cross(inner):
    # Before, files that are written under the strategy lack the powers of TensorFlow's own Adam
    # (`test_powers_of_adam_in_files_of_a_strategy`).
    inner = tf1.train.AdamOptimizer(0.125) if recorded.TF >= (2, 13) else inner
    optimizer, scale = support.v1_optimizer(inner)
    return tfls.compat.v1.tpu.CrossShardOptimizer(optimizer), scale


V1 = {"contrib": support.contrib_optimizer, "cross": cross}  # which is around the v1 optimizer
KINDS = recorded.kinds()
KERAS = {kind.name: kind for kind in (KINDS[0], KINDS[-1])}


class Trained:
    """The variables of one class, its optimizer, and a step on all workers."""

    def __init__(self, name):
        kind = KERAS.get(name)
        with STRATEGY.scope():
            start = np.arange(6.0, dtype=np.float32).reshape([3, 2]), np.float32(0.5)
            if kind is None:
                self.variables = [tf.Variable(value) for value in start]
                optimizer, self._scale = V1[name](tf1.train.MomentumOptimizer(0.125, 0.5))
                step = step_of_v1(optimizer, self.variables, self._loss)
            else:
                self.variables = [recorded.make_variable(kind, value, "v") for value in start]
                inner = kind.optimizers.SGD(0.125, momentum=0.5)
                optimizer = recorded.Subject(kind, "final", "ours").dynamic(inner, 8.0, 2)
                if kind.name == "keras3":
                    optimizer.build(self.variables)
                self._scale = lambda: optimizer.loss_scale
                step = step_of_keras(optimizer, self.variables, self._loss)
        self.optimizer = optimizer
        self.step = tf.function(
            lambda number: (replicas.run(STRATEGY, step, (number,)), None)[1], autograph=False
        )

    def _loss(self, number):
        table, bias = (tf.convert_to_tensor(variable) for variable in self.variables)
        factor = float(INDEX + 1)
        factor = tf.where(
            tf.logical_and(tf.equal(number, OVERFLOW), INDEX == WORKERS - 1), float("inf"), factor
        )
        number = tf.cast(number, tf.float32)
        return tf.reduce_sum(table * [number, 2.0]) * factor + bias * factor * number

    def read(self):
        return values(self.variables), float(tf.convert_to_tensor(self._scale()).numpy())


def train(directory=None, die_at=None):
    everything = {name: Trained(name) for name in [*V1, *KERAS]}
    parts = {}
    for name, part in everything.items():
        parts[name + "_optimizer"] = part.optimizer
        for index, variable in enumerate(part.variables):
            parts[f"{name}_{index}"] = variable
    done = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(done=done, **parts)
    latest = tf.train.latest_checkpoint(directory) if directory else None
    if latest:
        with STRATEGY.scope():
            checkpoint.restore(latest)
    history = {}
    for number in range(int(done.numpy()), STEPS):
        if number == die_at and INDEX == WORKERS - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        for part in everything.values():
            part.step(tf.constant(number))
        done.assign_add(1)
        if directory:
            checkpoint.save(os.path.join(directory, "c"))
        history[str(number)] = {name: part.read() for name, part in everything.items()}
    return history


if DIE_AT is not None:
    print(json.dumps(train()), flush=True)
print(json.dumps(train(DIRECTORY, DIE_AT)))
