"""One of two workers that train under a `MultiWorkerMirroredStrategy`; prints JSON.

Usage: workers.py CLASSES, as for `mirrored.py`. The cluster is in `TF_CONFIG`; the workers talk
over gRPC.
"""

import json
import sys

import mirrored
import replicas
import tensorflow as tf


def train(strategy, cls, optimizer):
    _, worker = replicas.task()
    with strategy.scope():
        variables = mirrored.make_variables()
        opt, scale = mirrored.make(cls, optimizer)

    @tf.function
    def step(factor):
        def replica_step(factor):
            opt.apply_gradients(mirrored.gradients(opt, variables, factor))

        replicas.run(strategy, replica_step, (factor,))

    def local(value):
        return replicas.local(strategy, value)[0].numpy()

    rows = []
    for name, values in mirrored.STEPS:
        step(tf.constant(values[worker]))
        rows.append([name, [local(each).tolist() for each in variables], float(local(scale))])
    return rows


def main():
    tf.compat.v1.enable_eager_execution()
    strategy = replicas.multi_worker()
    print(
        json.dumps(
            {
                f"{cls} {optimizer}": train(strategy, cls, optimizer)
                for cls in sys.argv[1].split(",")
                for optimizer in mirrored.OPTIMIZERS
            }
        )
    )


if __name__ == "__main__":
    main()
