"""In a TPU program ours builds the graph that the original builds, node for node.

No TPU runs here: equality of the graphs is as far as this goes.
"""

import importlib

import pytest
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
tpu_shard_context = importlib.import_module("tensorflow.python.tpu.tpu_function").tpu_shard_context

ORIGINAL = tf1.tpu
OURS = tfls.compat.v1.tpu

GROUPS = {
    "whole": (8, None),
    "two": (2, None),
    "one": (1, None),
    "pairs": (8, [[0, 1], [2, 3], [4, 5], [6, 7]]),
    "crossed pairs": (8, [[0, 7], [1, 6], [2, 5], [3, 4]]),
    "fours": (8, [[0, 2, 4, 6], [1, 3, 5, 7]]),
    "singles": (2, [[1], [0]]),
}
REDUCTIONS = (tf1.losses.Reduction.MEAN, tf1.losses.Reduction.SUM)


def variables():
    shapes = {"weights": [3, 2], "table": [5, 3], "unused": [2]}
    return [tf1.get_variable(name, shape, use_resource=True) for name, shape in shapes.items()]


def loss_of(weights, table, ids):
    return tf.reduce_sum(tf.matmul(tf.nn.embedding_lookup(table, ids), weights) ** 2)


def minimize(api, reduction, groups):
    def step(ids):
        weights, table, unused = variables()
        optimizer = api.CrossShardOptimizer(
            tf1.train.MomentumOptimizer(0.1, 0.9), reduction, group_assignment=groups
        )
        pairs = optimizer.compute_gradients(loss_of(weights, table, ids), [weights, table, unused])
        train = optimizer.apply_gradients(pairs, tf1.train.get_or_create_global_step())
        with tf.control_dependencies([train]):
            return tf.identity(weights)

    return step


def by_tf_gradients(api, reduction, groups):
    def step(ids):
        weights, table, _ = variables()
        optimizer = api.CrossShardOptimizer(
            tf1.train.GradientDescentOptimizer(0.1), reduction, group_assignment=groups
        )
        gradients = tf1.gradients(loss_of(weights, table, ids), [weights, table])
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
        with tf.control_dependencies([optimizer.apply_gradients(zip(clipped, [weights, table]))]):
            return tf.identity(weights)

    return step


def gradient_of_a_sum(api, reduction, groups):
    def step(ids):
        weights, table, _ = variables()
        total = api.cross_replica_sum(weights * 2.0, groups, name="total")
        return tf1.gradients(loss_of(total, table, ids), [weights])[0]

    return step


def in_shard_context(step, shards):
    with tpu_shard_context(shards):
        step(tf.constant([0, 2, 2]))


def in_replicate(step, shards):
    inputs = [[tf.constant([0, 2, 2])] for _ in range(shards)]
    tf1.tpu.replicate(step, inputs)


def in_shard(step, shards):
    tf1.tpu.shard(step, [tf.constant([0, 2] * shards)], num_shards=shards)


def in_rewrite(step, shards):
    assert shards == 1
    tf1.tpu.rewrite(step, [tf.constant([0, 2, 2])])


def nodes(build, step, shards):
    with tf.Graph().as_default() as graph:
        build(step, shards)
        return list(graph.as_graph_def().node)


def bytes_of(node):
    # Equal messages that hold a NaN, as a clipped norm does, would not compare equal.
    return node.SerializeToString(deterministic=True)


STEPS = (minimize, by_tf_gradients, gradient_of_a_sum)
MEAN, SUM = REDUCTIONS
CASES = (
    [(in_shard_context, minimize, MEAN, name) for name in GROUPS]
    + [(in_shard_context, step, SUM, "fours") for step in STEPS]
    + [(in_replicate, step, MEAN, name) for step in STEPS for name in ("two", "crossed pairs")]
    + [(in_replicate, minimize, MEAN, "whole"), (in_replicate, minimize, SUM, "pairs")]
    + [(in_shard, by_tf_gradients, MEAN, "whole"), (in_rewrite, minimize, MEAN, "one")]
)


@pytest.mark.parametrize(("build", "step", "reduction", "name"), CASES)
def test_the_graphs_are_equal(build, step, reduction, name):
    shards, groups = GROUPS[name]
    original = nodes(build, step(ORIGINAL, reduction, groups), shards)
    ours = nodes(build, step(OURS, reduction, groups), shards)
    sums = [node for node in ours if node.op == "CrossReplicaSum"]
    assert len(sums) == 2
    assert [bytes_of(node) for node in ours] == [bytes_of(node) for node in original]


@pytest.mark.parametrize(
    "dtype", [tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.uint32, tf.int64]
)
def test_the_dtypes_of_the_sum_are_the_originals(dtype):
    def built(api):
        with tf.Graph().as_default() as graph, tpu_shard_context(4):
            try:
                api.cross_replica_sum(tf1.placeholder(dtype, [3]))
            except TypeError as error:
                return str(error)
            return graph.as_graph_def()

    assert built(OURS) == built(ORIGINAL)


def test_a_replicated_program_without_a_shard_count_assumes_one():
    replication = importlib.import_module(
        "tensorflow.python.tpu.tpu_replication"
        if support.TF_VERSION >= (2, 12)
        else "tensorflow.python.tpu.tpu"
    )

    def built(api):
        with tf.Graph().as_default() as graph:
            pivot = tf.no_op(name="pivot")
            context = replication.TPUReplicateContext("cluster", 2, pivot)
            context.Enter()
            api.cross_replica_sum(tf.constant([1.0]))
            context.Exit()
            return graph.as_graph_def()

    assert built(OURS) == built(ORIGINAL)


class NoTPU(tf.distribute.cluster_resolver.ClusterResolver):
    """Describes a TPU of two cores, of which only the graph for it can be built."""

    environment, task_type, task_id, tpu_hardware_feature = "", "worker", 0, None

    def get_tpu_system_metadata(self):
        module = importlib.import_module("tensorflow.python.tpu.tpu_system_metadata")
        device = type(tf1.Session().list_devices()[0])
        names = ["CPU:0", "TPU:0", "TPU:1"]
        devices = [
            device(f"/job:worker/replica:0/task:0/device:{name}", name[:3], 1, 1) for name in names
        ]
        return module.TPUSystemMetadata(
            num_cores=2, num_hosts=1, num_of_cores_per_host=2, topology=None, devices=devices
        )

    def master(self, *args, **kwargs):
        return ""

    def cluster_spec(self):
        return tf1.train.ClusterSpec({"worker": ["localhost:1"]})

    def num_accelerators(self, *args, **kwargs):
        return {"TPU": 2}

    def get_job_name(self):
        return "worker"

    def __deepcopy__(self, memo):
        return self


@pytest.mark.skipif(
    support.TF_VERSION < (2, 4),
    reason="older ones ask a TPU itself what it has",
)
def test_the_replicas_of_a_tpu_strategy_are_shards():
    with tf.Graph().as_default():
        strategy = tf1.distribute.experimental.TPUStrategy(NoTPU())

    def built(api):
        def step():
            x = tf.constant([1.0, 2.0])
            total = api.cross_replica_sum(x * x)
            return tf1.gradients(total, [x])[0]

        with tf.Graph().as_default() as graph, strategy.scope():
            strategy.run(step)
            return list(graph.as_graph_def().node)

    ours = built(OURS)
    assert [node.op for node in ours].count("CrossReplicaSum") == 2
    assert [bytes_of(node) for node in ours] == [bytes_of(node) for node in built(ORIGINAL)]
