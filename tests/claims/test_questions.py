"""Rows of the pages that answer questions, whose programs the pages do not show."""

import pytest

tf = pytest.importorskip("tensorflow")

import tf_lossscale as tfls  # noqa: E402 - needs TensorFlow

tf1 = tf.compat.v1


def averages(optimizer, gradients):
    """The average of a weight after each step."""
    weight = tf.Variable(1.0)
    found = []
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weight)])
        inner = getattr(optimizer, "inner_optimizer", optimizer)
        found += [float(variable) for variable in inner.variables if "average" in variable.name]
    return found


def test_a_skipped_step_does_not_change_the_average_of_use_ema():
    """`docs/wrappers.md`; the option is one of the inner optimizer."""

    def sgd():
        return tf.keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.5)

    first, second = averages(sgd(), [1.0, 1.0])
    optimizer = tfls.keras.mixed_precision.LossScaleOptimizer(sgd())
    seen = averages(optimizer, [1.0, float("inf"), 1.0, float("nan")])
    assert seen == [first, first, second, second]
    with pytest.raises((TypeError, ValueError), match="use_ema"):
        tfls.keras.mixed_precision.LossScaleOptimizer(sgd(), use_ema=True)


def test_auto_mixed_precision_of_the_configuration_scales_nothing():
    """`docs/is-it-scaled.md`: the graph rewrite, which sets the same option, also scales."""
    tf.config.optimizer.set_experimental_options({"auto_mixed_precision": True})
    try:
        model = tf.keras.Sequential([tf.keras.layers.Input([3]), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
        assert type(model.optimizer) is tf.keras.optimizers.SGD
    finally:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision": False})
    plain = tf1.train.GradientDescentOptimizer(0.1)
    wrapped = tf1.mixed_precision.enable_mixed_precision_graph_rewrite(plain)
    tf1.mixed_precision.disable_mixed_precision_graph_rewrite()
    assert isinstance(wrapped, tfls.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer)
