"""Compares the finite check of all gradients with the originals' check and a plain sum."""

import harness

harness.quiet()

import tensorflow as tf

from tf_lossscale._core.finite import all_finite

tf1 = tf.compat.v1
tf1.logging.set_verbosity("ERROR")
CASES = {"50 x 1,000,000": (50, 1000000), "200 x 1,000": (200, 1000)}


def originals(gradients):
    return tf1.reduce_all([tf1.reduce_all(tf1.is_finite(gradient)) for gradient in gradients])


def bare_sum(gradients):
    return tf.add_n([tf1.reduce_sum(gradient) for gradient in gradients])


WAYS = {"original": originals, "ours": all_finite, "sum": bare_sum}


def session_ways(count, size, dtype):
    with tf.Graph().as_default() as graph:
        gradients = [
            tf1.Variable(tf.cast(tf1.random_normal([size]), dtype), use_resource=True).read_value()
            for _ in range(count)
        ]
        results = {name: way(gradients) for name, way in WAYS.items()}
        session = tf1.Session(graph=graph)
        session.run(tf1.global_variables_initializer())
        return {name: session.make_callable(result) for name, result in results.items()}


def eager_ways(count, size, dtype):
    gradients = [tf.cast(tf.random.normal([size]), dtype) for _ in range(count)]
    return {name: lambda way=way: way(gradients).numpy() for name, way in WAYS.items()}


def function_ways(count, size, dtype, **options):
    gradients = [tf.cast(tf.random.normal([size]), dtype) for _ in range(count)]
    functions = {name: tf.function(way, **options) for name, way in WAYS.items()}
    return {name: lambda f=f: f(gradients).numpy() for name, f in functions.items()}


def main():
    report = harness.Report("The finite check", tf.__version__)
    modes = {"session": session_ways}
    if tf.executing_eagerly():
        modes.update(
            eager=eager_ways,
            function=function_ways,
            xla=lambda *args: function_ways(*args, jit_compile=True),
        )
    for dtype in (tf.float32, tf.float16):
        for case, (count, size) in CASES.items():
            for mode, make in modes.items():
                if mode == "xla" and count > 100:
                    continue  # XLA would take minutes to compile it
                times = harness.median_times(make(count, size, dtype), report.repetitions)
                report.add(
                    f"{dtype.name} {mode} {case}",
                    original_s=times["original"],
                    ours_s=times["ours"],
                    sum_s=times["sum"],
                    original_over_ours=times["original"] / times["ours"],
                    ours_over_sum=times["ours"] / times["sum"],
                )
    report.finish()


if __name__ == "__main__":
    main()
