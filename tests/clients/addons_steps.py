"""Trains with tensorflow-addons' optimizers and wrappers, inside and outside a loss scale.

python addons_steps.py original|ours
"""

from results import fit, flat, run_cases, train, use_ours

# isort: split
import tensorflow as tf
import tensorflow_addons as tfa

import tf_lossscale as tfls

FACTORS = (1.0, 2.0, float("inf"), 3.0, 1e-3)
legacy = tf.keras.optimizers.legacy
SINGLE = {
    "LAMB": lambda: tfa.optimizers.LAMB(0.1),
    "AdamW": lambda: tfa.optimizers.AdamW(weight_decay=0.01, learning_rate=0.1),
    "SGDW": lambda: tfa.optimizers.SGDW(weight_decay=0.01, learning_rate=0.1, momentum=0.5),
    "RectifiedAdam": lambda: tfa.optimizers.RectifiedAdam(0.1),
    "LazyAdam": lambda: tfa.optimizers.LazyAdam(0.1),
    "NovoGrad": lambda: tfa.optimizers.NovoGrad(0.1),
    "Yogi": lambda: tfa.optimizers.Yogi(0.1),
    "COCOB": lambda: tfa.optimizers.COCOB(),
    "ConditionalGradient": lambda: tfa.optimizers.ConditionalGradient(0.9, lambda_=10.0),
    "AdaBelief": lambda: tfa.optimizers.AdaBelief(0.1),
}
AROUND = {
    "MovingAverage": lambda inner: tfa.optimizers.MovingAverage(inner, average_decay=0.5),
    "SWA": lambda inner: tfa.optimizers.SWA(inner, start_averaging=1, average_period=2),
    "Lookahead": lambda inner: tfa.optimizers.Lookahead(inner, sync_period=2),
}


def scaled(inner, dynamic=True):
    namespace = tfls.keras.mixed_precision if use_ours() else tf.keras.mixed_precision
    options = {"dynamic_growth_steps": 2} if dynamic else {}
    return namespace.LossScaleOptimizer(inner, dynamic=dynamic, initial_scale=8.0, **options)


def sgd():
    return legacy.SGD(0.1, momentum=0.5)


def ways(name, make):
    yield f"eager {name}", lambda: flat(train(make(), FACTORS, False))
    yield f"function {name}", lambda: flat(train(make(), FACTORS, True))
    yield f"fit {name}", lambda: flat(fit(make(), (1.0, 2.0, 1e30, 3.0)).get_weights())


def cases():
    for name, make in SINGLE.items():
        yield from ways(f"{name} inside", lambda m=make: scaled(m()))
    for name, around in AROUND.items():
        yield from ways(f"{name} inside", lambda a=around: scaled(a(sgd())))
        yield from ways(f"{name} inside, fixed", lambda a=around: scaled(a(sgd()), False))
        yield from ways(f"{name} outside", lambda a=around: a(scaled(sgd())))


if __name__ == "__main__":
    run_cases(cases())
