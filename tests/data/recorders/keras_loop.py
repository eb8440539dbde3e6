"""One custom training loop with a Keras loss-scale optimizer, and its trace on TensorFlow 2.3.

    python keras_loop.py > ../traces/keras_loop.json      (TensorFlow 2.3.4: the last version whose
                                                           experimental class is a class of its own)

The loop is the one that people wrote: scaled loss, unscaled gradients, then whatever they liked to
do with true gradients (accumulate over micro-batches, clip by the global norm), then apply. The
variables are float32 and the forward pass is float16, so that the loss scale, which starts at 2**15
and grows every three good steps, overflows by itself; two batches hold an infinity and a NaN.

Sums are over float32 and so short that their order makes no difference in float16 arithmetic; all
constants are exact in float16. So SGD and momentum without clipping are equal to the bit wherever
they run; what is left to differ elsewhere is the last bits of square roots and divisions.

The test imports `run` and gives it the same numbers on other versions and on another Keras.
"""

import functools
import json
import sys

PROGRAMS = {  # name: (micro-batches to a step, norm to clip at or None)
    "plain": (1, None),
    "clip": (1, 0.5),
    "accumulate": (2, None),
    "accumulate_clip": (4, 0.25),
}
OPTIMIZERS = {
    "sgd": ("SGD", {"learning_rate": 0.0625}),
    "momentum": ("SGD", {"learning_rate": 0.03125, "momentum": 0.5}),
    "adam": ("Adam", {"learning_rate": 0.0625}),
}
STEPS = 30
SCALE, PERIOD = 2.0**15, 3
BAD = {4: float("inf"), 5: float("nan"), 17: float("inf")}  # step: factor of its last micro-batch
X = [[1.0, -0.5, 2.0], [0.25, 1.0, -1.0], [-2.0, 0.5, 1.0], [0.5, -1.0, 0.25]]
Y = [[0.5, 1.0, -1.0], [2.0, -0.25, 1.0], [-1.0, 0.5, 3.0], [1.0, 1.0, 0.125]]
W, B = [1.0, -2.0, 0.5], [0.25, 0.0, -1.0]


def run(tf, program, make_optimizer, wrap, read, variable, tensor=lambda v: v, mode="eager"):
    """Runs one program and returns, step by step, the weights and the loss scale's state.

    wrap(inner) makes the loss-scale optimizer, read(optimizer) its (loss scale, counter,
    iterations) as numbers; variable(value, name) makes a variable of the optimizer's own Keras and
    tensor(variable) what a tape watches. mode: eager; function: a step in one tf.function; pieces:
    the gradients of a micro-batch, the clipping and the update each in a tf.function of its own.
    """
    micro, norm = PROGRAMS[program]
    w, b = variable(W, "w"), variable(B, "b")
    variables = [w, b]
    optimizer = wrap(make_optimizer())

    def gradients(x, y, factor):
        with tf.GradientTape() as tape:
            watched = [tensor(v) for v in variables]
            half = tf.cast(watched[0], tf.float16) * tf.cast(x, tf.float16) + tf.cast(
                watched[1], tf.float16
            )
            error = tf.cast(half, tf.float32) - y
            loss = tf.reduce_sum(error * error) * 0.5 * factor
            scaled = optimizer.get_scaled_loss(loss)
        return optimizer.get_unscaled_gradients(tape.gradient(scaled, watched))

    def clip(grads):
        if norm is None:
            return grads
        return tf.clip_by_global_norm(grads, norm)[0]

    def apply(grads):
        optimizer.apply_gradients(list(zip(grads, variables)))

    if mode == "pieces":
        gradients, clip, apply = tf.function(gradients), tf.function(clip), tf.function(apply)

    def step(xs, ys, factors):
        total = None
        for i in range(micro):
            grads = gradients(xs[i], ys[i], factors[i])
            grads = [g * (1.0 / micro) for g in grads]
            total = grads if total is None else [t + g for t, g in zip(total, grads)]
        apply(clip(total))

    if mode == "function":
        step = tf.function(step)
    trace = []
    for i in range(STEPS):
        batches = [(i * micro + j) % len(X) for j in range(micro)]
        factors = [1.0] * (micro - 1) + [BAD.get(i, 1.0)]
        step(
            tf.constant([X[k] for k in batches]),
            tf.constant([Y[k] for k in batches]),
            tf.constant(factors),
        )
        scale, counter, iterations = read(optimizer)
        trace.append(
            {
                "w": [float(x) for x in w.numpy()],
                "b": [float(x) for x in b.numpy()],
                "loss_scale": float(scale),
                "counter": int(counter),
                "iterations": int(iterations),
            }
        )
    return trace


def main():
    import tensorflow as tf

    mp = tf.keras.mixed_precision.experimental

    def read(o):
        return o.loss_scale().numpy(), o.loss_scale._num_good_steps.numpy(), o.iterations.numpy()

    out = {
        "tf": tf.__version__,
        "python": sys.version.split()[0],
        "class": mp.LossScaleOptimizer.__module__ + "." + mp.LossScaleOptimizer.__name__,
        "loss_scale": f"DynamicLossScale({SCALE!r}, {PERIOD!r})",
        "mode": "eager",
        "traces": {},
    }
    for program in sorted(PROGRAMS):
        for name in sorted(OPTIMIZERS):
            kind, arguments = OPTIMIZERS[name]
            out["traces"][program + "/" + name] = run(
                tf,
                program,
                functools.partial(getattr(tf.keras.optimizers, kind), **arguments),
                lambda o: mp.LossScaleOptimizer(
                    o, tf.mixed_precision.experimental.DynamicLossScale(SCALE, PERIOD)
                ),
                read,
                lambda value, name: tf.Variable(value, name=name),
            )
    json.dump(out, sys.stdout, separators=(",", ":"), sort_keys=True)
    print()


if __name__ == "__main__":
    main()
