"""The graph rewrite is really turned on and off, and takes every optimizer that it should."""

import pytest
import recorded
import support
import tensorflow as tf
from small_model import set_policy
from support import sgd

import tf_lossscale as tfls

tf1 = tf.compat.v1
OPTION = "auto_mixed_precision"
enable = tfls.train.experimental.enable_mixed_precision_graph_rewrite


@pytest.fixture(autouse=True)
def off_again():
    yield
    tf1.train.experimental.disable_mixed_precision_graph_rewrite()


def option():
    return tf.config.optimizer.get_experimental_options().get(OPTION, False)


def session_rewrites():
    with tf.Graph().as_default(), tf1.Session() as session:
        mode = session._config.graph_options.rewrite_options.auto_mixed_precision
        return mode == type(session._config.graph_options.rewrite_options).ON


def test_on_and_off(v1, log):
    with support.graph():
        opt = v1.enable_mixed_precision_graph_rewrite(sgd())
        assert isinstance(opt, v1.MixedPrecisionLossScaleOptimizer)
        assert isinstance(opt._loss_scale, v1.DynamicLossScale)
        assert option()
        assert session_rewrites()
        v1.enable_mixed_precision_graph_rewrite(sgd(), 8)
        v1.disable_mixed_precision_graph_rewrite()
        assert not option()
        assert not session_rewrites()
        assert not any("already disabled" in each for each in log)
        v1.disable_mixed_precision_graph_rewrite()
        assert any("called when mixed precision is already disabled" in each for each in log)


def test_existing_sessions_are_reported(v1, log):
    with support.graph():
        v1.enable_mixed_precision_graph_rewrite(sgd())
    assert any("You already have existing Sessions" in each for each in log)


def test_other_options_are_kept(v1):
    before = tf.config.optimizer.get_experimental_options().get("debug_stripper", False)
    tf.config.optimizer.set_experimental_options({"debug_stripper": True})
    try:
        with support.graph():
            v1.enable_mixed_precision_graph_rewrite(sgd())
            v1.disable_mixed_precision_graph_rewrite()
        assert tf.config.optimizer.get_experimental_options()["debug_stripper"]
    finally:
        tf.config.optimizer.set_experimental_options({"debug_stripper": before})


@pytest.mark.parametrize("bad", [None, 1.0, object()])
def test_other_objects_are_refused_and_nothing_is_turned_on(v1, bad):
    with pytest.raises(ValueError, match='"opt" must be an instance of a tf'):
        v1.enable_mixed_precision_graph_rewrite(bad)
    assert not option()


def test_what_scales_already_is_refused(v1):
    with support.graph():
        opt = v1.enable_mixed_precision_graph_rewrite(sgd())
        message = '"opt" must not already be an instance of a MixedPrecisionLossScaleOptimizer'
        with pytest.raises(ValueError, match=message):
            v1.enable_mixed_precision_graph_rewrite(opt)


def test_contrib_optimizers_are_refused():
    for mp in support.contrib_namespaces().values():
        with support.graph():
            opt = mp.LossScaleOptimizer(sgd(), mp.FixedLossScaleManager(2))
            with pytest.raises(ValueError, match="must not already be an instance"):
                enable(opt)


def test_e2_a_mere_name_does_not_matter():
    class LossScaleOptimizer(tf1.train.GradientDescentOptimizer):
        pass

    for name, ns in support.v1_namespaces().items():
        with support.graph():
            if name == "original" and support.TF_VERSION < (2, 3):
                with pytest.raises(ValueError, match="must not already be"):
                    ns.enable_mixed_precision_graph_rewrite(LossScaleOptimizer(0.5))
            else:
                ns.enable_mixed_precision_graph_rewrite(LossScaleOptimizer(0.5))


def test_the_loss_scale_is_passed_on(v1):
    with support.graph() as session:
        opt = v1.enable_mixed_precision_graph_rewrite(sgd(), 8)
        assert session.run(opt._loss_scale()) == 8.0
        with pytest.raises(ValueError, match="Could not interpret"):
            v1.enable_mixed_precision_graph_rewrite(sgd(), "static")


kinds = pytest.mark.parametrize("kind", recorded.kinds(), ids=lambda kind: kind.name)


@kinds
def test_e4_keras_optimizers(kind):
    with support.eager():
        opt = enable(kind.optimizers.SGD(0.5), 8)
        assert isinstance(opt, tfls.keras.mixed_precision.LossScaleOptimizer)
        experimental = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
        assert isinstance(opt, experimental) is (support.TF_VERSION < (2, 9))  # as the original
        assert float(opt.loss_scale) == 8.0
        assert option()
        # E3
        with pytest.raises(ValueError, match="must not already be an instance of a LossScaleOpt"):
            enable(opt)
        with pytest.raises(ValueError, match="cannot be None"):
            enable(kind.optimizers.SGD(0.5), None)


@kinds
def test_e1_e5_only_a_mixed_policy_stops_it(kind):
    disable = tfls.train.experimental.disable_mixed_precision_graph_rewrite
    with support.graph():
        set_policy(kind.keras, "float32")
        enable(sgd())
        disable()
        try:
            set_policy(kind.keras, "mixed_float16")
            with pytest.raises(ValueError, match="mixed precision policy"):
                enable(sgd())
            assert not option()
        finally:
            set_policy(kind.keras, "float32")
        enable(sgd())
