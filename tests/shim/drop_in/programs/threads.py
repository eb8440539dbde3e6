"""Imports TensorFlow for the first time from several threads at once, each by another name."""

import json
import threading

import tf_lossscale

FIRST_IMPORTS = [
    "import tensorflow as tf; tf.contrib.mixed_precision.LossScaleManager",
    "import tensorflow as tf; tf.contrib.tpu.CrossShardOptimizer",
    "import tf_lossscale as tfls; tfls.install(); tfls.contrib.mixed_precision.LossScaleOptimizer",
    "import tf_lossscale as tfls; tfls.train.experimental.DynamicLossScale(4.0)",
    "import tensorflow as tf; tf.compat.v1.train.experimental.FixedLossScale(2.0)",
    "import tensorflow as tf; tf.keras.mixed_precision.experimental.Policy('float32')",
]
failures = {}
start = threading.Barrier(len(FIRST_IMPORTS))


def first_import(code):
    start.wait()
    try:
        exec(code, {})
    except BaseException as error:
        failures[code] = repr(error)


tf_lossscale.install()
threads = [threading.Thread(target=first_import, args=(code,)) for code in FIRST_IMPORTS]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps(failures))
