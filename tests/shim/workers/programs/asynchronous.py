"""Steps of several workers at the same time on one scale: `asynchronous.py FAMILY WHO`.

A parameter server and three workers, which are threads of this process with a Session and a graph
each, on loopback. The first worker has steps that overflow, the others only finite ones, and the
scale never grows. Prints how many overflows there were, and by how many halvings the scale has
changed.
"""

import json
import os
import sys
import threading
import traceback
from typing import Any

import numpy as np
import processes
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
FAMILY, WHO = sys.argv[1:3]
INITIAL, OVERFLOWS, WORKERS, NEVER = 2.0**120, 60, 3, 10**6
if not tf.__version__.startswith("1."):
    tf1.disable_eager_execution()


def contrib_optimizer(inner: Any) -> Any:
    if WHO == "ours":
        namespace = tfls.contrib.mixed_precision
    else:
        from tensorflow.contrib import mixed_precision as namespace
    manager = namespace.ExponentialUpdateLossScaleManager(
        INITIAL, NEVER, decr_every_n_nan_or_inf=1, decr_ratio=0.5
    )
    return namespace.LossScaleOptimizer(inner, manager)


def v1_optimizer(inner: Any) -> Any:
    namespace = (tfls.compat.v1 if WHO == "ours" else tf1).train.experimental
    loss_scale = namespace.DynamicLossScale(INITIAL, NEVER)
    return namespace.MixedPrecisionLossScaleOptimizer(inner, loss_scale)


WRAP = {"contrib": contrib_optimizer, "v1": v1_optimizer}[FAMILY]


class Cluster:
    """The servers, and what the workers wait for and find."""

    def __init__(self):
        ports = processes.free_ports(WORKERS + 1)
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self.spec = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
        self.parameters = tf1.train.Server(self.spec, "ps", 0)
        self.workers = [tf1.train.Server(self.spec, "worker", i) for i in range(WORKERS)]
        self.meeting = threading.Barrier(WORKERS)
        # TensorFlow 2.15 has crashed where three threads built their graphs at the same time.
        self.building = threading.Lock()
        self.is_over = threading.Event()
        self.halvings = 0.0

    def work(self, index: int):
        try:
            self.train(index)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)  # the other workers would wait forever

    def train(self, index: int):
        device = tf1.train.replica_device_setter(
            cluster=self.spec, worker_device=f"/job:worker/task:{index}"
        )
        with tf.Graph().as_default(), tf1.device(device):
            with self.building:
                overflows, step, scale = self.build()
            with tf1.Session(self.workers[index].target) as session:
                if index == 0:
                    session.run(tf1.global_variables_initializer())
                self.meeting.wait()
                if index == 0:
                    self.overflow(session, step, overflows)
                    self.is_over.set()
                while not self.is_over.is_set():
                    session.run(step, {overflows: False})
                self.meeting.wait()
                if index == 0:
                    self.halvings = float(np.log2(INITIAL / session.run(scale)))
                self.meeting.wait()

    def build(self) -> Any:
        """Returns whether to overflow, a step, and the loss scale."""
        weight = tf1.get_variable("weight", [4], initializer=tf1.zeros_initializer())
        overflows = tf1.placeholder(tf.bool, [])
        factor = tf.where(overflows, np.float32("nan"), np.float32(1e-36))
        loss = tf.reduce_sum(weight * factor)
        step = WRAP(tf1.train.MomentumOptimizer(0.5, 0.5)).minimize(loss)
        scale = next(v for v in tf1.global_variables() if "loss_scale" in v.name)
        return overflows, step, scale

    def overflow(self, session: Any, step: Any, overflows: Any):
        for _ in range(OVERFLOWS):
            for is_bad in (True, False, False):
                session.run(step, {overflows: is_bad})


def main():
    cluster = Cluster()
    workers = [threading.Thread(target=cluster.work, args=(i,)) for i in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(json.dumps([OVERFLOWS, cluster.halvings]))
    sys.stdout.flush()
    os._exit(0)  # TensorFlow cannot stop a server


if __name__ == "__main__":
    main()
