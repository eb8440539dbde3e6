"""One of two workers that train under a `MultiWorkerMirroredStrategy`; prints JSON.

Usage: workers.py CLASSES, as for `mirrored.py`. The cluster is in `TF_CONFIG`; the workers talk
over gRPC.
"""

import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import mirrored
import support
import tensorflow as tf

tf1 = tf.compat.v1


def train(strategy, cls, optimizer):
    run = strategy.run if hasattr(strategy, "run") else strategy.experimental_run_v2
    worker = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    with strategy.scope():
        variables = mirrored.make_variables()
        opt, scale = mirrored.make(cls, optimizer)

    @tf.function
    def step(factor):
        def replica_step(factor):
            opt.apply_gradients(mirrored.gradients(opt, variables, factor))

        run(replica_step, args=(factor,))

    def local(value):
        return strategy.experimental_local_results(value)[0].numpy()

    rows = []
    for name, values in mirrored.STEPS:
        step(tf.constant(values[worker]))
        rows.append([name, [local(each).tolist() for each in variables], float(local(scale))])
    return rows


def main():
    if support.IS_TF1:
        tf1.enable_eager_execution()
    maker = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    strategy = (maker or tf.distribute.experimental.MultiWorkerMirroredStrategy)()
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
