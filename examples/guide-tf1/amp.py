"""The loss scale that the command line asks for."""

import tensorflow as tf


def scaled(optimizer, loss_scale):
    if loss_scale == "dynamic":
        manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(
            2.0**20, incr_every_n_steps=200, decr_every_n_nan_or_inf=1, decr_ratio=0.5
        )
    else:
        manager = tf.contrib.mixed_precision.FixedLossScaleManager(float(loss_scale))
    return tf.contrib.mixed_precision.LossScaleOptimizer(optimizer, manager)
