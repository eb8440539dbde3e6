"""What programs for TensorFlow 2.2 to 2.8 do with the experimental policy and its loss scale.

Prints as JSON what each ends with. Nothing here knows of the shim: run it with `python`, or with
`tf-lossscale run`. Steps are exact, as those of `keras_2_user.py`.
"""

import json

import numpy as np
import tensorflow as tf
from tensorflow.keras.mixed_precision import experimental as mixed_precision

TINY = 2.0**-26  # 0 in float16
RATE = 2.0**23
X = np.full((1, 1), 1.5, "float32")
LossScales = tf.compat.v1.train.experimental


class Asks(tf.keras.Model):
    """One weight, 1.0, applied in float16; scales where its optimizer is a LossScaleOptimizer."""

    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x = data[0]
        scales = isinstance(self.optimizer, mixed_precision.LossScaleOptimizer)
        with tf.GradientTape() as tape:
            loss = TINY * tf.cast(tf.reduce_mean(tf.square(self(x, training=True))), tf.float32)
            to_differentiate = self.optimizer.get_scaled_loss(loss) if scales else loss
        gradients = tape.gradient(to_differentiate, self.trainable_variables)
        if scales:
            gradients = self.optimizer.get_unscaled_gradients(gradients)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


def run(policy, kept=None):
    """Trains under a policy; returns what became of the weight and of the loss scale."""
    mixed_precision.set_policy(policy)
    model = Asks()
    model.compile(tf.keras.optimizers.SGD(RATE))
    model.fit(X, X, batch_size=1, epochs=6, shuffle=False, verbose=0)
    optimizer, shown = model.optimizer, mixed_precision.global_policy()
    scale = getattr(shown, "loss_scale", None)
    is_scaled = isinstance(optimizer, mixed_precision.LossScaleOptimizer)
    found = {
        "weight": float(model.get_weights()[0][0, 0]),
        "is scaled": is_scaled,
        "scale": float(optimizer.get_scaled_loss(tf.constant(1.0))) if is_scaled else None,
        "name": shown.name,
        "policy's": None if scale is None else type(scale).__name__,
    }
    if kept is not None:
        found["is the one that was set"] = shown is policy
        found["is kept"] = policy.loss_scale is kept
    mixed_precision.set_policy("float32")
    return found


def main():
    found = {}
    kept = LossScales.DynamicLossScale(2.0**43, increment_period=2)
    found["dynamic"] = run(mixed_precision.Policy("mixed_float16", loss_scale=kept), kept)
    kept = LossScales.FixedLossScale(512)
    found["fixed"] = run(mixed_precision.Policy("mixed_float16", loss_scale=kept), kept)
    for name, scale in (("number", 256), ("none", None)):
        config = mixed_precision.Policy("mixed_float16", loss_scale=scale).get_config()
        found[name] = run(mixed_precision.Policy.from_config(config))
    default = mixed_precision.Policy("mixed_float16")
    found["default"] = run(default, default.loss_scale)
    print(json.dumps(found))


main()
