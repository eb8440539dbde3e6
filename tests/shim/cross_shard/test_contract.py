"""Where original and ours must agree, and the defects of the original that ours does not have."""

import importlib
import inspect

import numpy as np
import pytest
import replicas
import support
import tensorflow as tf
from processes import run_program

import tf_lossscale as tfls
from tf_lossscale._replicas import shards

pytestmark = pytest.mark.everywhere

tf1 = tf.compat.v1
tpu_shard_context = importlib.import_module("tensorflow.python.tpu.tpu_function").tpu_shard_context

ORIGINAL = tf1.tpu
OURS = tfls.compat.v1.tpu
BOTH = pytest.mark.parametrize("api", [ORIGINAL, OURS], ids=["original", "ours"])
MEAN = tf1.losses.Reduction.MEAN
SUM = tf1.losses.Reduction.SUM


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def momentum():
    return tf1.train.MomentumOptimizer(0.1, 0.9)


def weights(value=1.0):
    return tf1.get_variable("w", initializer=tf.constant([value, value]), use_resource=True)


METHODS = ["__init__", "compute_gradients", "apply_gradients", "get_slot", "get_slot_names"]


@pytest.mark.parametrize("name", [*METHODS, "variables", "cross_replica_sum"])
def test_signatures_are_equal(name):
    def parameters(api):
        function = getattr(api.CrossShardOptimizer, name, None) or getattr(api, name)
        parameters = inspect.signature(function).parameters.values()
        return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]

    assert parameters(OURS) == parameters(ORIGINAL)


def around_keras(api):
    return api.CrossShardOptimizer(tf.keras.optimizers.SGD(0.1))


REFUSED = [
    (around_keras, TypeError, "CrossShardOptimizer"),
    (lambda api: api.CrossShardOptimizer(momentum(), name=""), ValueError, "Must specify the opt"),
    *(
        (lambda api, args=args: api.CrossShardOptimizer(*args), ValueError, r"(?i)reduction")
        for args in (
            *(
                (momentum(), unknown)
                for unknown in ("mean", "weighted_sum_by_nonzero_weights", 3, None)
            ),
            (None, "mean"),  # it is checked before the optimizer
        )
    ),
]


@BOTH
@pytest.mark.parametrize(("make", "error", "words"), REFUSED)
def test_arguments_that_are_refused(api, make, error, words):
    with pytest.raises(error, match=words):
        make(api)


@BOTH
@pytest.mark.parametrize(
    "groups",
    [
        [[0, 1, 2], [3]],
        [[0, 1], [2]],
        [[0, 1], [2, 4]],
        [0, 1, 2, 3],
        [(0, 1), (2, 3)],
        [[0, 1]],
        "ab",
    ],
)
def test_assignments_that_are_no_equal_partition_are_refused_in_compute_gradients(api, groups):
    w = weights()
    optimizer = api.CrossShardOptimizer(momentum(), group_assignment=groups)
    with tpu_shard_context(4), pytest.raises(ValueError, match=r"group_assignment|subgroup"):
        optimizer.compute_gradients(tf.reduce_sum(w), [w])


@BOTH
@pytest.mark.parametrize("pairs", [[], [(None, "w")]], ids=["no pairs", "no gradients"])
def test_nothing_to_apply_is_refused(api, pairs):
    w = weights()
    with tpu_shard_context(2), pytest.raises(ValueError, match=r"No (gradients|variables)"):
        api.CrossShardOptimizer(momentum()).apply_gradients([(g, w) for g, _ in pairs])


@BOTH
def test_what_is_asked_of_it_goes_to_the_inner_optimizer(api):
    w = weights()
    inner = momentum()
    optimizer = api.CrossShardOptimizer(inner, name="mine")
    with tpu_shard_context(2):
        optimizer.apply_gradients(iter([(tf.constant([1.0, 2.0]), w)]))
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.get_slot(w, "momentum") is inner.get_slot(w, "momentum")
    assert optimizer.variables() == inner.variables()
    assert optimizer.get_name() == "mine"


@BOTH
def test_the_original_warning_comes_where_the_number_of_shards_is_unset(api, log):
    w = weights()
    api.CrossShardOptimizer(momentum()).compute_gradients(tf.reduce_sum(w), [w])
    api.cross_replica_sum(w)
    assert [line for line in log if "unset" in line] == [
        f"{name} should be used within a tpu_shard_context, but got unset number_of_shards. "
        "Assuming 1."
        for name in ("CrossShardOptimizer", "cross_replica_sum")
    ]


# The defects, by their numbers in docs/known-differences.md.


def test_x1_an_empty_assignment_is_none():
    def groups(api):
        with tf.Graph().as_default() as graph, tpu_shard_context(4):
            w = weights()
            api.CrossShardOptimizer(momentum(), group_assignment=[]).minimize(tf.reduce_sum(w))
            nodes = {node.name: node for node in graph.as_graph_def().node}
            node = nodes["CrossReplicaSum/group_assignment"]
            return tf.make_ndarray(node.attr["value"].tensor).tolist()

    assert groups(ORIGINAL) == []
    assert groups(OURS) == [[0, 1, 2, 3]]


def test_x2_a_callable_loss_is_divided_too():
    w = weights()

    def loss():
        return tf.reduce_sum(w)

    with tpu_shard_context(4):
        with pytest.raises(TypeError):
            ORIGINAL.CrossShardOptimizer(momentum()).compute_gradients(loss, [w])
        ((gradient, _),) = OURS.CrossShardOptimizer(momentum()).compute_gradients(loss, [w])
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(gradient).tolist() == [0.25, 0.25]


def test_x3_a_shard_that_stands_twice_is_refused():
    w = weights()
    groups = [[0, 0, 1], [1, 2, 3]]
    original, ours = (
        api.CrossShardOptimizer(momentum(), group_assignment=groups) for api in (ORIGINAL, OURS)
    )
    with tpu_shard_context(4):
        original.compute_gradients(tf.reduce_sum(w), [w])
        with pytest.raises(ValueError, match="permutation"):
            ours.compute_gradients(tf.reduce_sum(w), [w])


@pytest.mark.parametrize("optimizer", [None, "sgd"])
def test_x4_what_is_no_optimizer_is_refused(optimizer):
    if support.TF_VERSION < (2, 3):
        ORIGINAL.CrossShardOptimizer(optimizer)
    with pytest.raises(TypeError, match=r"only works with tf\.training\.Optimizer"):
        OURS.CrossShardOptimizer(optimizer)


def adam_checkpoint(api, tmp_path):
    with tf.Graph().as_default():
        w = weights()
        inner = tf1.train.AdamOptimizer(0.1)
        inner.minimize(tf.reduce_sum(w))  # no Session runs a graph with the original's sum
        optimizer = api.CrossShardOptimizer(inner)
        checkpoint = tf1.train.Checkpoint(opt=optimizer, v=w)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            path = checkpoint.write(str(tmp_path / "c"), session=session)
    return sorted(
        name[: -len("/.ATTRIBUTES/VARIABLE_VALUE")]
        for name, _ in tf.train.list_variables(path)
        if name.startswith(("opt", "v/"))
    )


def test_x5_object_checkpoints_hold_adams_powers(tmp_path):
    powers = ["opt/beta1_power", "opt/beta2_power"]
    for api, expected in ((ORIGINAL, []), (OURS, powers)):
        keys = adam_checkpoint(api, tmp_path)
        slots = [key for key in keys if "SLOT" in key]
        assert slots == ["v/.OPTIMIZER_SLOT/opt/m", "v/.OPTIMIZER_SLOT/opt/v"]
        assert [key for key in keys if "power" in key] == expected


def test_x5_the_powers_come_back(tmp_path):
    def build():
        w = weights()
        optimizer = OURS.CrossShardOptimizer(tf1.train.AdamOptimizer(0.1))
        step = optimizer.minimize(tf.reduce_sum(w))
        return w, step, tf1.train.Checkpoint(opt=optimizer, v=w)

    with tf.Graph().as_default(), tf1.Session() as session:
        w, step, checkpoint = build()
        session.run(tf1.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        path = checkpoint.write(str(tmp_path / "c"), session=session)
        session.run(step)
        expected = session.run(w)
    with tf.Graph().as_default(), tf1.Session() as session:
        w, step, checkpoint = build()
        checkpoint.restore(path).initialize_or_restore(session)
        session.run(step)
        np.testing.assert_array_equal(session.run(w), expected)


def test_x5_eager_optimizers_are_restored_before_they_have_variables():
    found = run_program("cross_shard/programs/restored.py")
    assert found["slots"] == {"original": False, "ours": True}
    assert len(found["weights"]) == 4
    for name, (went_on, restored) in found["weights"].items():
        assert restored == went_on, name


def test_x6_the_name_and_the_inner_optimizer_are_where_they_were():
    for api in (ORIGINAL, OURS):
        optimizer = api.CrossShardOptimizer(momentum())
        assert optimizer.get_name() == "CrossShardOptimizer"
        assert type(optimizer._opt) is tf1.train.MomentumOptimizer


def test_x7_one_shard_off_the_tpu_is_trained(graph):
    def trained(api):
        with tf.Graph().as_default(), tf1.Session() as session:
            w = weights()
            table = tf1.get_variable("t", initializer=tf.ones([4, 2]), use_resource=True)
            loss = tf.reduce_sum(w * tf.nn.embedding_lookup(table, [0, 0, 2]))
            step = tf1.train.get_or_create_global_step()
            train = api.CrossShardOptimizer(momentum()).minimize(loss, global_step=step)
            session.run(tf1.global_variables_initializer())
            session.run(train)
            return session.run([w, table, step])

    with pytest.raises(tf.errors.InvalidArgumentError):
        trained(ORIGINAL)
    w, table, step = trained(OURS)
    np.testing.assert_allclose(w, [0.7, 0.7], rtol=1e-6)
    np.testing.assert_allclose(table[:, 0], [0.8, 1.0, 0.9, 1.0], rtol=1e-6)
    assert step == 1


def test_a_sum_of_one_shard_is_the_value_and_has_its_gradient():
    x = tf.constant([1.0, 2.0])
    y = OURS.cross_replica_sum(x)
    (gradient,) = tf1.gradients(tf.reduce_sum(y * y), [x])
    with tf1.Session() as session:
        assert session.run([y, gradient])[0].tolist() == [1.0, 2.0]
        assert session.run(gradient).tolist() == [2.0, 4.0]


def test_other_dtypes_are_refused_off_the_tpu_too():
    with pytest.raises(TypeError, match="bool"):
        OURS.cross_replica_sum(tf.constant([True]))


@pytest.mark.parametrize("groups", [[[0], [1]], [[0, 0]], [0], [[1]]])
def test_wrong_groups_are_refused_off_the_tpu_too(groups):
    w = weights()
    optimizer = OURS.CrossShardOptimizer(momentum(), group_assignment=groups)
    for call in (
        lambda: OURS.cross_replica_sum(w, groups),
        lambda: optimizer.compute_gradients(tf.reduce_sum(w), [w]),
        lambda: optimizer.apply_gradients([(tf.constant([1.0, 1.0]), w)]),
    ):
        with pytest.raises(ValueError, match="group_assignment"):
            call()


def test_a_strategy_with_one_replica_sums_nothing(log):
    x = tf.constant([1.0, 2.0])
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    total = replicas.run(strategy, lambda: OURS.cross_replica_sum(x))
    with tf1.Session() as session:
        assert session.run(replicas.local(strategy, total))[0].tolist() == [1.0, 2.0]
    assert not [line for line in log if "unset" in line]


CARRIED = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float32",
    "float64": "float64",
    "int32": "int32",
    "uint32": "int64",
}


@pytest.mark.parametrize("dtype", CARRIED)
def test_small_dtypes_are_summed_as_larger_ones(dtype, graph):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    replicas.run(strategy, lambda: OURS.cross_replica_sum(tf.cast(tf.ones([2]), dtype)))
    sums = [op for op in graph.get_operations() if op.type.startswith("CollectiveReduce")]
    assert [op.inputs[0].dtype for op in sums] == [tf.as_dtype(CARRIED[dtype])] * 2


def test_what_workers_compare():
    """The rest of `docs/cross-shard.md` shows in `test_retracing.py`."""
    values = [tf.ones([2]), tf.ones([3])]
    call, groups = shards.Call("sum", "a.py, in step", 3), [[0, 1]]
    others = [
        (call._replace(what="another sum"), groups, values),
        (call._replace(place="a.py, in other"), groups, values),
        (call._replace(line=4), groups, values),
        (call, [[1, 0]], values),
        (call, groups, [tf.ones([3]), tf.ones([2])]),
        (call, groups, [tf.cast(value, tf.float16) for value in values]),
    ]
    rows = [shards.step_of(*parts).row for parts in [(call, groups, values), *others]]
    with tf1.Session() as session:
        assert len({tuple(row) for row in session.run(rows)}) == len(rows)


def test_the_line_and_the_class_of_an_optimizer_are_part_of_its_call():
    def made(inner):
        return OURS.CrossShardOptimizer(inner)._made

    first, of_its_line, of_its_class = made(momentum()), made(momentum()), made(support.sgd())
    other_line = OURS.CrossShardOptimizer(momentum())._made
    assert first == of_its_line
    assert len({first, of_its_class, other_line}) == 3
