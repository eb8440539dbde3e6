"""Four logical CPU devices under one `MirroredStrategy`; imported before TensorFlow is used.

The first argument of the program is the mode: in `graph` everything is built in the graph of
SESSION, otherwise execution is eager.
"""

import sys

import tensorflow as tf

__all__ = ["MODE", "REPLICAS", "SESSION", "STRATEGY", "local", "on_replicas"]

tf1 = tf.compat.v1
MODE = sys.argv[1]
REPLICAS = 4
SESSION = None

if MODE == "graph":
    tf1.disable_eager_execution()
    SESSION = tf1.Session(config=tf1.ConfigProto(device_count={"CPU": REPLICAS}))
else:
    tf1.enable_eager_execution()
    config = tf.config.experimental
    config.set_virtual_device_configuration(
        config.list_physical_devices("CPU")[0],
        [config.VirtualDeviceConfiguration() for _ in range(REPLICAS)],
    )
STRATEGY = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(REPLICAS)])


def on_replicas(function, *args):
    run = getattr(STRATEGY, "run", None) or STRATEGY.experimental_run_v2
    return run(function, args=args)


def local(value):
    return list(STRATEGY.experimental_local_results(value))
