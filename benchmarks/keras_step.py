"""Compares a step of the Keras family with the original and with the plain optimizer.

The result is the CPU time, in one thread, that loss scaling adds (wrapped - plain), ours divided by
the original of the same Keras. `loop` is the Keras 2 loop (scaled loss, unscaled gradients, apply),
`fit` is what `fit` of Keras 3 does (scaled loss, apply), the only way with the original of Keras 3.

Usage: keras_step.py [--json FILE] [--repetitions N]
"""

import importlib
import os
import sys

import harness

harness.quiet()
sys.path.insert(
    0,
    os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "shim"),
)
sys.path += importlib.import_module("processes").HELPERS

import tensorflow as tf

harness.one_thread(tf)
recorded = importlib.import_module("recorded")

CASES = {"200 x 1,000": (200, 1000), "20 x 500,000": (20, 500000)}


def step(kind, optimizer, style, count, size, compiled):
    """Returns a function that runs one step of Adam on `count` variables and waits for it."""
    variables = [recorded.make_variable(kind, [1.0] * size, "w") for _ in range(count)]
    watched = [recorded.gradient_source(variable) for variable in variables]
    factor = tf.Variable(1.0, trainable=False)
    if hasattr(optimizer, "build"):
        optimizer.build(variables)

    def body():
        with tf.GradientTape() as tape:
            # The gradients take little time, so that the optimizer dominates it. But they are not
            # constants, which would be folded without scaling, and differ: Grappler merges equal
            # ones, and then a finite check tests a single gradient.
            loss = factor * tf.add_n([tf.reduce_sum(tf.square(value)) for value in watched])
            if style == "loop":
                loss = optimizer.get_scaled_loss(loss)
            elif style == "fit":
                loss = optimizer.scale_loss(loss)
        gradients = tape.gradient(loss, watched)
        if style == "loop":
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(list(zip(gradients, variables)))
        return watched[0].read_value()[0]

    run = tf.function(body) if compiled else body
    return lambda: run().numpy()


def ways_of(kind, count, size, compiled):
    """Yields a style and the makers of the variants: bare, original and ours."""
    ours = recorded.Subject(kind, "final", "ours")
    api = "keras3" if kind.name == "keras3" else "final"
    if api == "final" and not hasattr(kind.keras.mixed_precision, "LossScaleOptimizer"):
        api = "experimental"
    original = recorded.Subject(kind, api, "original")

    def maker(subject, style):
        def make():
            inner = ours.inner("Adam", learning_rate=1e-3)
            optimizer = inner if subject is None else subject.dynamic(inner, 8.0, 1000)
            return step(kind, optimizer, style, count, size, compiled)

        return make

    style = "fit" if kind.name == "keras3" else "loop"
    yield (
        style,
        {
            "bare": maker(None, "bare"),
            "original": maker(original, style),
            "ours": maker(ours, style),
        },
    )
    if kind.name == "keras3":
        yield (
            "loop",
            {
                "bare": maker(None, "bare"),
                "original": maker(original, "fit"),
                "ours": maker(ours, "loop"),
            },
        )


def main():
    report = harness.Report("A step of the Keras family", tf.__version__)
    with recorded.eagerly():
        for kind in recorded.kinds():
            for case, (count, size) in CASES.items():
                for mode in ("function", "eager"):
                    for style, makers in ways_of(kind, count, size, mode == "function"):
                        times = harness.processor_times(makers, report.repetitions)
                        report.add(f"{kind.name} {style} {mode} {case}", **harness.added(times))
    report.finish()


if __name__ == "__main__":
    main()
