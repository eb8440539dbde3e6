"""An unmodified script of the year 2019: it knows nothing of the shim. Prints one JSON value."""

import json
import sys

import tensorflow.compat.v1 as tf
from tensorflow.contrib import mixed_precision as mp
from tensorflow.contrib.mixed_precision import FixedLossScaleManager, LossScaleOptimizer

tf.disable_v2_behavior()


def train(manager, steps):
    weight = tf.Variable(1.0)
    factor = tf.placeholder(tf.float32, [])
    step = tf.train.get_or_create_global_step()
    optimizer = LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager)
    train_op = optimizer.minimize(weight * factor, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for value in steps:
            session.run(train_op, {factor: value})
        return [float(session.run(weight)), int(session.run(step))]


if __name__ == "__main__":
    fixed = train(FixedLossScaleManager(8.0), [1.0, float("inf"), 1.0])
    tf.reset_default_graph()
    moving = train(mp.ExponentialUpdateLossScaleManager(8.0, 2, 1), [1.0, float("nan"), 1.0])
    print(json.dumps({"argv": sys.argv[1:], "fixed": fixed, "moving": moving}))
