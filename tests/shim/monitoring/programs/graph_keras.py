"""Trains a Keras model in graph mode; prints the monitor's counts, and the logs of the epochs."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import tensorflow as tf

tf.compat.v1.disable_eager_execution()

import watched

import tf_lossscale as tfls

monitors = []


def callbacks(optimizer):
    monitors.append(tfls.monitoring.Monitor(optimizer))
    return [monitors[0].keras_callback()]


history, _, _ = watched.fit(callbacks, kind=watched.KERAS_KINDS["legacy"])
print(json.dumps([*monitors[0].counts(), history["skipped_steps"]]))
