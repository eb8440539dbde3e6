"""Compares CrossShardOptimizer with `all_reduce` of the strategy, on four logical CPU devices.

`all_reduce` sums the gradients with `ReplicaContext.all_reduce`; `step` is `apply_gradients` of the
cross-shard optimizer, and `packed` its sum with our own collectives, used for subgroups and
optimizers that override `apply_gradients`. `plain` is the update alone: the inner optimizer with
gradients that need no sum.
"""

from harness import Report, median_times, quiet

quiet()

import tensorflow as tf

import tf_lossscale as tfls
from tf_lossscale._replicas.shards import Call, current_shards
from tf_lossscale._v1.sums import sum_packed
from tf_lossscale._versions.replicas import already_summed

tf1 = tf.compat.v1
REPLICAS = 4


def main() -> None:
    """Runs both sizes."""
    report = Report("cross_shard", tf.__version__)
    tf1.enable_eager_execution()
    config = tf.config.experimental
    config.set_virtual_device_configuration(
        config.list_physical_devices("CPU")[0],
        [config.VirtualDeviceConfiguration() for _ in range(REPLICAS)],
    )
    strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(REPLICAS)])
    on_replicas = getattr(strategy, "run", None) or strategy.experimental_run_v2
    for count, size in ((200, 1_000), (20, 500_000)):
        with strategy.scope():
            variables = [tf.Variable(tf.ones([size])) for _ in range(count)]
            inner = tf1.train.GradientDescentOptimizer(0.001)
            optimizer = tfls.compat.v1.tpu.CrossShardOptimizer(inner)

        def gradients(count=count, size=size):
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            value = tf.cast(number + 1, tf.float32)
            return [tf.fill([size], value + index) for index in range(count)]

        def total(sums):
            return tf.add_n([copies[0] for copies in sums])

        def all_reduce(gradients=gradients):
            context = tf.distribute.get_replica_context()
            return total(context.all_reduce(tf.distribute.ReduceOp.SUM, gradients()))

        def packed(gradients=gradients):
            shards = current_shards("benchmark")
            call = Call("benchmark", "benchmark", 0)
            return total(sum_packed(gradients(), shards, call))

        def one_by_one(gradients=gradients):
            return total([tfls.contrib.tpu.cross_replica_sum(gradient) for gradient in gradients()])

        def step(gradients=gradients, optimizer=optimizer, variables=variables):
            optimizer.apply_gradients(zip(gradients(), variables))
            return tf.constant(0.0)

        def plain(gradients=gradients, inner=inner, variables=variables):
            with already_summed([inner]):
                inner.apply_gradients(zip(gradients(), variables))
            return tf.constant(0.0)

        ways = {}
        for way in (all_reduce, packed, one_by_one, step, plain):
            run = tf.function(lambda way=way: on_replicas(way), autograph=False)
            ways[way.__name__] = lambda run=run: strategy.experimental_local_results(run())
        times = median_times(ways, report.repetitions)
        report.add(
            f"{count} x {size}",
            step_over_all_reduce=(times["step"] - times["plain"]) / times["all_reduce"],
            packed_over_all_reduce=times["packed"] / times["all_reduce"],
            **{name + "_s": seconds for name, seconds in times.items()},
        )
    report.finish()


if __name__ == "__main__":
    main()
