"""Small programs of Keras 2, which mean the same however the names get to our classes.

Prints as JSON what each ends with. Nothing here knows of the shim. The weight of each model begins
at 1.0. Losses are so small that gradients of float16 are 0 unless they are scaled, and a batch is
one example, so that no sum is rounded: the numbers are the same on every version.

`one_meaning.py experimental|final [POLICY...]`: programs for TensorFlow 2.2 to 2.8, or for 2.4 to
2.15; of the experimental policies all, or those that are named.
"""

import json
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

TINY = 2.0**-30
RATE = 2.0**26
STEPS = 3
X = np.full((1, 1), 1.5, "float32")
Y = np.zeros((1, 1), "float32")
LossScales = tf.compat.v1.mixed_precision
if not hasattr(LossScales, "DynamicLossScale"):  # up to TensorFlow 2.3
    LossScales = tf.compat.v1.train.experimental


def tiny(y, out):
    return TINY * tf.reduce_mean(tf.square(tf.cast(out, tf.float32)))


def network(cls=None):
    """One weight, which is applied in the dtype of the policy."""
    inputs = tf.keras.layers.Input((1,))
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    outputs = tf.keras.layers.Activation("linear", dtype="float32")(dense(inputs))
    return (cls or tf.keras.Model)(inputs, outputs)


def sgd():
    return tf.keras.optimizers.SGD(RATE)


def fit(model, steps=STEPS):
    model.fit(X, Y, batch_size=1, epochs=steps, shuffle=False, verbose=0)
    return weight(model)


def weight(model):
    value = float(model.get_weights()[0].ravel()[0])
    return value if np.isfinite(value) else "not finite"


def number(value):
    return float(np.asarray(value.numpy() if hasattr(value, "numpy") else value))


def scale_of(optimizer):
    """The loss scale, which every version shows by this method; None if there is none."""
    scales = hasattr(optimizer, "get_scaled_loss")
    return number(optimizer.get_scaled_loss(tf.constant(1.0))) if scales else None


def steps_of(optimizer):
    return int(number(optimizer.iterations))


class DoesNotScale(tf.keras.Model):
    """Its loss is large: the gradients need no scale."""

    def train_step(self, data):
        x, _ = data
        with tf.GradientTape() as tape:
            loss = tiny(None, self(x, training=True)) * 2.0**20
        gradients = tape.gradient(loss, self.trainable_variables)
        gradients = [gradient * 2.0**-20 for gradient in gradients]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class Scales(tf.keras.Model):
    def train_step(self, data):
        x, _ = data
        with tf.GradientTape() as tape:
            loss = tiny(None, self(x, training=True))
            scaled_loss = self.optimizer.get_scaled_loss(loss)
        scaled = tape.gradient(scaled_loss, self.trainable_variables)
        gradients = self.optimizer.get_unscaled_gradients(scaled)
        gradients = [tf.clip_by_value(gradient, -2.0 * TINY, 2.0 * TINY) for gradient in gradients]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class ScalesByHand(tf.keras.Model):
    """Scales with the scale of whatever optimizer it has."""

    def train_step(self, data):
        x, _ = data
        scale = tf.cast(1.0, tf.float32)
        if hasattr(self.optimizer, "loss_scale"):
            scale = self.optimizer.get_scaled_loss(scale)
        with tf.GradientTape() as tape:
            loss = tiny(None, self(x, training=True)) * scale
        gradients = [scaled / scale for scaled in tape.gradient(loss, self.trainable_variables)]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


def train_steps():
    found = {}
    for cls in (DoesNotScale, Scales, ScalesByHand):
        model = network(cls)
        model.compile(sgd())
        found[cls.__name__] = [fit(model), steps_of(model.optimizer)]
    return found


def loop():
    """A loop of the program's own, with the optimizer that `compile` has made."""
    model = network()
    model.compile(sgd(), tiny)
    optimizer, variables = model.optimizer, model.trainable_variables
    for factor in (1.0, float("inf"), 1.0):
        with tf.GradientTape() as tape:
            loss = tiny(None, model(X)) * factor
            scaled_loss = optimizer.get_scaled_loss(loss)
        gradients = optimizer.get_unscaled_gradients(tape.gradient(scaled_loss, variables))
        optimizer.apply_gradients(zip(gradients, variables))
    return [weight(model), scale_of(optimizer), steps_of(optimizer)]


def compiled_twice():
    """Two models, and a second `compile`, which keeps an optimizer that scales."""
    first, second = network(), network()
    first.compile("sgd", tiny)
    first.optimizer.learning_rate = RATE
    second.compile(sgd(), tiny)
    kept = first.optimizer
    first.compile(kept, tiny)
    return [first.optimizer is kept, fit(first), fit(second), scale_of(second.optimizer)]


def loaded():
    """A model from a file goes on with its optimizer."""
    model = network()
    model.compile(tf.keras.optimizers.SGD(512.0), tf.keras.losses.MeanSquaredError())
    small = X / 64.0  # a larger gradient would overflow, and a file of Keras 2 has no scale
    model.train_on_batch(small, Y)
    path = os.path.join(tempfile.mkdtemp(), "model.h5")
    if hasattr(tf.keras, "Operation"):
        path = path.replace(".h5", ".keras")  # Keras 3 cannot read its own .h5 on every version
    try:
        model.save(path)
    except AttributeError:
        return "cannot be saved"  # TensorFlow 2.11 has no variables in its class
    again = tf.keras.models.load_model(path)
    again.train_on_batch(small, Y)
    return [weight(model), scale_of(again.optimizer), weight(again)]


def own_train_step_of(cls):
    """A `train_step` that scales if its optimizer is of a class."""

    class Asks(tf.keras.Model):
        def train_step(self, data):
            x = data[0]  # Keras 3 passes three in train_on_batch
            scales = isinstance(self.optimizer, cls)
            with tf.GradientTape() as tape:
                loss = tiny(None, self(x, training=True))
                scaled_loss = self.optimizer.get_scaled_loss(loss) if scales else loss
            gradients = tape.gradient(scaled_loss, self.trainable_variables)
            if scales:
                gradients = self.optimizer.get_unscaled_gradients(gradients)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    return Asks


def under_final_policies():
    mixed_precision = tf.keras.mixed_precision
    found = {}
    for name, policy in (("name", "mixed_float16"), ("policy", None)):
        mixed_precision.set_global_policy(policy or mixed_precision.Policy("mixed_float16"))
        model = network()
        model.compile(sgd(), tiny)
        found["fit, " + name] = [
            fit(model),
            scale_of(model.optimizer),
            model.optimizer.dynamic,
            isinstance(model.optimizer, mixed_precision.LossScaleOptimizer),
        ]
    found.update(train_steps())
    found["loop"], found["twice"] = loop(), compiled_twice()
    found["loaded"] = loaded()
    model = network(own_train_step_of(mixed_precision.LossScaleOptimizer))
    model.compile(sgd())
    found["asks"] = fit(model)
    model = network()
    optimizer = mixed_precision.LossScaleOptimizer(sgd(), dynamic=False, initial_scale=512)
    model.compile(optimizer, tiny)
    found["its own"] = [fit(model), model.optimizer is optimizer, scale_of(optimizer)]
    model = network()
    mixed_precision.set_global_policy("float32")
    found["built before"] = [compiled(model), compiled(network())]
    return found


def compiled(model):
    model.compile(sgd(), tiny)
    return scale_of(model.optimizer)


def experimental_policies():
    """Functions that make the policies, each of which is set after the one before was used."""
    experimental = tf.keras.mixed_precision.experimental
    return {
        "default": lambda: experimental.Policy("mixed_float16"),
        "dynamic": lambda: experimental.Policy("mixed_float16", loss_scale="dynamic"),
        "number": lambda: experimental.Policy("mixed_float16", loss_scale=128),
        "none": lambda: experimental.Policy("mixed_float16", loss_scale=None),
        "fixed": lambda: experimental.Policy(
            "mixed_float16", loss_scale=LossScales.FixedLossScale(256)
        ),
        "grows": lambda: experimental.Policy(
            "mixed_float16", loss_scale=LossScales.DynamicLossScale(512, increment_period=2)
        ),
        "float32": lambda: experimental.Policy("float32"),
        "float32 scaled": lambda: experimental.Policy("float32", loss_scale=8),
        "float32 dynamic": lambda: experimental.Policy("float32", loss_scale="dynamic"),
    }


def under_experimental_policies(names):
    experimental = tf.keras.mixed_precision.experimental
    policies, found = experimental_policies(), {}
    for name in names or policies:
        policy = policies[name]()
        experimental.set_policy(policy)
        model = network(own_train_step_of(experimental.LossScaleOptimizer))
        model.compile(sgd())
        end = fit(model)
        model.train_on_batch(np.full((1, 1), np.inf, "float32"), Y)
        # The infinity is applied without loss scaling, and with a fixed loss scale.
        found[name] = [
            end,
            weight(model) == end,
            scale_of(model.optimizer),
            isinstance(model.optimizer, experimental.LossScaleOptimizer),
            policy.loss_scale and type(policy.loss_scale).__name__,
            experimental.global_policy() is policy,
            experimental.get_layer_policy(model.layers[-2]) is policy,
        ]
    experimental.set_policy(experimental.Policy("mixed_float16", loss_scale=128))
    found.update(train_steps())
    found["loop"], found["twice"] = loop(), compiled_twice()
    found["loaded"] = loaded()
    model = network()
    optimizer = experimental.LossScaleOptimizer(sgd(), 512)
    model.compile(optimizer, tiny)
    found["its own"] = [fit(model), model.optimizer is optimizer, scale_of(optimizer)]
    model = network()
    experimental.set_policy("float32")
    found["built before"] = [compiled(model), compiled(network())]
    return found


def main():
    tf.get_logger().setLevel("ERROR")
    programs, *names = sys.argv[1:]
    ends = under_final_policies() if programs == "final" else under_experimental_policies(names)
    print(json.dumps(ends))


main()
