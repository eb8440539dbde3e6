"""Uses what `install(replace=True)` put over the originals; prints what came of it as JSON.

`replaced.py before|after`: installs before or after TensorFlow is imported. Ours are built on the
originals, which stand under paths that ours have taken. Before anything else, `before` names the
final class after `compile` and `fit`: until then nothing has loaded our class, so Keras has gone
through all of its mixed precision with the paths replaced and not one looked at.
"""

import importlib
import json
import sys

import tf_lossscale

if sys.argv[1] == "before":
    tf_lossscale.install(replace=True)
import numpy as np
import tensorflow as tf

if sys.argv[1] == "after":
    tf_lossscale.install(replace=True)

tf1 = tf.compat.v1
tf1.enable_v2_behavior()  # without it TensorFlow 1.15 takes no policy
mixed_precision = tf.keras.mixed_precision
found = {}


def sgd():
    return tf.keras.optimizers.SGD(0.1)


def named_late():
    """Fits a model under `mixed_float16`, then returns whose the final class is by each path."""
    mixed_precision.set_global_policy("mixed_float16")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype="float32")])
    model.compile(sgd(), "mse")
    model.fit(np.zeros((4, 3), "float32"), np.zeros((4, 1), "float32"), verbose=0)
    mixed_precision.set_global_policy("float32")
    modules = {
        "tf.keras": tf.keras.mixed_precision,
        "from tensorflow.keras": importlib.import_module("tensorflow.keras.mixed_precision"),
        "tf.compat.v2.keras": tf.compat.v2.keras.mixed_precision,
    }
    whose = {path: module.LossScaleOptimizer.__module__ for path, module in modules.items()}
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(sgd())
    modules_of_bases = {vars(base).get("__module__") for base in type(optimizer).__mro__}
    return {**whose, "instance": "tf_lossscale._keras.final" in modules_of_bases}


TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
if sys.argv[1] == "before" and TF_VERSION >= (2, 4):
    found["named late"] = named_late()


def lineage(optimizer):
    """Returns the packages that the classes of an optimizer come from, ours first."""
    assert isinstance(optimizer, type(sgd()).__mro__[-2]), type(optimizer).__mro__
    bases = [base for base in type(optimizer).__mro__ if base.__name__.startswith("LossScale")]
    return [vars(base).get("__module__", "").split(".")[0] for base in bases]


if hasattr(mixed_precision, "LossScaleOptimizer"):
    optimizer = mixed_precision.LossScaleOptimizer(sgd())
    assert isinstance(optimizer, mixed_precision.LossScaleOptimizer)
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    found["final"] = lineage(optimizer)
    assert mixed_precision.global_policy().name == "float32"

experimental = mixed_precision.experimental.LossScaleOptimizer(sgd(), "dynamic")
assert isinstance(experimental, mixed_precision.experimental.LossScaleOptimizer)
found["experimental"] = lineage(experimental)

context = importlib.import_module("tensorflow.python.tpu.tpu_function").tpu_shard_context
with tf.Graph().as_default() as graph, context(2):
    w = tf1.get_variable("w", initializer=1.0, use_resource=True)
    tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer()).minimize(
        w * tf1.tpu.cross_replica_sum(w)
    )
    operations = [node.op for node in graph.as_graph_def().node]
# One for the call, one for its gradient, one for the gradient of the weight.
found["sums"] = operations.count("CrossReplicaSum")
print(json.dumps(found))
