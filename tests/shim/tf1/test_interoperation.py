"""Ours and the installed originals used together, as in a half-migrated program."""

import pytest
import support

from tf_lossscale._versions.base import tf1


@pytest.mark.parametrize("scale_of", ["original", "ours"])
@pytest.mark.parametrize("optimizer_of", ["original", "ours"])
def test_each_optimizer_takes_each_loss_scale(scale_of, optimizer_of):
    namespaces = support.v1_namespaces()
    with support.graph(False) as session:
        weight = tf1.Variable(1.0, use_resource=True)
        factor = tf1.placeholder(tf1.float32, [])
        loss_scale = namespaces[scale_of].DynamicLossScale(8.0, 2)
        optimizer = namespaces[optimizer_of].MixedPrecisionLossScaleOptimizer(
            tf1.train.GradientDescentOptimizer(0.5), loss_scale
        )
        train = optimizer.minimize(weight * factor)
        session.run(tf1.global_variables_initializer())
        trace = []
        for value in (1.0, float("inf"), 1.0, 1.0):
            session.run(train, {factor: value})
            trace.append([float(each) for each in session.run([weight, loss_scale()])])
        assert trace == [[0.5, 8.0], [0.5, 4.0], [0.0, 4.0], [-0.5, 8.0]]
