"""Four logical CPU devices under one `MirroredStrategy`; imported before TensorFlow is used.

The first argument of the program is the mode: in `graph` everything is built in the graph of
SESSION, otherwise execution is eager.
"""

import functools
import sys

import replicas
import tensorflow as tf

tf1 = tf.compat.v1
MODE = sys.argv[1]
SESSION = None

if MODE == "graph":
    tf1.disable_eager_execution()
    SESSION = tf1.Session(config=tf1.ConfigProto(device_count={"CPU": 4}))
    STRATEGY = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(4)])
else:
    tf1.enable_eager_execution()
    STRATEGY = replicas.mirrored(4)
on_replicas = functools.partial(replicas.run, STRATEGY)
local = functools.partial(replicas.local, STRATEGY)
