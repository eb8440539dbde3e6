"""Trains with the optimizers and wrappers of tf-models-official, and with its orbit trainer.

python models_steps.py original|ours
"""

from results import SHAPES, fit, flat, run_cases, total, train, use_ours

# isort: split
import numpy as np
import tensorflow as tf

import tf_lossscale

if use_ours():  # `performance.configure_optimizer` uses tf.keras.mixed_precision.LossScaleOptimizer
    tf_lossscale.install(replace=True)
    assert tf.keras.mixed_precision.LossScaleOptimizer.__module__.startswith("tf_lossscale")

import orbit
from official.modeling import optimization, performance

FACTORS = [1.0, 2.0, float("inf"), 3.0, 1e-3]
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


def numbers(variables, optimizer):
    return [*flat(variables), [float(optimizer.loss_scale), float(optimizer.iterations)]]


def stepped(optimizer, compiled):
    return numbers(train(optimizer, FACTORS, compiled), optimizer)


def fitted(optimizer):
    model = fit(optimizer, (1.0, 2.0, 1e30, 3.0))
    return numbers(model.trainable_variables, optimizer)


class Trainer(orbit.StandardTrainer):
    def __init__(self, optimizer):
        data = tf.data.Dataset.from_tensor_slices(np.array(FACTORS, np.float32)).repeat()
        self.variables = [tf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]
        self.optimizer = optimizer
        super().__init__(data)

    def train_step(self, iterator):
        def step(factor):
            with tf.GradientTape() as tape:
                scaled = self.optimizer.get_scaled_loss(total(self.variables, factor))
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
                    lambda o=options, s=loss_scale, c=compiled: stepped(built(*o, s), c),
                )
            yield f"fit {name} {scale}", lambda o=options, s=loss_scale: fitted(built(*o, s))
        yield f"orbit {name}", lambda o=options: orbit_train(lambda: built(*o, "dynamic"))
    yield (
        "eager sgd legacy, moving average",
        lambda: stepped(built("sgd", {"momentum": 0.5}, True, "dynamic", ema=True), False),
    )


if __name__ == "__main__":
    run_cases(cases())
