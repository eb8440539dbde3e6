"""Random operations that are created after `minimize` draw the numbers of the original program.

On TensorFlow 1.15 they do so only with a seed of their own, or if they are created before it.
"""

import pytest
import tensorflow as tf

import tf_lossscale as tfls

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")


def scaled(namespace):
    """A loss-scale optimizer of one namespace, ours or TensorFlow's."""
    loss_scale = namespace.DynamicLossScale(8.0)
    inner = v1.train.GradientDescentOptimizer(0.5)
    return namespace.MixedPrecisionLossScaleOptimizer(inner, loss_scale)


def drawn(namespace, seed=None, before=False):
    """The number that a random operation draws beside a step of the optimizer."""
    with tf.Graph().as_default():
        v1.set_random_seed(7)
        weight = v1.get_variable("weight", initializer=1.0)
        number = v1.random_normal([], seed=seed) if before else None
        scaled(namespace).minimize(weight * 2.0)
        number = v1.random_normal([], seed=seed) if number is None else number
        with v1.Session() as session:
            return float(session.run(number))


OURS, THEIRS = tfls.compat.v1.train.experimental, v1.train.experimental


@pytest.mark.parametrize(
    "arguments",
    [
        {"seed": 3},
        {"before": True},
        pytest.param(
            {},
            marks=pytest.mark.skipif(
                IS_1, reason="1.15 derives the seed from the number of operations"
            ),
        ),
    ],
)
def test_the_numbers_are_those_of_the_original(arguments):
    assert drawn(OURS, **arguments) == drawn(THEIRS, **arguments)
