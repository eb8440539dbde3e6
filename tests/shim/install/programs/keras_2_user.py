"""What programs for TensorFlow 2.4 to 2.15 do with the final class, each in its own way.

Prints as JSON what each ends with. Nothing here knows of the shim: run it with `python`, or with
`tf-lossscale run`. The losses are about 1e-6, so that gradients of float16 are 0 unless they are
scaled. A batch is one example, so that no sum is rounded: steps are the same on every version.
"""

import json
import sys

import numpy as np
import tensorflow as tf
from tensorflow.keras import mixed_precision

TINY = 2.0**-20
RATE = 2.0**17
STEPS = 4
X = np.full((1, 1), 1.5, "float32")
Y = np.zeros((1, 1), "float32")


class Line(tf.keras.Model):
    """One weight, 1.0, applied in float16; the loss is tiny."""

    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")

    def call(self, x):
        return self.dense(x)

    def loss_of(self, x):
        return tf.reduce_mean(tf.square(self(x, training=True))) * tf.constant(TINY, tf.float16)


class Asks(Line):
    """Scales where its optimizer is a LossScaleOptimizer, and works in float32 as well."""

    def train_step(self, data):
        x, _ = data
        scales = isinstance(self.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
        with tf.GradientTape() as tape:
            loss = self.loss_of(x)
            to_differentiate = self.optimizer.get_scaled_loss(loss) if scales else loss
        gradients = tape.gradient(to_differentiate, self.trainable_variables)
        if scales:
            gradients = self.optimizer.get_unscaled_gradients(gradients)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class Scales(Line):
    """Scales without asking, as the guide to mixed precision shows."""

    def train_step(self, data):
        x, _ = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(x)
            scaled_loss = self.optimizer.get_scaled_loss(loss)
        scaled = tape.gradient(scaled_loss, self.trainable_variables)
        gradients = self.optimizer.get_unscaled_gradients(scaled)
        gradients = [tf.clip_by_value(gradient, -TINY, TINY) for gradient in gradients]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class Minimizes(Line):
    """Lets the optimizer do it all."""

    def train_step(self, data):
        x, _ = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(x)
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return {"loss": loss}


class Watching(tf.keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        if isinstance(self.model.optimizer, mixed_precision.LossScaleOptimizer):
            self.seen.append(float(self.model.optimizer.loss_scale))


def sgd():
    return tf.keras.optimizers.SGD(learning_rate=RATE)


def fit(model, **options):
    model.fit(X, Y, batch_size=len(X), epochs=STEPS, shuffle=False, verbose=0, **options)
    return float(model.get_weights()[0][0, 0])


def asks():
    model = Asks()
    model.compile(sgd())
    return [fit(model), int(model.optimizer.iterations.numpy())]


def scales():
    model = Scales()
    model.compile("sgd")
    model.optimizer.learning_rate = RATE
    return [fit(model), model.optimizer.dynamic, model.optimizer.initial_scale]


def minimizes():
    model = Minimizes()
    model.compile(optimizer=sgd())
    return [fit(model), float(model.optimizer.learning_rate.numpy())]


def wraps_a_fixed_one():
    model = Asks()
    optimizer = mixed_precision.LossScaleOptimizer(sgd(), dynamic=False, initial_scale=512)
    model.compile(optimizer)
    return [fit(model), model.optimizer is optimizer, float(optimizer.loss_scale)]


def only_fits():
    watching = Watching()
    inputs = tf.keras.layers.Input((1,))
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    outputs = tf.keras.layers.Activation("linear", dtype="float32")(dense(inputs))
    model = tf.keras.Model(inputs, outputs)
    model.compile(sgd(), loss=lambda y, out: TINY * tf.reduce_mean(tf.square(out)))
    return [fit(model, callbacks=[watching]), watching.seen]


PROGRAMS = (asks, scales, minimizes, wraps_a_fixed_one, only_fits)


def main():
    mixed_precision.set_global_policy("mixed_float16")
    found = {program.__name__: program() for program in PROGRAMS}
    print(json.dumps({"tensorflow": tf.__version__, "results": found}), file=sys.stdout)


main()
