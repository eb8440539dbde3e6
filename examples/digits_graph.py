"""Graph mode, TensorFlow 1.15: a float16 convolutional network under `tf.contrib` loss scaling.

The weights are float32 and are cast to float16 where they are used. The first loss scale is far too
high, so the first steps overflow and are skipped while the manager brings it down; later it grows
again until the next overflow.
"""

import argparse
import json
import sys

import tensorflow.compat.v1 as tf
from digits_data import batches, initial_weights
from tensorflow.contrib.mixed_precision import (
    ExponentialUpdateLossScaleManager,
    LossScaleOptimizer,
)


def network(images, weights):
    """Logits, float32 of shape [batch, 10]; everything before them is float16."""
    conv1, bias1, conv2, bias2, dense, bias3 = [tf.cast(w, tf.float16) for w in weights]
    x = tf.cast(images, tf.float16)
    x = tf.nn.relu(tf.nn.conv2d(x, conv1, strides=[1, 1, 1, 1], padding="SAME") + bias1)
    x = tf.nn.relu(tf.nn.conv2d(x, conv2, strides=[1, 2, 2, 1], padding="SAME") + bias2)
    x = tf.reshape(x, [-1, 4 * 4 * 32])
    return tf.cast(tf.matmul(x, dense) + bias3, tf.float32)


def train(steps, report):
    tf.disable_v2_behavior()
    images = tf.placeholder(tf.float32, [None, 8, 8, 1])
    digits = tf.placeholder(tf.int32, [None])
    weights = [
        tf.get_variable("w" + str(i), initializer=value)
        for i, value in enumerate(initial_weights())
    ]
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=digits, logits=network(images, weights)
        )
    )

    global_step = tf.train.get_or_create_global_step()
    optimizer = tf.train.MomentumOptimizer(learning_rate=0.005, momentum=0.9)
    manager = ExponentialUpdateLossScaleManager(
        init_loss_scale=2.0**26,
        incr_every_n_steps=20,
        decr_every_n_nan_or_inf=2,
        incr_ratio=2.0,
        decr_ratio=0.5,
    )
    optimizer = LossScaleOptimizer(optimizer, manager)
    train_op = optimizer.minimize(loss, global_step=global_step)
    loss_scale = manager.get_loss_scale()

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        applied = 0
        for step, (x, y) in enumerate(batches(steps, size=64)):
            value, _ = session.run([loss, train_op], {images: x, digits: y})
            scale, done = session.run([loss_scale, global_step])
            skipped, applied = done == applied, done
            report(
                {
                    "step": step,
                    "loss": float(value),
                    "loss_scale": float(scale),
                    "skipped": bool(skipped),
                }
            )


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
