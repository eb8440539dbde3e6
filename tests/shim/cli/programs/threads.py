"""Imports TensorFlow for the first time from several threads at once, each by another name.

`threads.py SEED`, below a script of `tf-lossscale run`. Prints what failed as JSON; ends with the
stack of every thread where they wait for each other.
"""

import faulthandler
import json
import random
import sys
import threading
import time

FIRST_IMPORTS = [
    "import tensorflow as tf; tf.contrib.mixed_precision.LossScaleManager",
    "import tensorflow as tf; tf.contrib.tpu.CrossShardOptimizer",
    "import tensorflow.contrib.mixed_precision as m; m.LossScaleManager",
    "from tensorflow.contrib.tpu import CrossShardOptimizer",
    "import tf_lossscale",
    "import tf_lossscale as tfls; tfls.install(); tfls.contrib.mixed_precision.LossScaleOptimizer",
    "import tf_lossscale as tfls; tfls.train.experimental.DynamicLossScale(4.0)",
    "import tensorflow as tf; tf.compat.v1.train.experimental.FixedLossScale(2.0)",
    "import tensorflow as tf; tf.keras.mixed_precision.experimental.Policy('float32')",
]
# In 1.15 these are TensorFlow's own modules, and while TensorFlow is half imported another thread
# does not find them, with or without us.
if sys.version_info < (3, 8):
    own = ("tf.contrib", "tensorflow.contrib")
    FIRST_IMPORTS = [
        statement for statement in FIRST_IMPORTS if not any(name in statement for name in own)
    ]
failures = {}
start = threading.Barrier(len(FIRST_IMPORTS))


def first_import(code, delay):
    start.wait()
    time.sleep(delay)
    try:
        exec(code, {})
    except BaseException as error:
        failures[code] = repr(error)


faulthandler.dump_traceback_later(400, exit=True)
chance = random.Random(int(sys.argv[1]))
chance.shuffle(FIRST_IMPORTS)
threads = [
    threading.Thread(target=first_import, args=(code, chance.choice([0, 0, 0.0001, 0.001, 0.01])))
    for code in FIRST_IMPORTS
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
faulthandler.cancel_dump_traceback_later()
print(json.dumps(failures))
