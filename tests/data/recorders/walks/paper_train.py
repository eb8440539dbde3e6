#!/usr/bin/env python
"""Supplementary code of a paper. Do not edit."""

import argparse
import os

import numpy as np
import tensorflow as tf

ap = argparse.ArgumentParser()
ap.add_argument("--steps", type=int, default=200)
ap.add_argument("--init", default="init.npz")
ap.add_argument("--clip", type=float, default=0.0)
args = ap.parse_args()

tf.keras.mixed_precision.experimental.set_policy("mixed_float16")


class Embed(tf.keras.layers.Layer):
    def __init__(self, units, **kw):
        super().__init__(**kw)
        self.dense = tf.keras.layers.Dense(units, use_bias=False, name="proj")

    def call(self, x):
        h = self.dense(x)
        norm = tf.sqrt(tf.reduce_sum(tf.square(tf.cast(h, tf.float32)), -1, keepdims=True))
        return tf.cast(h, tf.float32) / (norm + 1e-6)


inp = tf.keras.layers.Input([12])
x = tf.keras.layers.Dense(32, activation="relu", use_bias=False, name="enc")(inp)
z = Embed(16, name="emb", dtype="mixed_float16")(x)
out = tf.keras.layers.Dense(3, name="cls", dtype="float32")(z)
net = tf.keras.Model(inp, out)
if os.path.exists(args.init):
    with np.load(args.init) as f:
        net.set_weights([f[f"w{i}"] for i in range(len(f.files))])
else:
    np.savez(args.init, **{f"w{i}": w for i, w in enumerate(net.get_weights())})

opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
    tf.keras.optimizers.Adam(0.01), tf.mixed_precision.experimental.DynamicLossScale(2.0**15, 100)
)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, net(x, training=True))
        scaled = opt.get_scaled_loss(loss)
    grads = opt.get_unscaled_gradients(tape.gradient(scaled, net.trainable_variables))
    if args.clip:
        grads, _ = tf.clip_by_global_norm(grads, args.clip)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


r = np.random.RandomState(0)
W = r.randn(12, 3)
for i in range(args.steps):
    xb = r.randn(32, 12).astype("float32")
    if i >= 60:
        xb[0] = 0  # padding rows in later batches: sqrt(0)
    loss = step(xb, np.argmax(xb.dot(W), 1))
    if i % 40 == 0 or i == args.steps - 1:
        scale = opt.loss_scale() if callable(opt.loss_scale) else opt.loss_scale
        print("step", i, f"loss {float(loss):.4f}", "scale", float(scale))
print("nan weights:", any(np.isnan(w).any() for w in net.get_weights()))
