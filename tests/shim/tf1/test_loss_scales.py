"""Loss scales and managers without optimizers, for our classes and the originals."""

import copy
import pickle

import numpy as np
import pytest
import support
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1


def test_configs_and_representations(v1):
    with support.graph():
        fixed, dynamic = v1.FixedLossScale(8), v1.DynamicLossScale("16", 2.9, "3")
        assert repr(fixed) == "FixedLossScale(8.0)"
        assert fixed.get_config() == {"loss_scale_value": 8.0}
        assert repr(dynamic) == (
            "DynamicLossScale(initial_loss_scale=16.0, increment_period=2, multiplier=3.0)"
        )
        for scale in (fixed, dynamic):
            with support.graph():
                again = type(scale).from_config(scale.get_config())
                assert again.get_config() == scale.get_config()
        with pytest.raises(TypeError):
            v1.DynamicLossScale.from_config({"unknown": 1})
        with pytest.raises(AttributeError):
            dynamic.multiplier = 2


def test_representation_in_eager_mode(v1):
    with support.eager():
        scale = v1.DynamicLossScale(10.0, 1, 3.0)
        scale.update([tf.constant(float("nan"))])
        assert repr(scale) == (
            "DynamicLossScale(current_loss_scale=3.3333333, num_good_steps=0, "
            "initial_loss_scale=10.0, increment_period=1, multiplier=3.0)"
        )


def test_copies(v1):
    fixed = v1.FixedLossScale(8.0)
    for again in (copy.deepcopy(fixed), pickle.loads(pickle.dumps(fixed))):
        assert again.get_config() == fixed.get_config()
    with support.eager():
        scale = v1.DynamicLossScale(8.0, 1)
        again = copy.deepcopy(scale)
        scale.update([tf.constant(1.0)])
        assert (float(scale()), float(again())) == (16.0, 8.0)
    with support.graph(), pytest.raises(NotImplementedError):
        copy.deepcopy(v1.DynamicLossScale())


def test_fixed_updates(v1):
    with support.graph():
        operation, apply = v1.FixedLossScale(2).update(None)
        assert (operation.type, apply) == ("NoOp", True)
    with support.eager():
        assert v1.FixedLossScale(2).update(None) == (None, True)


def test_a_second_weight_of_a_name(v1):
    class Mine(v1.DynamicLossScale):
        pass

    with support.graph():
        scale = Mine()
        with pytest.raises(RuntimeError, match="Duplicate variables detected"):
            scale._add_weight("good_steps", 0, tf.int64)


def test_each_graph_sees_its_own_state(v1, tmp_path):
    with support.graph():
        scale = v1.DynamicLossScale()
        with support.graph() as session:
            checkpoint = tf1.train.Checkpoint(scale=scale)
            session.run(tf1.global_variables_initializer())
            path = checkpoint.save(str(tmp_path / "c"), session=session)
    keys = [key for key, _ in tf.train.list_variables(path)]
    assert not any("current_loss_scale" in key for key in keys)


def test_restored_before_it_is_made(v1, tmp_path):
    with support.eager():
        scale = v1.DynamicLossScale(8.0, 1)
        scale.update([tf.constant(1.0)])
        path = tf1.train.Checkpoint(holder=scale).save(str(tmp_path / "c"))
        checkpoint = tf1.train.Checkpoint()
        status = checkpoint.restore(path)
        checkpoint.holder = v1.DynamicLossScale(1.0)
        status.assert_consumed()
        assert float(checkpoint.holder()) == 16.0


def test_abstract_classes(v1):
    with pytest.raises(TypeError, match="abstract"):
        v1.LossScale()


def test_fixed_manager(contrib):
    with support.graph() as session:
        manager = contrib.FixedLossScaleManager(np.float64(4))
        assert manager.get_loss_scale() is manager.get_loss_scale()
        assert session.run(manager.get_loss_scale()) == 4.0
        assert manager.update_loss_scale(tf.constant(False)).type == "NoOp"
        for bad, error in ((0.5, ValueError), ("10", TypeError), (None, TypeError)):
            with pytest.raises(error):
                contrib.FixedLossScaleManager(bad)
        with pytest.raises(TypeError, match="abstract"):
            contrib.LossScaleManager()
    with support.eager():
        assert contrib.FixedLossScaleManager(2).update_loss_scale(False) is None


def test_exponential_manager(contrib):
    with support.graph() as session:
        manager = contrib.ExponentialUpdateLossScaleManager(4, 2)
        assert manager.get_loss_scale() is manager._loss_scale
        update = manager.update_loss_scale(tf1.placeholder_with_default(True, []))
        assert isinstance(update, tf.Tensor)
        assert support.trained(session, update, manager._num_good_steps) == 1
        session.run(manager._reset_stats())
        assert session.run(manager._num_good_steps) == 0
        for bad in (None, "x", tf.constant(1.0, tf.float64)):
            with pytest.raises((TypeError, ValueError)):
                contrib.ExponentialUpdateLossScaleManager(bad, 2)
    with support.eager():
        manager = contrib.ExponentialUpdateLossScaleManager(4, 1)
        assert manager.update_loss_scale(True) is None
        assert manager.get_loss_scale().numpy() == 8.0


@pytest.mark.parametrize("mode", [support.graph, lambda: support.graph(True), support.eager])
def test_an_overridden_reset_is_called_when_the_scale_changes(contrib, mode):
    class KeepsBadSteps(contrib.ExponentialUpdateLossScaleManager):
        def __init__(self, *args):
            super().__init__(*args)
            self.resets = tf1.Variable(0, trainable=False, use_resource=True)

        def _reset_stats(self):
            return tf.group(self._num_good_steps.assign(0), self.resets.assign_add(1))

    seen = []
    with mode() as session:
        manager = KeepsBadSteps(64.0, 2, 2, 2.0, 0.5)
        state = [manager._num_good_steps, manager._num_bad_steps, manager.resets]
        if session is not None:
            finite = tf1.placeholder(tf.bool, [])
            update = manager.update_loss_scale(finite)
            session.run(tf1.global_variables_initializer())
        for flag in (False, True, True, False, True, False):
            if session is None:
                assert manager.update_loss_scale(flag) is None
                seen.append([variable.numpy() for variable in [manager.get_loss_scale(), *state]])
            else:
                session.run(update, {finite: flag})
                seen.append(session.run([manager.get_loss_scale(), *state]))
    assert seen == [
        [64, 0, 1, 0],
        [64, 1, 1, 0],
        [128, 0, 1, 1],
        [64, 0, 1, 2],
        [64, 1, 1, 2],
        [32, 0, 1, 3],
    ]


def test_a_manager_of_ones_own(contrib):
    class Halving(contrib.LossScaleManager):
        def __init__(self):  # without a call of the base class
            self.scale = tf1.Variable(8.0, trainable=False)

        def get_loss_scale(self):
            return self.scale

        def update_loss_scale(self, finite_grads):
            return tf.cond(
                finite_grads, lambda: tf.constant(0.0), lambda: self.scale.assign(self.scale / 2)
            )

    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=[1.0])
        factor = tf1.placeholder(tf.float32, [])
        opt = contrib.LossScaleOptimizer(support.sgd(), Halving())
        step = opt.minimize(tf.reduce_sum(variable * factor))
        session.run(tf1.global_variables_initializer())
        session.run(step, {factor: float("inf")})
        assert session.run([variable, opt._loss_scale_manager.scale]) == [[1.0], 4.0]
        session.run(step, {factor: 1.0})
        assert session.run(variable) == [0.5]


def test_a_subclass_of_the_contrib_optimizer_without_the_constructor(contrib):
    class Mine(contrib.LossScaleOptimizer):
        def __init__(self):
            self._opt = support.sgd()
            self._loss_scale_manager = contrib.FixedLossScaleManager(2)

    with support.graph() as session:
        variable = tf1.get_variable("v", initializer=[1.0])
        step = Mine().minimize(tf.reduce_sum(variable))
        assert support.trained(session, step, variable) == [0.5]


def test_autograph_leaves_our_code_alone():
    with support.eager():
        scale = tfls.train.experimental.DynamicLossScale(8.0, 1)

        @tf.function
        def update(gradient):
            return scale.update({"nested": [gradient, None]})[1]

        assert update(tf.constant(1.0)).numpy()
        assert float(scale()) == 16.0
        assert not update(tf.constant(float("inf"))).numpy()
        assert float(scale()) == 8.0
