"""Measures the cost of the check between workers in a step, with two workers on loopback.

Steps with and without the check alternate in the same processes. Without the check, nothing
checks that the workers are at the same step. The times of the first worker are reported.
"""

import json
import os
import socket
import subprocess
import sys

from harness import Report, median_times, quiet

quiet()


def main() -> None:
    """Starts the two workers, unless this is one of them."""
    if "TF_CONFIG" in os.environ:
        measure()
        return
    sockets = [socket.socket() for _ in range(2)]
    for sock in sockets:
        sock.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{sock.getsockname()[1]}" for sock in sockets]
    for sock in sockets:
        sock.close()
    workers = []
    for index in range(2):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        arguments = [sys.executable, __file__, *(sys.argv[1:] if index == 0 else [])]
        environment = dict(os.environ, TF_CONFIG=json.dumps(config))
        workers.append(subprocess.Popen(arguments, env=environment))
    sys.exit(max(worker.wait() for worker in workers))


def measure() -> None:
    """Times steps of SGD under the cross-shard optimizer, in a `tf.function`."""
    import tensorflow as tf

    import tf_lossscale as tfls
    from tf_lossscale._replicas import collectives

    tf1 = tf.compat.v1
    report = Report("cross_shard_workers", tf.__version__)
    tf1.enable_v2_behavior()
    newer = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    strategy = (newer or tf.distribute.experimental.MultiWorkerMirroredStrategy)()
    on_replicas = getattr(strategy, "run", None) or strategy.experimental_run_v2
    check = collectives.check_between_workers
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]

    def skip(*_):
        return tf.constant(True)

    for count, size in ((1, 1), (200, 1_000), (20, 500_000)):
        with strategy.scope():
            variables = [tf.Variable(tf.ones([size])) for _ in range(count)]
            inner = tf1.train.GradientDescentOptimizer(0.001)
            optimizer = tfls.compat.v1.tpu.CrossShardOptimizer(inner)

        def step(optimizer=optimizer, variables=variables, size=size):
            optimizer.apply_gradients([(tf.ones([size]), variable) for variable in variables])
            return tf.constant(0.0)

        ways = {}
        for name, way in (("checked", check), ("unchecked", skip)):
            collectives.check_between_workers = way
            function = tf.function(lambda step=step: on_replicas(step), autograph=False)
            function()
            ways[name] = lambda function=function: function()
        collectives.check_between_workers = check
        times = median_times(ways, report.repetitions)
        if index == 0:
            report.add(
                f"{count} x {size}",
                checked_over_unchecked=times["checked"] / times["unchecked"],
                checked_s=times["checked"],
                unchecked_s=times["unchecked"],
            )
    if index == 0:
        report.finish()


if __name__ == "__main__":
    main()
