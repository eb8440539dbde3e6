"""Random operations that are created after `minimize` draw the numbers of the original program.

On TensorFlow 1.15 they do so only with a seed of their own, or if they are created before it.
"""

import functools

import pytest
import tensorflow as tf

import tf_lossscale as tfls

v1 = tf.compat.v1
IS_1 = tf.__version__.startswith("1.")


def of_v1(root):
    namespace = root.compat.v1.train.experimental
    inner = v1.train.GradientDescentOptimizer(0.5)
    return namespace.MixedPrecisionLossScaleOptimizer(inner, namespace.DynamicLossScale(8.0))


def of_contrib(root):
    namespace = root.contrib.mixed_precision
    manager = namespace.ExponentialUpdateLossScaleManager(8.0, 3)
    return namespace.LossScaleOptimizer(v1.train.GradientDescentOptimizer(0.5), manager)


FAMILIES = [of_v1, of_contrib] if IS_1 else [of_v1]
families = pytest.mark.parametrize("optimizer_of", FAMILIES)


def drawn(optimizer, seed=None, before=False):
    """The number that a random operation draws beside a step of the optimizer."""
    with tf.Graph().as_default():
        v1.set_random_seed(7)
        weight = v1.get_variable("weight", initializer=1.0)
        number = v1.random_normal([], seed=seed) if before else None
        optimizer().minimize(weight * 2.0)
        number = v1.random_normal([], seed=seed) if number is None else number
        with v1.Session() as session:
            return float(session.run(number))


def both(optimizer_of, **arguments):
    return [drawn(functools.partial(optimizer_of, root), **arguments) for root in (tfls, tf)]


@families
@pytest.mark.parametrize("arguments", [{"seed": 3}, {"before": True}])
def test_with_a_seed_of_its_own_or_created_before(optimizer_of, arguments):
    ours, theirs = both(optimizer_of, **arguments)
    assert ours == theirs


@families
def test_created_afterwards(optimizer_of):
    ours, theirs = both(optimizer_of)
    assert (ours == theirs) is not IS_1
