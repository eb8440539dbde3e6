"""Keras, TensorFlow 2.3: a custom float16 training loop with clipping under loss scaling.

The policy casts the layers to float16; the loop scales the loss, unscales the gradients and clips
them. The first loss scale is too high on purpose, so that the first steps are skipped.
"""

import argparse
import json
import sys

import tensorflow as tf
from digits_data import batches, initial_weights
from tensorflow.keras.mixed_precision import experimental as mixed_precision


def build_model():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            tf.keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
            tf.keras.layers.Activation("linear", dtype="float32"),
        ]
    )
    model.build([None, 8, 8, 1])
    model.set_weights(initial_weights())
    return model


def train(steps, report):
    mixed_precision.set_policy("mixed_float16")
    model = build_model()
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    optimizer = tf.keras.optimizers.SGD(learning_rate=0.005, momentum=0.9)
    loss_scale = tf.mixed_precision.experimental.DynamicLossScale(
        initial_loss_scale=2.0**22, increment_period=20
    )
    optimizer = mixed_precision.LossScaleOptimizer(optimizer, loss_scale)

    @tf.function
    def train_step(images, digits):
        with tf.GradientTape() as tape:
            loss = cross_entropy(digits, model(images, training=True))
            if isinstance(optimizer, mixed_precision.LossScaleOptimizer):
                scaled_loss = optimizer.get_scaled_loss(loss)
            else:
                scaled_loss = loss
        gradients = tape.gradient(scaled_loss, model.trainable_variables)
        if isinstance(optimizer, mixed_precision.LossScaleOptimizer):
            gradients = optimizer.get_unscaled_gradients(gradients)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    before = float(optimizer.loss_scale())
    for step, (x, y) in enumerate(batches(steps, size=64)):
        loss = train_step(tf.constant(x), tf.constant(y))
        scale = float(optimizer.loss_scale())
        report({"step": step, "loss": float(loss), "loss_scale": scale, "skipped": scale < before})
        before = scale


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    steps = parser.parse_args().steps

    def report(row):
        print(json.dumps(row))
        sys.stdout.flush()

    train(steps, report)


if __name__ == "__main__":
    main()
