"""Trains with Adam under mixed_float16, from the latest checkpoint of a `CheckpointManager`."""

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.keras.mixed_precision import experimental as mixed_precision


def network():
    inputs = tf.keras.layers.Input((8,))
    hidden = tf.keras.layers.Dense(32, activation="relu")(inputs)
    hidden = tf.keras.layers.BatchNormalization()(hidden)
    hidden = tf.keras.layers.Dense(32, activation="relu")(hidden)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(1, dtype="float32")(hidden))


def batch(number):
    random = np.random.RandomState(number)
    points = random.normal(size=(256, 8)).astype(np.float32)
    return points, np.sin(points.sum(axis=1, keepdims=True))


def train(steps, folder):
    """Trains up to a step, prints the loss after every fifth one, and saves a checkpoint."""
    tf.random.set_seed(1)
    mixed_precision.set_policy("mixed_float16")
    net, step = network(), tf.Variable(0)
    loss_scale = tf.mixed_precision.experimental.DynamicLossScale(2.0**20, increment_period=50)
    optimizer = mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam(0.01), loss_scale)
    checkpoint = tf.train.Checkpoint(step=step, net=net, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    while int(step) < steps:
        points, targets = batch(int(step))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(points, training=True) - targets) ** 2)
            scaled_loss = optimizer.get_scaled_loss(loss)
        gradients = tape.gradient(scaled_loss, net.trainable_variables)
        gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(list(zip(gradients, net.trainable_variables)))
        step.assign_add(1)
        if int(step) % 5 == 0:
            scale = float(optimizer.loss_scale())
            print(f"step {int(step)}, loss {float(loss):.4f}, loss scale {scale}")
    manager.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--folder", default="run")
    args = parser.parse_args()
    train(args.steps, args.folder)
