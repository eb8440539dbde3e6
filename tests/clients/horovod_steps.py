"""Trains with Horovod's optimizers inside and outside a loss-scale optimizer; prints the weights.

horovodrun -np 2 --gloo python horovod_steps.py original|ours

Each process has its own gradients. The result of a case is the weights on all processes.
"""

from results import fit, flat, run_cases, total, train, use_ours

# isort: split
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
OURS = use_ours()
SHAPES = ((), (3,), (2, 4))
OVERFLOW = float("inf")


def v1(inner):
    namespace = tfls.compat.v1.mixed_precision if OURS else tf1.mixed_precision
    return namespace.MixedPrecisionLossScaleOptimizer(inner, namespace.DynamicLossScale(8.0, 2))


def contrib(inner):
    if not OURS:  # there is no original in TensorFlow 2: compare with a step of the v1 class
        return v1(inner)
    manager = tfls.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8.0, 2, 1)
    return tfls.contrib.mixed_precision.LossScaleOptimizer(inner, manager)


def final(inner):
    namespace = tfls.keras.mixed_precision if OURS else tf.keras.mixed_precision
    return namespace.LossScaleOptimizer(inner, initial_scale=8.0, dynamic_growth_steps=2)


def factors(overflow):
    """The factors of this process; the second overflows in one step."""
    found = [1.0 + step + 10.0 * hvd.rank() for step in range(4)]
    if overflow and hvd.rank() == 1:
        found[1] = OVERFLOW
    return found


def train_v1(optimizer, compiled, overflow):
    variables = [tf.Variable(np.ones(shape, np.float32)) for shape in SHAPES]

    def step(factor):
        optimizer.minimize(lambda: total(variables, factor), var_list=variables)
        return tf.constant(0)

    run = tf.function(step) if compiled else step
    for factor in factors(overflow):
        run(tf.constant(factor))
    return flat(variables)


def train_session(make, overflow):
    with tf.Graph().as_default():
        variables = [
            tf1.Variable(np.ones(shape, np.float32), use_resource=True) for shape in SHAPES
        ]
        factor = tf1.placeholder(tf.float32, [])
        step = make().minimize(total(variables, factor), var_list=variables)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for value in factors(overflow):
                session.run(step, {factor: value})
            return flat(session.run(variables))


def train_keras(optimizer, compiled, overflow):
    return flat(train(optimizer, factors(overflow), compiled, SHAPES))


def train_fit(optimizer, overflow):
    inputs = [min(factor, 1e30) / 16 for factor in factors(overflow)]
    return flat(fit(optimizer, inputs).get_weights())


def inside_and_outside(distributed, wrap, inner):
    return {
        "inside": lambda: wrap(distributed(inner())),
        "outside": lambda: distributed(wrap(inner())),
    }


def cases():
    v1_inner = {
        "SGD": lambda: tf1.train.GradientDescentOptimizer(0.125),
        "Momentum": lambda: tf1.train.MomentumOptimizer(0.125, 0.5),
    }
    for family, wrap in (("v1", v1), ("contrib", contrib)):
        for name, inner in v1_inner.items():
            for place, make in inside_and_outside(hvd.DistributedOptimizer, wrap, inner).items():
                for overflow in (False, True):
                    end = f"{family} {name} {place}{' overflow' if overflow else ''}"
                    yield f"session {end}", lambda m=make, o=overflow: train_session(m, o)
                    for compiled in (False, True):
                        yield (
                            f"{'function' if compiled else 'eager'} {end}",
                            lambda m=make, c=compiled, o=overflow: train_v1(m(), c, o),
                        )
    for kind, keras in (
        ("legacy", tf.keras.optimizers.legacy),
        ("new-style", tf.keras.optimizers),
    ):
        for name, momentum in (("SGD", 0.0), ("Momentum", 0.5)):

            def inner(k=keras, m=momentum):
                return k.SGD(0.125, momentum=m)

            for place, make in inside_and_outside(
                hvd_keras.DistributedOptimizer, final, inner
            ).items():
                for overflow in (False, True):
                    end = f"{kind} {name} {place}{' overflow' if overflow else ''}"
                    for compiled in (False, True):
                        yield (
                            f"{'function' if compiled else 'eager'} {end}",
                            lambda m=make, c=compiled, o=overflow: train_keras(m(), c, o),
                        )
                    yield f"fit {end}", lambda m=make, o=overflow: train_fit(m(), o)


def main():
    hvd.init()
    # All processes have the same error, or none has an error.
    run_cases(cases(), hvd.allgather_object, report=hvd.rank() == 0)


if __name__ == "__main__":
    main()
