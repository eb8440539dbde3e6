"""Random operations that are created after `minimize` draw the numbers of the original program.

On TensorFlow 1.15 they do so only with a seed of their own, or if they are created before it.
"""

import pytest
import support
import tensorflow as tf

v1 = tf.compat.v1
FAMILIES = [support.v1_optimizer] + [support.contrib_optimizer] * support.IS_TF1
families = pytest.mark.parametrize("make", FAMILIES)


def drawn(make, seed=None, before=False):
    """The number that a random operation draws beside a step of our optimizer and the original."""
    for whose in ("ours", "original"):
        with tf.Graph().as_default():
            v1.set_random_seed(7)
            weight = v1.get_variable("weight", initializer=1.0)
            number = v1.random_normal([], seed=seed) if before else None
            optimizer, _ = make(support.sgd(), whose=whose)
            optimizer.minimize(weight * 2.0)
            number = v1.random_normal([], seed=seed) if number is None else number
            with v1.Session() as session:
                yield float(session.run(number))


@families
@pytest.mark.parametrize("arguments", [{"seed": 3}, {"before": True}])
def test_with_a_seed_of_its_own_or_created_before(make, arguments):
    ours, theirs = drawn(make, **arguments)
    assert ours == theirs


@families
def test_created_afterwards(make):
    ours, theirs = drawn(make)
    assert (ours == theirs) is not support.IS_TF1
