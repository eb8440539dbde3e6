"""The errors that legacy code raises on the TensorFlow that runs this.

    python messages.py > ../messages/seen-2.4.json    (and so on, for each version in the manifest)

`docs/troubleshooting.md` explains these messages; its test provokes them on the current TensorFlow
and reads those of older versions from the files.
"""

import json
import os
import re
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")

WRAPPED = "opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())\n"
PROGRAMS = {
    "contrib": "tf.contrib.mixed_precision.FixedLossScaleManager(8.0)",
    "contrib import": "from tensorflow.contrib.mixed_precision import FixedLossScaleManager\n"
    "FixedLossScaleManager(8.0)",
    "contrib of v1": "tf.compat.v1.contrib.mixed_precision.FixedLossScaleManager(8.0)",
    "graph rewrite": "tf.train.experimental.enable_mixed_precision_graph_rewrite("
    "tf.compat.v1.train.GradientDescentOptimizer(0.1))",
    "graph rewrite of Keras": "opt = tf.keras.optimizers.SGD()\n"
    "tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt)",
    "loss scale": "tf.mixed_precision.experimental.DynamicLossScale()",
    "loss scale of train": "tf.train.experimental.DynamicLossScale()",
    "experimental": "tf.keras.mixed_precision.experimental.LossScaleOptimizer("
    "tf.keras.optimizers.SGD(), 'dynamic')",
    "experimental import": "from tensorflow.keras.mixed_precision import experimental\n"
    "experimental.LossScaleOptimizer(tf.keras.optimizers.SGD(), 'dynamic')",
    "set_policy": "tf.keras.mixed_precision.set_policy('float32')",
    "loss_scale called": WRAPPED + "opt.loss_scale()",
    "loss_scale called in a function": WRAPPED + "tf.function(lambda: opt.loss_scale())()",
    "loss_scale": WRAPPED + "opt.loss_scale",
    "get_scaled_loss": WRAPPED + "opt.get_scaled_loss(tf.constant(1.0))",
    "get_unscaled_gradients": WRAPPED + "opt.get_unscaled_gradients([tf.constant(1.0)])",
    "minimize": WRAPPED + "v = tf.Variable(1.0)\nopt.minimize(lambda: v * 1.0, [v])",
    "fixed scale": "tf.keras.mixed_precision.LossScaleOptimizer("
    "tf.keras.optimizers.SGD(), dynamic=False, initial_scale=8.0)",
    "loss_scale argument": "tf.keras.mixed_precision.LossScaleOptimizer("
    "tf.keras.optimizers.SGD(), loss_scale='dynamic')",
    "dynamic as a string": "tf.keras.mixed_precision.LossScaleOptimizer("
    "tf.keras.optimizers.SGD(), 'dynamic')",
    "policy argument": "tf.keras.mixed_precision.Policy('mixed_float16', loss_scale='dynamic')",
    "policy attribute": "tf.keras.mixed_precision.Policy('mixed_float16').loss_scale",
    "subclass": "class Mine(tf.keras.mixed_precision.LossScaleOptimizer):\n    pass\n"
    "Mine(tf.keras.optimizers.SGD())",
    "subclass with a constructor": "class Mine(tf.keras.mixed_precision.LossScaleOptimizer):\n"
    "    def __init__(self, opt):\n        super().__init__(opt)\nMine(tf.keras.optimizers.SGD())",
    "gradients that are summed": WRAPPED + "v = tf.Variable(1.0)\n"
    "opt.apply_gradients([(v * 1.0, v)], experimental_aggregate_gradients=False)",
    "sum": "tf.compat.v1.tpu.cross_replica_sum(tf.constant([1.0]))",
    "sum in a graph": "with tf.Graph().as_default(), tf.compat.v1.Session() as session:\n"
    "    session.run(tf.compat.v1.tpu.cross_replica_sum(tf.constant([1.0])))",
    "strategy": "strategy = tf.distribute.experimental.CentralStorageStrategy("
    "['/cpu:0'], '/cpu:0')\n"
    "with strategy.scope():\n"
    "    tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())",
    "hypers": WRAPPED + "opt._decayed_lr('float32')",
}


def message_of(program):
    """Class and message of what a program raises, without places; empty if it runs."""
    try:
        exec("import tensorflow as tf\n" + program, {"__name__": "program"})
    except Exception as error:
        lines = str(error).splitlines()
        named = [line for line in lines if "No OpKernel" in line] or lines[:1]
        text = f"{type(error).__name__}: {named[0]}"
        return re.sub("0x[0-9a-f]+", "0x…", text).replace(sys.prefix, "…")
    return ""


def main():
    import tensorflow as tf

    found = {
        "tf": tf.__version__,
        "python": sys.version.split()[0],
        "messages": {name: message_of(program) for name, program in PROGRAMS.items()},
    }
    print(json.dumps(found, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
