"""Prints what `install()` and `uninstall()` leave in `sys.meta_path` and `sys.modules`, as JSON.

`traces.py keep|replace`: first without a use of what is installed, then with one.
"""

import importlib
import json
import sys

import tensorflow as tf

import tf_lossscale


def use():
    """Takes what is installed, by attributes and by imports."""
    tf.contrib.mixed_precision.LossScaleManager
    importlib.import_module("tensorflow.contrib.tpu").CrossShardOptimizer
    tf.compat.v1.train.experimental.MixedPrecisionLossScaleOptimizer


def modules():
    return {name: id(module) for name, module in sys.modules.items()}


found = {}
for turn in ("unused", "used"):
    finders, known = list(sys.meta_path), modules()
    tf_lossscale.install(replace=sys.argv[1] == "replace")
    if turn == "used":
        use()
    tf_lossscale.uninstall()
    here = modules()
    found[turn] = {
        "finders are as before": sys.meta_path == finders,
        "gone": [name for name in known if name not in here],
        "changed": [name for name in known if here.get(name, known[name]) != known[name]],
        "new": [
            name for name in here if name not in known and name.partition(".")[0] != "tf_lossscale"
        ],
        "supplied": [
            name
            for name, module in list(sys.modules.items())
            if type(module).__name__ == "SyntheticNamespace"
        ],
    }
print(json.dumps(found))
