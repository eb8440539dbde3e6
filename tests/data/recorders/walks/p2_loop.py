"""Custom loop with gradient accumulation and clipping."""

import tensorflow as tf

from tf_lossscale.keras.mixed_precision import experimental as mixed_precision


class Trainer:
    def __init__(self, net, lr, loss_scale="dynamic", accumulate=2):
        self.net = net
        if loss_scale == "dynamic":
            scale = tf.compat.v1.mixed_precision.DynamicLossScale(
                initial_loss_scale=2**18, increment_period=50, multiplier=2.0
            )
        else:
            scale = loss_scale
        opt = tf.keras.optimizers.Adam(lr)
        self.opt = mixed_precision.LossScaleOptimizer(opt, scale)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.accumulate = accumulate
        self.acc = [tf.Variable(tf.zeros_like(v), trainable=False) for v in net.trainable_variables]

    @tf.function
    def micro(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.net(x, training=True))
            scaled = self.opt.get_scaled_loss(loss)
        grads = tape.gradient(scaled, self.net.trainable_variables)
        for a, g in zip(self.acc, self.opt.get_unscaled_gradients(grads)):
            a.assign_add(g / self.accumulate)
        return loss

    @tf.function
    def apply(self):
        grads, _ = tf.clip_by_global_norm([a.read_value() for a in self.acc], 1.0)
        self.opt.apply_gradients(zip(grads, self.net.trainable_variables))
        for a in self.acc:
            a.assign(tf.zeros_like(a))

    def log_scale(self):
        return float(self.opt.loss_scale)

    def set_lr(self, lr):
        self.opt._optimizer.learning_rate = lr
