"""Trains in a custom loop, with clipped gradients."""

import argparse
import os

import tensorflow as tf
from tensorflow.keras.mixed_precision import experimental as mixed_precision

import data
import model


def train(steps, path):
    """Trains, from the weights in `path` if it exists, and returns the last loss."""
    net, loss_fn = model.classifier(), model.loss_fn()
    if os.path.exists(path):
        net.load_weights(path)
    loss_scale = tf.mixed_precision.experimental.DynamicLossScale(2.0**20, increment_period=200)
    optimizer = mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(0.003), loss_scale)

    @tf.function
    def step(points, labels):
        with tf.GradientTape() as tape:
            loss = loss_fn(labels, net(points, training=True))
            scaled_loss = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled_loss, net.trainable_variables)
        gradients = optimizer.get_unscaled_gradients(gradients)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))
        return loss

    for batch in data.batches(steps):
        loss = step(*batch)
    net.save(path)
    print(f"iterations {int(optimizer.iterations)}, loss scale {float(optimizer.loss_scale)}")
    return float(loss)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--path", default="model.h5")
    args = parser.parse_args()
    print(f"loss {train(args.steps, args.path):.2f}")
