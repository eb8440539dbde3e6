"""The contract of both optimizers, for our classes and the originals, one sentence per test."""

import copy
import functools
import inspect
import pickle

import numpy as np
import pytest
import support
import tensorflow as tf
from processes import run_python

tf1 = tf.compat.v1
INF, NAN = float("inf"), float("nan")


CONTRIB = [("contrib", name) for name in sorted(support.contrib_namespaces())]
V1 = [("v1", name) for name in sorted(support.v1_namespaces())]


@pytest.fixture(params=[*CONTRIB, *V1], ids="-".join)
def subject(request):
    """The family, contrib or v1, and whose class."""
    return request.param


@pytest.fixture
def make(subject):
    """Wraps an inner optimizer; returns the optimizer and what reads its scale."""
    return functools.partial(wrapped, *subject)


def wrapped(family, whose, inner, scale=8.0):
    if family == "contrib":
        return support.contrib_optimizer(inner, scale, 2, 1, whose=whose)
    return support.v1_optimizer(inner, scale, 2, whose=whose)


class TestInASession:
    @pytest.mark.sampled(3)
    def test_none_gradients_stay_none_and_sparse_ones_come_out_alike(self, make, session):
        used = tf1.get_variable("used", initializer=[1.0, 2.0, 3.0])
        unused = tf1.get_variable("unused", initializer=[1.0])
        opt, _ = make(support.sgd())
        pairs = opt.compute_gradients(tf.reduce_sum(tf.gather(used, [0, 2, 2])), [used, unused])
        assert pairs[1][0] is None
        gradient = tf.convert_to_tensor(pairs[0][0])
        step = opt.apply_gradients(pairs[:1])
        session.run(tf1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(gradient), [1, 0, 2])
        session.run(step)
        np.testing.assert_array_equal(session.run(used), [0.5, 2, 2])

    def test_arguments_reach_the_inner_optimizer(self, make, session):
        seen = []

        class Inner(tf1.train.GradientDescentOptimizer):
            def compute_gradients(self, loss, *args, **kwargs):
                arguments = inspect.signature(tf1.train.Optimizer.compute_gradients)
                seen.append(arguments.bind(self, loss, *args, **kwargs).arguments)
                return super(Inner, self).compute_gradients(loss, *args, **kwargs)

        variable = tf1.get_variable("v", initializer=[1.0])
        grad_loss = tf.constant(1.0)
        opt, _ = make(Inner(0.5))
        opt.compute_gradients(
            tf.reduce_sum(variable),
            var_list=[variable],
            gate_gradients=opt.GATE_GRAPH,
            aggregation_method=2,
            colocate_gradients_with_ops=True,
            grad_loss=grad_loss,
        )
        (arguments,) = seen
        assert arguments["var_list"] == [variable]
        assert arguments["gate_gradients"] == opt.GATE_GRAPH
        assert arguments["aggregation_method"] == 2
        assert arguments["colocate_gradients_with_ops"] is True
        assert arguments["grad_loss"] is grad_loss
        with pytest.raises(ValueError, match="gate_gradients"):
            opt.compute_gradients(tf.reduce_sum(variable), [variable], gate_gradients=7)

    @pytest.mark.parametrize("pairs", [lambda v: [], lambda v: [(None, v)]], ids=["empty", "none"])
    def test_no_gradients_is_a_value_error(self, make, session, pairs):
        variable = tf1.get_variable("v", initializer=[1.0])
        opt, _ = make(support.sgd())
        with pytest.raises(ValueError, match=r"No (variables|gradients) provided|None"):
            opt.apply_gradients(pairs(variable))

    @pytest.mark.sampled(3)
    def test_nesting_multiplies_the_scales(self, make, session):
        """M8."""
        variable = tf1.get_variable("v", initializer=[1.0])
        inner, _ = make(support.sgd())
        outer, _ = make(inner, 4.0)
        step = outer.minimize(tf.reduce_sum(variable))
        assert support.trained(session, step, variable) == [0.5]

    def test_sync_replicas_inside_is_an_error(self, make, session):
        sync = tf1.train.SyncReplicasOptimizer(support.sgd(), 1)
        opt, _ = make(sync)
        loss = tf.reduce_sum(tf1.get_variable("v", initializer=[1.0]))

        def train():
            opt.minimize(loss, tf1.train.get_or_create_global_step())
            session.run(sync.ready_for_local_init_op)  # with v1's original, the error is here

        with pytest.raises((TypeError, ValueError)):
            train()

    @pytest.mark.sampled(3, each="where")
    @pytest.mark.parametrize("where", ["cond", "while_loop"])
    def test_inside_control_flow(self, make, session, where):
        variable = tf1.get_variable("v", initializer=[8.0], use_resource=True)
        opt, _scale = make(tf1.train.GradientDescentOptimizer(1.0))

        def step():
            with tf.control_dependencies(
                [opt.minimize(lambda: tf.reduce_sum(variable), var_list=[variable])]
            ):
                return tf.constant(True)

        if where == "cond":
            taken = tf1.placeholder_with_default(True, [])
            run = tf.cond(taken, step, lambda: tf.constant(False))
        else:

            def body(i):
                with tf.control_dependencies([step()]):
                    return i + 1

            run = tf1.while_loop(lambda i: i < 2, body, [tf.constant(0)])
        assert support.trained(session, run, variable) == [7.0 if where == "cond" else 6.0]
        if where == "cond":
            session.run(run, {taken: False})
            assert session.run(variable) == [7.0]

    def test_variable_names_and_collections(self, make, subject, session):
        with tf1.variable_scope("outer"):
            make(support.sgd())
            make(support.sgd())
        variables = tf1.global_variables()
        names = [(v.op.name, v.dtype.base_dtype.name, v.shape.rank) for v in variables]
        if subject[0] == "contrib":
            kinds = [("loss_scale", "float32"), ("good_steps", "int32"), ("bad_steps", "int32")]
        else:
            kinds = [("current_loss_scale", "float32"), ("good_steps", "int64")]
        assert names == [
            ("outer/" + kind + suffix, dtype, 0) for suffix in ("", "_1") for kind, dtype in kinds
        ]
        assert not tf1.trainable_variables()
        assert tf1.get_collection(tf1.GraphKeys.LOCAL_VARIABLES) == []
        for variable in variables:
            assert variable.synchronization == tf.VariableSynchronization.AUTO
            assert variable.aggregation == tf.VariableAggregation.NONE

    @pytest.mark.sampled(3)
    def test_names_in_the_graph(self, make, subject, session):
        class Counting(tf1.train.GradientDescentOptimizer):
            def _prepare(self):
                super(Counting, self)._prepare()
                self.count = tf1.Variable(lambda: 0, name="count", trainable=False)

        variable = tf1.get_variable("v", initializer=[1.0], use_resource=True)
        for optimizer in (support.sgd(), make(support.sgd())[0]):
            step = optimizer.minimize(tf.reduce_sum(variable))
        inner = Counting(0.5)
        make(inner)[0].minimize(tf.reduce_sum(variable))
        scope = inner.count.op.name.split("/")[-2]
        expected = {
            "contrib": ["group_deps", "group_deps_2", "GradientDescent"],
            "v1": ["GradientDescent_1", "group_deps", "GradientDescent-wrapped"],
        }
        assert [step.name, tf.group(step).name, scope] == expected[subject[0]]

    @pytest.mark.sampled(3)
    def test_subclasses(self, make, session):
        opt, _ = make(support.sgd())
        manager = getattr(opt, "_loss_scale_manager", None) or opt._loss_scale

        class Clipped(type(opt)):
            def compute_gradients(self, *args, **kwargs):
                pairs = super(Clipped, self).compute_gradients(*args, **kwargs)
                return [(tf.clip_by_value(g, -0.5, 0.5), v) for g, v in pairs]

        variable = tf1.get_variable("v", initializer=[1.0])
        clipped = Clipped(tf1.train.GradientDescentOptimizer(1.0), manager)
        step = clipped.minimize(tf.reduce_sum(variable))
        assert support.trained(session, step, variable) == [0.5]


def test_reference_variables_and_float16(make, subject):
    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=[1.0], use_resource=False)
        half = tf1.get_variable("h", initializer=tf.constant([1.0], tf.float16))
        opt, _ = make(support.sgd())
        loss = tf.reduce_sum(variable) + tf.cast(tf.reduce_sum(half), tf.float32)
        if subject == ("v1", "original"):
            with pytest.raises(TypeError):
                opt.minimize(loss)
            return
        step = opt.minimize(loss)
        assert support.trained(session, step, [variable, half]) == [[0.5], [0.5]]


def test_the_names_of_slots_in_eager_mode(make, subject):
    with support.eager():
        variable = tf1.Variable([1.0, 2.0], use_resource=True)
        inner = tf1.train.AdamOptimizer(0.5)
        make(inner)[0].minimize(lambda: tf.reduce_sum(variable), var_list=[variable])
        scope = "cond/" if subject[0] == "contrib" else ""
        assert inner.variables()[-1].name.startswith(scope + "beta2_power")


def test_a_tensor_is_refused_in_eager_mode(make):
    with support.eager():
        variable = tf1.Variable([1.0], use_resource=True)
        opt, _ = make(support.sgd())
        with pytest.raises((TypeError, RuntimeError), match=r"callable|function"):
            opt.compute_gradients(tf.reduce_sum(variable), [variable])


@pytest.mark.skipif(support.TF_VERSION < (2, 5), reason="jit_compile came later")
@pytest.mark.parametrize("family", ["contrib", "v1"])
def test_a_function_that_xla_compiles_as_a_part_of_another(family):
    """It was traced for plain execution."""
    variable = tf.Variable([4.0])
    opt, _ = wrapped(family, "ours", support.sgd())

    @tf.function
    def inner(factor):
        opt.minimize(lambda: tf.reduce_sum(variable * factor), var_list=[variable])

    @tf.function(jit_compile=True)
    def outer(factor):
        inner(factor)

    inner(tf.constant(1.0))
    outer(tf.constant(1.0))
    outer(tf.constant(INF))
    assert variable.numpy() == [3.0]


def test_copies_of_optimizers(make):
    """Our optimizers can be copied wherever the originals can: in eager mode, not in graphs."""
    with support.eager():
        opt, _ = make(support.sgd())
        for again in (copy.copy(opt), copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
            variable = tf1.Variable([1.0], use_resource=True)
            again.apply_gradients([(tf.constant([1.0]), variable)])
            assert variable.numpy() == [0.5]
    with support.graph():
        opt, _ = make(support.sgd())
        for duplicate in (copy.deepcopy, pickle.dumps):
            with pytest.raises((TypeError, NotImplementedError)):
                duplicate(opt)


@pytest.mark.parametrize("scale_of", ["original", "ours"])
@pytest.mark.parametrize("optimizer_of", ["original", "ours"])
def test_each_optimizer_takes_each_loss_scale(scale_of, optimizer_of):
    """As in a program that is half migrated."""
    namespaces = support.v1_namespaces()
    with support.graph() as session:
        weight = tf1.Variable(1.0, use_resource=True)
        factor = tf1.placeholder(tf.float32, [])
        loss_scale = namespaces[scale_of].DynamicLossScale(8.0, 2)
        optimizer = namespaces[optimizer_of].MixedPrecisionLossScaleOptimizer(
            support.sgd(), loss_scale
        )
        train = optimizer.minimize(weight * factor)
        session.run(tf1.global_variables_initializer())
        trace = []
        for value in (1.0, INF, 1.0, 1.0):
            session.run(train, {factor: value})
            trace.append([float(number) for number in session.run([weight, loss_scale()])])
        assert trace == [[0.5, 8.0], [0.5, 4.0], [0.0, 4.0], [-0.5, 8.0]]


def test_sync_replicas_around_waits_after_a_skipped_step(make, subject):
    """`docs/tf1.md`: a skipped step does not advance the global step, for which it waits."""
    with tf.Graph().as_default():
        variable = tf1.get_variable("v", initializer=1.0, use_resource=True)
        factor = tf1.placeholder_with_default(1.0, [])
        opt, _ = make(support.sgd())
        sync = tf1.train.SyncReplicasOptimizer(opt, 1)
        pairs = sync.compute_gradients(variable * factor, [variable])
        if subject == ("contrib", "original"):
            # C5: it reads the pairs twice, and SyncReplicasOptimizer gives it an iterator.
            with pytest.raises(ValueError, match="No variables provided"):
                sync.apply_gradients(pairs, tf1.train.get_or_create_global_step())
            return
        step = sync.apply_gradients(pairs, tf1.train.get_or_create_global_step())
        hook = sync.make_session_run_hook(True, num_tokens=0)
        limited = tf1.ConfigProto(operation_timeout_in_ms=400)

        def train():
            with tf1.train.MonitoredTrainingSession(hooks=[hook], config=limited) as session:
                for value in (1.0, 1.0, INF):
                    session.run(step, {factor: value})
                skipped.append(True)
                session.run(step, {factor: 1.0})

        skipped = []
        with pytest.raises(tf.errors.DeadlineExceededError):
            train()
        assert skipped


@pytest.mark.parametrize("mode", ["v1", "v2", "function", "eager"])
def test_the_inner_optimizer_runs_in_a_conditional(make, mode):
    """`docs/cost.md`: its operations do not run in a step that is skipped."""
    runs = []

    class Counted(tf1.train.GradientDescentOptimizer):
        def _finish(self, update_ops, name_scope):
            with tf.control_dependencies([update for update in update_ops if update is not None]):
                count = tf.numpy_function(lambda: runs.append(1) or 0, [], tf.int64)
            return None if tf.executing_eagerly() else count.op

    def training():
        variable = tf1.Variable(1.0, use_resource=True)
        opt, _ = make(Counted(0.5))
        return lambda factor: opt.minimize(lambda: variable * factor, var_list=[variable])

    if mode in ("v1", "v2"):
        with support.graph(mode == "v2") as session:
            factor = tf1.placeholder(tf.float32, [])
            step = training()(factor)
            session.run(tf1.global_variables_initializer())
            for value in (1.0, INF):
                session.run(step, {factor: value})
    else:
        with support.eager():
            train = training()
            traced = tf.function(lambda factor: (train(factor), 0)[1], autograph=False)
            for value in (1.0, INF):
                (traced if mode == "function" else train)(tf.constant(value))
    assert runs == [1]


@pytest.mark.parametrize("whose", sorted(support.contrib_namespaces()))
@pytest.mark.parametrize("is_fixed", [False, True], ids=["exponential", "fixed"])
def test_a_bad_step_of_contrib_changes_nothing(whose, is_fixed):
    """`docs/tf1.md`: neither weights nor slots nor the global step."""
    namespace = support.contrib_namespaces()[whose]
    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=1.0, use_resource=True)
        factor = tf1.placeholder_with_default(1.0, [])
        inner = tf1.train.AdamOptimizer(0.5)
        if is_fixed:
            manager = namespace.FixedLossScaleManager(8.0)
        else:
            manager = namespace.ExponentialUpdateLossScaleManager(8.0, 2)
        step = tf1.train.get_or_create_global_step()
        train = namespace.LossScaleOptimizer(inner, manager).minimize(variable * factor, step)
        state = [variable, step, *inner.variables()]
        before = support.trained(session, train, state)
        for value in (INF, -INF, float("nan")):
            session.run(train, {factor: value})
            assert session.run(state) == before
        session.run(train)
        assert session.run(step) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("whose", sorted(support.v1_namespaces()))
def test_a_fixed_loss_scale_of_v1_applies_a_bad_step(whose):
    """`docs/tf1.md`; so `SyncReplicasOptimizer` does not wait for it."""
    namespace = support.v1_namespaces()[whose]
    for loss_scale in (namespace.FixedLossScale(8.0), 8):
        with tf.Graph().as_default():
            variable = tf1.get_variable("v", initializer=1.0, use_resource=True)
            factor = tf1.placeholder_with_default(1.0, [])
            opt = namespace.MixedPrecisionLossScaleOptimizer(support.sgd(), loss_scale)
            sync = tf1.train.SyncReplicasOptimizer(opt, 1)
            pairs = sync.compute_gradients(variable * factor, [variable])
            global_step = tf1.train.get_or_create_global_step()
            step = sync.apply_gradients(pairs, global_step)
            hook = sync.make_session_run_hook(True, num_tokens=0)
            with tf1.train.MonitoredTrainingSession(
                hooks=[hook], stop_grace_period_secs=1
            ) as session:
                for value in (1.0, INF, 1.0):
                    session.run(step, {factor: value})
                assert session.run(variable) == -INF
                assert session.run(global_step) == 3


SAVER = """
import sys, tensorflow as tf, tf_lossscale as tfls
tf1 = tf.compat.v1
print(tf1.control_flow_v2_enabled())
if "v1" in sys.argv:
    tf1.disable_v2_behavior()
mp = tfls.contrib.mixed_precision
with tf.Graph().as_default(), tf1.Session() as session:
    manager = mp.ExponentialUpdateLossScaleManager(8.0, 2)
    weight = tf1.get_variable("v", initializer=1.0, use_resource=True)
    mp.LossScaleOptimizer(tf1.train.AdamOptimizer(), manager).minimize(weight * 2.0)
    session.run(tf1.global_variables_initializer())
    if "save" in sys.argv:
        tf1.train.Saver().save(session, sys.argv[1])
    else:
        tf1.train.Saver().restore(session, sys.argv[1])
print("done")
"""


@pytest.mark.slow
def test_the_control_flow_that_names_depend_on(tmp_path):
    """`docs/tf1.md`: its default, and the error of a file with the names of version 1."""
    path = str(tmp_path / "model")
    saved = run_python("-c", SAVER, path, "v1", "save").stdout.split()
    assert saved[-2:] == [str(not support.IS_TF1), "done"]
    assert run_python("-c", SAVER, path, "v1").stdout.split()[-1] == "done"
    default = run_python("-c", SAVER, path)
    if support.IS_TF1:
        assert default.stdout.split()[-1] == "done"
    else:
        assert "Key beta1_power not found in checkpoint" in default.stderr
