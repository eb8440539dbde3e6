"""Trains a Keras model in graph mode; prints the monitor's counts, and the logs of the epochs."""

import json
import os
import sys

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS = ("monitoring", "", "tf1", "keras")
sys.path[:0] = [os.path.join(os.path.dirname(_FOLDER), each) for each in _FOLDERS]

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
