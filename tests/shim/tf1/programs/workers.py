"""One of two workers that train under a `MultiWorkerMirroredStrategy`; prints JSON.

Usage: workers.py FAMILIES. The cluster is in `TF_CONFIG`; the workers talk over gRPC.
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


def train(strategy, family):
    run = strategy.run if hasattr(strategy, "run") else strategy.experimental_run_v2
    worker = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    with strategy.scope():
        variable = tf1.Variable([1.0, 1.0], use_resource=True)
        opt, scale = mirrored.make(family, "ours")

    @tf.function
    def step(factor):
        def replica_step(factor):
            pairs = opt.compute_gradients(lambda: tf.reduce_sum(variable), [variable])
            opt.apply_gradients([(gradient * factor, each) for gradient, each in pairs])

        run(replica_step, args=(factor,))

    def local(value):
        return strategy.experimental_local_results(value)[0].numpy()

    rows = []
    for name, values in mirrored.STEPS:
        step(tf.constant(values[worker]))
        rows.append([name, local(variable).tolist(), float(local(scale))])
    return rows


def main():
    if support.IS_TF1:
        tf1.enable_eager_execution()
    maker = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    strategy = (maker or tf.distribute.experimental.MultiWorkerMirroredStrategy)()
    print(json.dumps({family: train(strategy, family) for family in sys.argv[1].split(",")}))


if __name__ == "__main__":
    main()
