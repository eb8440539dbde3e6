"""The defects of the originals: tests fail with the original, if it runs, and pass with our class.

The identifiers are those of `docs/known-differences.md`.
"""

import tempfile

import numpy as np
import pytest
import support
import tensorflow as tf
from processes import run_python
from support import sgd

pytestmark = pytest.mark.everywhere

tf1 = tf.compat.v1
INF, NAN = float("inf"), float("nan")

CONTRIB = support.contrib_namespaces()
V1 = support.v1_namespaces()


def contrib_pair(mp, inner=None):
    manager = mp.ExponentialUpdateLossScaleManager(8.0, 2)
    return mp.LossScaleOptimizer(inner or sgd(), manager), manager


def defect(spaces, error, broken=True):
    """Runs the decorated test with our class, and with the original, which must raise `error`."""

    def decorate(test):
        @pytest.mark.parametrize("name", sorted(spaces))
        def both(name):
            if name == "original" and broken:
                with pytest.raises(error):
                    test(spaces[name])
            else:
                test(spaces[name])

        return both

    return decorate


@defect(CONTRIB, ValueError)
def test_c1_none_gradients(mp):
    with support.graph() as session:
        used, unused = (tf1.get_variable(n, initializer=[1.0]) for n in ("used", "unused"))
        opt, _ = contrib_pair(mp)
        step = opt.minimize(tf.reduce_sum(used), var_list=[used, unused])
        assert support.trained(session, step, [used, unused]) == [[0.5], [1.0]]


@defect(CONTRIB, AssertionError)
def test_c2_sparse_gradients_stay_sparse(mp):
    with support.graph():
        variable = tf1.get_variable("v", initializer=[1.0, 2.0])
        opt, _ = contrib_pair(mp)
        ((gradient, _),) = opt.compute_gradients(tf.reduce_sum(tf.gather(variable, [1])))
        assert isinstance(gradient, tf.IndexedSlices)


def rows_after_two_steps(mp, inner, rows, densify=lambda gradient: gradient):
    with support.graph() as session:
        table = tf1.get_variable("table", initializer=tf.ones([3, 1]), use_resource=True)
        opt = mp.LossScaleOptimizer(inner(), mp.FixedLossScaleManager(8.0))
        chosen = tf1.placeholder(tf.int32, [2])
        pairs = opt.compute_gradients(tf.reduce_sum(tf.gather(table, chosen) / 3.0), [table])
        step = opt.apply_gradients([(densify(gradient), table) for gradient, table in pairs])
        session.run(tf1.global_variables_initializer())
        found = []
        for first in rows:
            session.run(step, {chosen: [first, 2]})
            found.append(session.run(table)[:, 0].tolist())
        return found


INNERS = {
    "Momentum": lambda: tf1.train.MomentumOptimizer(0.5, 0.5),
    "RMSProp": lambda: tf1.train.RMSPropOptimizer(0.5, momentum=0.5),
    "Ftrl": lambda: tf1.train.FtrlOptimizer(0.5),
}


@pytest.mark.parametrize("inner", sorted(INNERS))
def test_c2_rows_without_a_gradient(contrib, inner):
    """The original changes them, and so does ours if it is given dense gradients."""
    first, second = rows_after_two_steps(contrib, INNERS[inner], [0, 1])
    is_original = contrib is CONTRIB.get("original")
    assert (first[0] != second[0] or first[1] != 1.0) is is_original
    dense = [
        rows_after_two_steps(mp, INNERS[inner], [0, 1], tf.convert_to_tensor)
        for mp in CONTRIB.values()
    ]
    assert [rows for rows in dense if rows == [first, second]] == (dense if is_original else [])


@pytest.mark.parametrize("inner", [tf1.train.AdamOptimizer, tf1.train.AdagradOptimizer])
def test_c2_rows_that_all_of_these_optimizers_change_alike(contrib, inner):
    sparse, dense = (
        rows_after_two_steps(contrib, lambda: inner(0.5), [0, 1], densify)
        for densify in (lambda gradient: gradient, tf.convert_to_tensor)
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)


@pytest.mark.parametrize("inner", [tf1.train.AdamOptimizer, tf1.train.AdagradOptimizer])
def test_c2_dense_gradients_give_the_numbers_of_the_original(inner):
    """To the bit, as the loss scale is a power of 2, also for rows that occur twice."""
    found = [
        rows_after_two_steps(mp, lambda: inner(0.5), [2, 1], tf.convert_to_tensor)
        for mp in CONTRIB.values()
    ]
    assert all(rows == found[0] for rows in found)


def test_c2_rows_that_occur_twice():
    """The original adds them up before it divides by the loss scale, which rounds differently."""
    found = {}
    for name, mp in CONTRIB.items():
        with support.graph() as session:
            table = tf1.get_variable("table", initializer=[1.0], use_resource=True)
            opt = mp.LossScaleOptimizer(sgd(), mp.FixedLossScaleManager(3.0))
            loss = tf.reduce_sum(tf.gather(table, [0, 0]) * [0.1, 0.7])
            ((gradient, _),) = opt.compute_gradients(loss, [table])
            session.run(tf1.global_variables_initializer())
            found[name] = float(session.run(tf.convert_to_tensor(gradient))[0])
    assert found["ours"] == pytest.approx(0.8)
    assert found.get("original") not in (found["ours"], pytest.approx(0.9))


@pytest.mark.parametrize("densify", [lambda gradient: gradient, tf.convert_to_tensor])
def test_c2_norms_of_rows_that_occur_twice(contrib, densify):
    """The original's norm is the dense gradient's; and so is ours if gradients are made dense."""
    with support.graph() as session:
        table = tf1.get_variable("table", initializer=[1.0, 2.0], use_resource=True)
        opt, _ = contrib_pair(contrib)
        pairs = opt.compute_gradients(tf.reduce_sum(tf.gather(table, [0, 0])), [table])
        gradients = [densify(gradient) for gradient, _ in pairs]
        clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
        once = tf.clip_by_norm(gradients[0], 1.0)
        session.run(tf1.global_variables_initializer())
        found = session.run([norm, tf.convert_to_tensor(clipped[0]), tf.convert_to_tensor(once)])
    is_dense = densify is tf.convert_to_tensor or contrib is CONTRIB.get("original")
    norm = 2.0 if is_dense else 2.0**0.5
    np.testing.assert_allclose(found[0], norm)
    np.testing.assert_allclose(found[1:], [[2.0 / norm, 0.0]] * 2, rtol=1e-6)


@defect(CONTRIB, AttributeError)
def test_c3_it_is_an_optimizer(mp):
    with support.graph():
        variable = tf1.get_variable("v", initializer=[1.0])
        inner = tf1.train.AdamOptimizer(name="Mine")
        opt, _ = contrib_pair(mp, inner)
        opt.minimize(tf.reduce_sum(variable))
        assert opt.get_name() == "Mine"
        assert opt.get_slot_names() == ["m", "v"]
        assert opt.get_slot(variable, "m") is inner.get_slot(variable, "m")
        assert opt.variables()[: len(inner.variables())] == inner.variables()
        names = [variable.op.name for variable in opt.variables()[len(inner.variables()) :]]
        assert names == ["loss_scale", "good_steps", "bad_steps"]


@defect(CONTRIB, (AttributeError, ValueError))
def test_c4_it_can_be_saved_as_an_object(mp):
    with support.graph() as session, tempfile.TemporaryDirectory() as folder:
        variable = tf1.get_variable("v", initializer=[1.0])
        opt, manager = contrib_pair(mp, tf1.train.MomentumOptimizer(0.5, 0.5))
        step = opt.minimize(tf.reduce_sum(variable))
        support.trained(session, step, [])
        checkpoint = tf1.train.Checkpoint(opt=opt, m=manager, v=variable)
        path = checkpoint.save(folder + "/c", session=session)
        keys = {key.split("/.ATTRIBUTES")[0] for key, _ in tf.train.list_variables(path)}
        state = ("loss_scale", "good_steps", "bad_steps")
        assert any(
            {prefix + name for name in state} <= keys
            for prefix in ("m/", "opt/loss_scale_manager/")
        )
        assert "v/.OPTIMIZER_SLOT/opt/base_optimizer/momentum" in keys
        before = session.run([variable, manager._num_good_steps])
        session.run(step)
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        assert session.run([variable, manager._num_good_steps]) == before


@defect(CONTRIB, ValueError)
def test_c5_iterators_of_pairs(mp):
    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=[1.0])
        opt, _ = contrib_pair(mp)
        step = opt.apply_gradients(pair for pair in [(tf.constant([1.0]), variable)])
        assert support.trained(session, step, variable) == [0.5]


@pytest.mark.parametrize(
    ("arguments", "after"),
    [
        ((INF, 1, 1, 2.0, 0.5), INF),  # C6
        ((NAN, 1, 1, 2.0, 0.5), 1.0),  # C6: accepted, and 1 after the first skipped step
        ((2.0**127, 1, 1, 2.0, 2.0), INF),  # C7
    ],
)
def test_c6_c7_are_kept(contrib, arguments, after):
    with support.graph() as session:
        manager = contrib.ExponentialUpdateLossScaleManager(*arguments)
        update = manager.update_loss_scale(tf1.placeholder_with_default(False, []))
        assert support.trained(session, update, manager.get_loss_scale()) == after


@defect(CONTRIB, (TypeError, ValueError))
def test_c4_a_manager_can_be_saved_alone(mp):
    with support.graph():
        tf1.train.Checkpoint(manager=mp.ExponentialUpdateLossScaleManager(8.0, 2))


def test_c8_is_kept(contrib):
    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=tf.constant(1.0, tf.float64))
        opt = contrib.LossScaleOptimizer(sgd(), contrib.FixedLossScaleManager(3.0))
        ((gradient, _),) = opt.compute_gradients(variable * 1.0, [variable])
        session.run(tf1.global_variables_initializer())
        assert session.run(gradient) == 3.0 * np.float64(np.float32(1.0) / np.float32(3.0)) != 1.0


def test_the_counters_of_contrib_are_int32(contrib):
    with support.graph():
        manager = contrib.ExponentialUpdateLossScaleManager(8.0, 2)
        counters = (manager._num_good_steps, manager._num_bad_steps)
        assert [counter.dtype.base_dtype for counter in counters] == [tf.int32, tf.int32]


@defect(CONTRIB, pytest.fail.Exception)
def test_c11_what_is_no_optimizer_is_a_type_error(mp):
    with support.graph():
        manager = mp.FixedLossScaleManager(2.0)
        for value in (None, 1.0, object()):
            with pytest.raises(TypeError, match=type(value).__name__):
                mp.LossScaleOptimizer(value, manager)


def test_c11_but_anything_with_the_two_methods_is_accepted(contrib):
    class Duck:
        def compute_gradients(self, loss, **kwargs):
            return sgd().compute_gradients(loss, **kwargs)

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            return sgd().apply_gradients(grads_and_vars, global_step, name)

    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=[1.0])
        opt, _ = contrib_pair(contrib, Duck())
        step = opt.minimize(tf.reduce_sum(variable))
        assert support.trained(session, step, variable) == [0.5]


def test_c12_a_fractional_period_is_rejected_at_the_update(contrib):
    with support.graph():
        manager = contrib.ExponentialUpdateLossScaleManager(8.0, 2.5)
        with pytest.raises(TypeError):
            manager.update_loss_scale(tf.constant(True))
        with pytest.raises(TypeError, match="Python bool"):
            contrib.ExponentialUpdateLossScaleManager(8.0, 2).update_loss_scale(True)


@pytest.mark.parametrize(
    ("arguments", "flag", "after"),
    [
        ((NAN, 1, 2.0), False, NAN),  # L1
        ((8.0, 1, 0.5), False, 16.0),  # L2
        ((8.0, 0, 2.0), True, 16.0),  # L8
    ],
)
def test_l1_l2_l8_are_kept(v1, arguments, flag, after):
    with support.graph() as session:
        scale = v1.DynamicLossScale(*arguments)
        update, _ = scale.update([tf.constant(1.0 if flag else np.inf)])
        support.trained(session, update, [])
        np.testing.assert_equal(session.run(scale()), np.float32(after))


@defect(V1, ValueError, broken=support.TF_VERSION < (2, 13))
def test_l3_sparse_gradients_without_a_dense_shape(ns):
    with support.graph() as session:
        scale = ns.DynamicLossScale(8.0, 1)
        update, finite = scale.update(
            [tf.IndexedSlices(tf1.placeholder_with_default([1.0], [1]), tf.constant([0]))]
        )
        session.run(tf1.global_variables_initializer())
        assert session.run([update, finite])[1]


@defect(V1, AssertionError, broken=support.TF_VERSION < (2, 13))
def test_l4_values_that_are_finite_count_as_finite(ns):
    with support.graph() as session:
        big = tf.constant([3e38, 3e38])
        slices = tf.IndexedSlices(big, tf.constant([0, 0]), tf.constant([1]))
        _, finite = ns.DynamicLossScale(8.0, 1).update([slices])
        session.run(tf1.global_variables_initializer())
        assert session.run(finite)


def test_l7_the_scale_is_a_value_and_no_variable(v1):
    with support.eager():
        scale = v1.DynamicLossScale(8.0, 1)
        before = scale()
        scale.update([tf.constant(1.0)])
        assert (float(before), float(scale())) == (8.0, 16.0)


def test_l6_numbers_of_numpy_are_still_refused(v1):
    with pytest.raises(ValueError, match="must be a Python int or float"):
        v1.FixedLossScale(np.float32(2))
    with pytest.raises(ValueError, match="at least 1"):
        v1.FixedLossScale(0.5)


def other_dtypes(ns, dtype):
    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=tf.constant([1.0], dtype), use_resource=True)
        opt = ns.MixedPrecisionLossScaleOptimizer(sgd(), 8)
        step = opt.minimize(tf.reduce_sum(variable))
        assert support.trained(session, step, tf.cast(variable, tf.float32)) == [0.5]


# Before 2.4 TensorFlow has no kernels to train bfloat16 variables with.
OTHER_DTYPES = [tf.float16, tf.float64] + [tf.bfloat16] * (support.TF_VERSION >= (2, 4))


@pytest.mark.parametrize("dtype", OTHER_DTYPES)
def test_m1_m2_other_dtypes(dtype):
    with pytest.raises((TypeError, ValueError)):
        other_dtypes(V1["original"], dtype)
    other_dtypes(V1["ours"], dtype)


@pytest.mark.parametrize("name", sorted(V1))
def test_m2_losses_of_other_dtypes(name):
    with support.graph() as session:
        opt = V1[name].MixedPrecisionLossScaleOptimizer(sgd(), 8)
        for dtype in (tf.float16, tf.float64):
            if name == "original" and support.TF_VERSION < (2, 1):
                with pytest.raises((TypeError, ValueError)):
                    opt._scale_loss(tf.constant(1.0, dtype))
            else:
                assert session.run(opt._scale_loss(tf.constant(1.0, dtype))) == 8.0


@defect(V1, AssertionError, broken=support.TF_VERSION < (2, 3))
def test_m3_it_has_variables(ns):
    with support.graph():
        opt = ns.MixedPrecisionLossScaleOptimizer(tf1.train.AdamOptimizer(), "dynamic")
        opt.minimize(tf.reduce_sum(tf1.get_variable("v", initializer=[1.0])))
        assert opt.variables()


def test_m4_the_original_shows_no_slots():
    with support.graph():
        variable = tf1.get_variable("v", initializer=[1.0])
        opt = V1["original"].MixedPrecisionLossScaleOptimizer(tf1.train.AdamOptimizer(), 8)
        opt.minimize(tf.reduce_sum(variable))
        assert opt.get_slot(variable, "m") is None
        assert opt.get_slot_names() == []


@defect(V1, AssertionError)
def test_m3_m4_it_is_an_optimizer(ns):
    with support.graph():
        variable = tf1.get_variable("v", initializer=[1.0])
        inner = tf1.train.AdamOptimizer(name="Mine")
        opt = ns.MixedPrecisionLossScaleOptimizer(inner, "dynamic")
        opt.minimize(tf.reduce_sum(variable))
        assert opt.get_name() == "Mine"
        assert opt.variables()[: len(inner.variables())] == inner.variables()
        names = [variable.op.name for variable in opt.variables()[len(inner.variables()) :]]
        assert names == ["current_loss_scale", "good_steps"]
        assert opt.get_slot_names() == ["m", "v"]
        assert opt.get_slot(variable, "m") is inner.get_slot(variable, "m")


@defect(V1, AssertionError)
def test_m5_a_loss_scale_of_ones_own_is_updated_and_obeyed(ns):
    updates = []

    class Never(ns.LossScale):
        def __init__(self):
            super().__init__()
            self._scale = self._add_weight("mine", 4.0, tf.float32)

        def __call__(self):
            return tf.convert_to_tensor(self._scale)

        def update(self, grads):
            updates.append(len(grads))
            return self._scale.assign_add(1.0), tf.constant(False)

        def get_config(self):
            return {}

    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=[1.0])
        scale = Never()
        step = ns.MixedPrecisionLossScaleOptimizer(sgd(), scale).minimize(tf.reduce_sum(variable))
        support.trained(session, step, [])
        assert updates == [1]
        assert session.run([variable, scale()]) == [[1.0], 5.0]


def fixed_optimizers():
    for ns in V1.values():
        yield ns.MixedPrecisionLossScaleOptimizer(sgd(), 8), -INF
    for mp in CONTRIB.values():
        yield mp.LossScaleOptimizer(sgd(), mp.FixedLossScaleManager(8)), 1.0


def test_m6_a_fixed_scale_of_v1_applies_what_is_not_finite():
    with support.graph() as session:
        for index, (opt, after) in enumerate(fixed_optimizers()):
            variable = tf1.get_variable(f"v{index}", initializer=[1.0])
            step = opt.minimize(tf.reduce_sum(variable) * INF, var_list=[variable])
            assert support.trained(session, step, variable) == [after]


@defect(V1, TypeError, broken=support.TF_VERSION < (2, 2))
def test_m7_no_loss_scale_is_a_value_error(ns):
    with pytest.raises(ValueError, match="cannot be None"):
        ns.MixedPrecisionLossScaleOptimizer(sgd(), None)


@pytest.mark.parametrize("bad", ["static", {}, [1.0], np.float32(2), b"dynamic"])
def test_identifiers_that_cannot_be_interpreted(v1, bad):
    with pytest.raises(ValueError, match="Could not interpret loss scale identifier"):
        v1.MixedPrecisionLossScaleOptimizer(sgd(), bad)


def test_what_is_no_v1_optimizer_is_a_value_error(v1):
    with pytest.raises(ValueError, match='"opt" must be an instance of Optimizer, but got'):
        v1.MixedPrecisionLossScaleOptimizer(object(), 2)


CONSTRUCTORS = """
import importlib
import sys
for owner in sys.argv[1:]:
    experimental = importlib.import_module(owner).experimental
    print("made by", owner, file=sys.stderr, flush=True)
    experimental.DynamicLossScale()
    experimental.FixedLossScale(2.0)
"""


def test_only_the_constructors_of_the_original_log_a_deprecation():
    names = {"DynamicLossScale", "FixedLossScale"}
    owners = ["tf_lossscale.compat.v1.train"]
    if not support.IS_TF1:  # whose namespaces are elsewhere, and which logs nothing
        owners.insert(0, "tensorflow._api.v2.compat.v1.train")
    logged = run_python("-c", CONSTRUCTORS, *owners).stderr.split("made by ")[1:]
    assert len(logged) == len(owners)
    for owner, log in zip(owners, logged):
        found = {name for name in names if f"{name}.__init__ " in log}
        logs = owner.startswith("tensorflow") and support.TF_VERSION >= (2, 4)
        assert found == (names if logs else set()), log


@defect(V1, AttributeError)
def test_weights_can_be_added_before_the_constructor_of_the_base(ns):
    class Early(ns.LossScale):
        def __init__(self):
            self._scale = self._add_weight("scale", 2.0, tf.float32)
            super().__init__()

        def __call__(self):
            return tf.convert_to_tensor(self._scale)

        def update(self, grads):
            return tf.no_op(), True

        def get_config(self):
            return {}

    with support.graph() as session:
        scale = Early()
        session.run(tf1.global_variables_initializer())
        assert session.run(scale()) == 2.0


@defect(V1, AssertionError)
def test_the_loss_scale_is_read_once_per_step(ns):
    readings = []

    class Counted(ns.DynamicLossScale):
        def __call__(self):
            readings.append("read")
            return super().__call__()

    with support.graph():
        variable = tf1.get_variable("v", initializer=1.0, use_resource=True)
        opt = ns.MixedPrecisionLossScaleOptimizer(sgd(), Counted(8.0, 2))
        opt.minimize(variable * 1.0, var_list=[variable])
        assert readings == ["read"]


@defect(V1, AssertionError)
def test_no_gradients_count_as_no_step(ns):
    with support.eager():
        variable = tf.compat.v2.Variable(1.0)
        scale = ns.DynamicLossScale(8.0, 5)
        opt = ns.MixedPrecisionLossScaleOptimizer(sgd(), scale)
        opt.compute_gradients(lambda: variable * 1.0, [variable])
        with pytest.raises(ValueError, match="No gradients"):
            opt.apply_gradients([(None, variable)])
        assert int(scale._num_good_steps.numpy()) == 0


@defect(V1, (tf.errors.InvalidArgumentError, tf.errors.NotFoundError))
def test_gradients_that_are_not_floats_are_type_errors(ns):
    with support.eager(), pytest.raises(TypeError, match="float"):
        ns.DynamicLossScale(8.0, 5).update([tf.constant([1])])


@defect(CONTRIB, TypeError)
def test_reference_variables_under_control_flow_v2(mp):
    with support.graph(control_flow_v2=True) as session:
        variable = tf1.get_variable("v", initializer=1.0, use_resource=False)
        opt, _ = contrib_pair(mp)
        step = opt.minimize(variable * 1.0, var_list=[variable])
        assert support.trained(session, step, variable) == 0.5


def test_no_gradients_leave_the_state_of_contrib_alone(contrib):
    with support.graph():
        variable = tf1.get_variable("v", initializer=1.0)
        opt, _ = contrib_pair(contrib)
        opt.compute_gradients(variable * 1.0, [variable])
        before = tf1.get_default_graph().as_graph_def()
        with pytest.raises(ValueError):
            opt.apply_gradients([])
        after = tf1.get_default_graph().as_graph_def()
        added = [node.op for node in after.node[len(before.node) :]]
        assert [op for op in added if op.startswith("Assign")] == []
