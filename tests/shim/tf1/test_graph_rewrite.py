"""The graph rewrite is really turned on and off, and takes every optimizer that it should."""

import pytest
import recorded
import support
import tensorflow as tf
from processes import run_python
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
        assert not any("already disabled" in message for message in log)
        v1.disable_mixed_precision_graph_rewrite()
        assert any("called when mixed precision is already disabled" in message for message in log)


def test_existing_sessions_are_reported(v1, log):
    with support.graph():
        v1.enable_mixed_precision_graph_rewrite(sgd())
    assert any("You already have existing Sessions" in message for message in log)


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


EXPERIMENTAL = tfls.keras.mixed_precision.experimental.LossScaleOptimizer
# The original wraps Keras optimizers in the experimental class where Keras has it, up to 2.8.
WRAPS_KERAS = ["original", "ours"] if support.TF_VERSION < (2, 9) else ["ours"]


@kinds
def test_e4_keras_optimizers(kind):
    with support.eager():
        opt = enable(kind.optimizers.SGD(0.5), 8)
        assert isinstance(opt, tfls.keras.mixed_precision.LossScaleOptimizer)
        assert isinstance(opt, EXPERIMENTAL)
        assert type(opt) is type(EXPERIMENTAL(kind.optimizers.SGD(0.5), 8))
        assert float(opt.loss_scale) == 8.0
        assert option()
        # E3
        with pytest.raises(ValueError, match="must not already be an instance of a LossScaleOpt"):
            enable(opt)
        with pytest.raises(ValueError, match="cannot be None"):
            enable(kind.optimizers.SGD(0.5), None)


def scaled_by_class(opt, experimental, factor):
    """The scaled loss and the weight of a step that only scales for the experimental class.

    The code that trained BERT in tensorflow/models of 2020 tests the class like this.
    """
    weight = tf.compat.v2.Variable(1.0)
    scales = isinstance(opt, experimental)
    with tf.GradientTape() as tape:
        loss = factor * weight
        if scales:
            loss = opt.get_scaled_loss(loss)
    gradients = tape.gradient(loss, [weight])
    if scales:
        gradients = opt.get_unscaled_gradients(gradients)
    opt.apply_gradients(zip(gradients, [weight]))
    return float(loss), float(weight.numpy())


LOSS_SCALES = {
    "dynamic": (lambda scales: "dynamic", 2.0**15),
    "number": (lambda scales: 8.0, 8.0),
    "object": (lambda scales: scales.DynamicLossScale(4, 1), 4.0),
}


@pytest.mark.parametrize("loss_scale", list(LOSS_SCALES))
@pytest.mark.parametrize("whose", WRAPS_KERAS)
@kinds
def test_a_program_that_tests_the_experimental_class(kind, whose, loss_scale):
    owner, mixed_precision = (tfls, tfls) if whose == "ours" else (tf, kind)
    scales = owner.compat.v1.train.experimental
    experimental = mixed_precision.keras.mixed_precision.experimental.LossScaleOptimizer
    make, first = LOSS_SCALES[loss_scale]
    with support.eager():
        inner = kind.optimizers.SGD(0.5)
        opt = scales.enable_mixed_precision_graph_rewrite(inner, make(scales))
        assert scaled_by_class(opt, experimental, 1.0) == (first, 0.5)


@pytest.mark.parametrize("whose", ["original", "ours"] if support.TF_VERSION < (2, 4) else ["ours"])
@kinds
def test_every_loss_scale_is_used(kind, whose):
    """Other multipliers than 2, and classes of a program, which the original took up to 2.3."""
    owner = tfls if whose == "ours" else tf
    scales = owner.compat.v1.train.experimental
    with support.eager():
        opt = scales.enable_mixed_precision_graph_rewrite(
            kind.optimizers.SGD(0.5), scales.DynamicLossScale(16, 1, 4)
        )
        weight = recorded.make_variable(kind, 1.0, "v")
        for factor, expected in ((1.0, 64.0), (float("inf"), 16.0)):
            gradients = opt.get_unscaled_gradients([opt.get_scaled_loss(tf.constant(factor))])
            opt.apply_gradients(zip(gradients, [weight]))
            assert float(recorded.scale_of(opt)) == expected
        own = scales.enable_mixed_precision_graph_rewrite(
            kind.optimizers.SGD(0.5), recorded.below_100(scales)()
        )
        gradients = own.get_unscaled_gradients([own.get_scaled_loss(tf.constant(200.0))])
        own.apply_gradients(zip(gradients, [weight]))
        assert float(weight.numpy()) == 0.5  # not applied, as its `update` decides
        assert float(recorded.scale_of(own)) == 5.0


@pytest.mark.skipif(not (2, 4) <= support.TF_VERSION < (2, 6), reason="a defect of 2.4 and 2.5")
def test_e3_the_original_raises_an_unclear_error():
    opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5))
    with pytest.raises(AttributeError, match="_hyper"):
        tf1.train.experimental.enable_mixed_precision_graph_rewrite(opt)


@kinds
def test_e4_keras_optimizers_in_the_original(kind):
    """It refuses those of the newer kinds, and wraps the legacy ones in the final class."""
    original = tf1.train.experimental.enable_mixed_precision_graph_rewrite
    optimizer = kind.optimizers.SGD(0.5)
    with support.eager():
        if kind.name != "legacy":
            with pytest.raises(ValueError, match='"opt" must be an instance of a tf'):
                original(optimizer)
            return
        has_experimental = support.TF_VERSION < (2, 9)
        assert callable(original(optimizer, 8).loss_scale) is (support.TF_VERSION < (2, 4))
        experimental = getattr(tf.keras.mixed_precision, "experimental", None)
        assert hasattr(experimental, "LossScaleOptimizer") is has_experimental


SET_BEFORE = """
import tensorflow as tf
tf.compat.v1.enable_v2_behavior()
tf.keras.mixed_precision.experimental.set_policy("float32")
inner = tf.compat.v1.train.GradientDescentOptimizer(0.5)
try:
    tf.compat.v1.train.experimental.enable_mixed_precision_graph_rewrite(inner)
except ValueError as error:
    print("refused", "set" in str(error))
"""


@pytest.mark.skipif(support.TF_VERSION >= (2, 3), reason="a defect up to 2.2")
def test_e1_the_original_is_refused_after_any_call_of_set_policy():
    assert run_python("-c", SET_BEFORE).stdout.splitlines()[-1] == "refused True"


@kinds
def test_e5_a_policy_can_be_set_after_the_rewrite(kind):
    """And, with the original and Keras 3, before it."""
    if kind.name != "keras3":
        return
    original = tf1.train.experimental.enable_mixed_precision_graph_rewrite
    with support.graph():
        enable(sgd())
        try:
            set_policy(kind.keras, "mixed_float16")
            assert option()
            original(sgd())
        finally:
            set_policy(kind.keras, "float32")


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
