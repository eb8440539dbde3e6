"""Trains with the optimizers and wrappers of tf-models-official, and with its orbit trainer.

python models_steps.py original|ours
"""

from results import (
    run_cases,
    use_ours,
)  # first: sets the path to the shim and turns off log messages

# isort: split
import numpy as np
import tensorflow as tf

import tf_lossscale

if use_ours():  # `performance.configure_optimizer` uses tf.keras.mixed_precision.LossScaleOptimizer
    tf_lossscale.install(replace=True)
    assert tf.keras.mixed_precision.LossScaleOptimizer.__module__.startswith("tf_lossscale")

import orbit
from official.modeling import optimization, performance

tf.compat.v1.logging.set_verbosity("ERROR")
SHAPES = ((3,), (2, 4))
OPTIMIZERS = {
    "sgd legacy": ("sgd", {"momentum": 0.5}, True),
    "sgd": ("sgd_experimental", {"momentum": 0.5}, False),
    "adamw legacy": ("adamw", {"weight_decay_rate": 0.01, "gradient_clip_norm": 0.5}, True),
    "adamw": ("adamw_experimental", {"weight_decay": 0.01}, False),
    "adam legacy, clipped": ("adam", {"clipnorm": 0.5}, True),
    "lamb legacy": ("lamb", {"weight_decay_rate": 0.01}, True),
    "slide": ("slide", {}, True),
}
LOSS_SCALES = {"dynamic": "dynamic", "fixed": 128.0}


def built(name, options, legacy, loss_scale, ema=False):
    config = optimization.OptimizationConfig(
        {
            "optimizer": {"type": name, name: options},
            "ema": {"average_decay": 0.5} if ema else None,
            "learning_rate": {"type": "constant", "constant": {"learning_rate": 0.1}},
        }
    )
    factory = optimization.OptimizerFactory(config)
    optimizer = factory.build_optimizer(factory.build_learning_rate(), use_legacy_optimizer=legacy)
    return performance.configure_optimizer(optimizer, use_float16=True, loss_scale=loss_scale)


def factors():
    return [1.0, 2.0, float("inf"), 3.0, 1e-3]


def train(optimizer, compiled):
    variables = [tf.Variable(np.ones(each, np.float32), name=f"w{each[0]}") for each in SHAPES]

    def step(factor):
        with tf.GradientTape() as tape:
            loss = factor * tf.add_n([tf.reduce_sum(each * each) for each in variables])
            loss = optimizer.get_scaled_loss(loss)
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, variables))
        optimizer.apply_gradients(zip(gradients, variables))
        return tf.constant(0)

    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    run = tf.function(step) if compiled else step
    for each in factors():
        run(tf.constant(each))
    return numbers(variables, optimizer)


def numbers(variables, optimizer):
    found = [np.asarray(each).ravel().tolist() for each in variables]
    return [*found, [float(optimizer.loss_scale), float(optimizer.iterations)]]


def fit(optimizer):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="ones")])
    model.build((None, 3))
    model.compile(optimizer, "mse")
    for each in (1.0, 2.0, 1e30, 3.0):
        model.fit(np.full((4, 3), each, np.float32), np.ones((4, 2), np.float32), verbose=0)
    return numbers(model.trainable_variables, optimizer)


class Trainer(orbit.StandardTrainer):
    def __init__(self, optimizer):
        data = tf.data.Dataset.from_tensor_slices(np.array(factors(), np.float32)).repeat()
        self.variables = [tf.Variable(np.ones(each, np.float32)) for each in SHAPES]
        self.optimizer = optimizer
        super().__init__(data)

    def train_step(self, iterator):
        def step(factor):
            with tf.GradientTape() as tape:
                loss = factor * tf.add_n([tf.reduce_sum(each * each) for each in self.variables])
                scaled = self.optimizer.get_scaled_loss(loss)
            gradients = self.optimizer.get_unscaled_gradients(tape.gradient(scaled, self.variables))
            self.optimizer.apply_gradients(zip(gradients, self.variables))

        tf.distribute.get_strategy().run(step, args=(next(iterator),))


def orbit_train(make):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        trainer = Trainer(make())
    orbit.Controller(
        trainer=trainer,
        strategy=strategy,
        steps_per_loop=2,
        global_step=tf.Variable(0, dtype=tf.int64),
    ).trainer.train(tf.constant(5))
    return numbers(trainer.variables, trainer.optimizer)


def cases():
    for name, options in OPTIMIZERS.items():
        for scale, loss_scale in LOSS_SCALES.items():
            for compiled in (False, True):
                mode = "function" if compiled else "eager"
                yield (
                    f"{mode} {name} {scale}",
                    lambda o=options, s=loss_scale, c=compiled: train(built(*o, s), c),
                )
            yield f"fit {name} {scale}", lambda o=options, s=loss_scale: fit(built(*o, s))
        yield f"orbit {name}", lambda o=options: orbit_train(lambda: built(*o, "dynamic"))
    yield (
        "eager sgd legacy, moving average",
        lambda: train(built("sgd", {"momentum": 0.5}, True, "dynamic", ema=True), False),
    )


if __name__ == "__main__":
    run_cases(cases())
