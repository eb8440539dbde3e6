"""The sums of gradients over the replicas of a strategy, before a step tests them."""

import support
import tensorflow as tf

from tf_lossscale._core.gradient_sums import summed_pairs


def test_each_sum_stays_with_its_variable_and_none_stays_none():
    with support.eager():
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        dtypes = (tf.float32, tf.float16, tf.float32, tf.float16)
        with strategy.scope():
            variables = [tf.Variable(tf.zeros([], dtype)) for dtype in dtypes]
        gradients = [
            tf.constant(1.0),
            tf.constant(2.0, tf.float16),
            None,
            tf.constant(3.0, tf.half),
        ]
        pairs = summed_pairs(strategy, list(zip(gradients, variables)))
        assert all(pair[1] is variable for pair, variable in zip(pairs, variables))
        found = [gradient if gradient is None else float(gradient) for gradient, _ in pairs]
    assert found == [1.0, 2.0, None, 3.0]
