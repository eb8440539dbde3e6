"""Compares a step of the TensorFlow 1 family with the original and with the plain optimizer.

The result is the CPU time, in one thread, that loss scaling adds (wrapped - plain), ours divided by
the original.
"""

import functools
import os
import subprocess
import sys

import harness

harness.quiet()

import tensorflow as tf

import tf_lossscale as tfls

tf1 = tf.compat.v1
tf1.logging.set_verbosity("ERROR")
harness.one_thread(tf)
OURS_V1 = tfls.compat.v1.mixed_precision
CASES = {"200 x 1,000": (200, 1000), "20 x 500,000": (20, 500000)}


def v1(namespace):
    return lambda opt: namespace.MixedPrecisionLossScaleOptimizer(
        opt, namespace.DynamicLossScale(8.0, 1000)
    )


def contrib(namespace):
    return lambda opt: namespace.LossScaleOptimizer(
        opt, namespace.ExponentialUpdateLossScaleManager(8.0, 1000)
    )


def families():
    original = tf1.train.experimental
    yield "v1", v1(original), v1(OURS_V1)
    if tf.__version__.startswith("1."):
        from tensorflow.contrib import mixed_precision

        yield "contrib", contrib(mixed_precision), contrib(tfls.contrib.mixed_precision)


def loss_of(variables, factor):
    # The gradients take little time, so that the optimizer dominates it. But they are not
    # constants, which would be folded without scaling, and differ: Grappler merges equal ones.
    return factor * tf.add_n([tf.reduce_sum(tf.square(value)) for value in variables])


def session_step(wrap, count, size):
    """Returns a function that runs one step in a Session, and the number of operations."""
    graph = tf.Graph()
    with graph.as_default():
        variables = [
            tf1.Variable(tf.ones([size]), use_resource=True, name="w") for _ in range(count)
        ]
        factor = tf1.Variable(1.0, use_resource=True, trainable=False)
        optimizer = wrap(tf1.train.AdamOptimizer(1e-3))
        step = optimizer.minimize(loss_of(variables, factor), var_list=variables)
        definition = graph.as_graph_def()
        bodies = [function.node_def for function in definition.library.function]
        operations = len(definition.node) + sum(len(body) for body in bodies)
        one = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        session = tf1.Session(graph=graph, config=one)
        session.run(tf1.global_variables_initializer())
    return session.make_callable(step), operations


def function_step(wrap, count, size):
    """Returns a `tf.function` that runs one step."""
    variables = [tf.Variable(tf.ones([size])) for _ in range(count)]
    factor = tf.Variable(1.0, trainable=False)
    optimizer = wrap(tf1.train.AdamOptimizer(1e-3))

    @tf.function
    def step():
        optimizer.minimize(lambda: loss_of(variables, factor), var_list=variables)
        return variables[0].read_value()[0]

    return lambda: step().numpy()


def eager_step(wrap, count, size):
    variables = [tf.Variable(tf.ones([size])) for _ in range(count)]
    factor = tf.Variable(1.0, trainable=False)
    optimizer = wrap(tf1.train.AdamOptimizer(1e-3))

    def step():
        optimizer.minimize(lambda: loss_of(variables, factor), var_list=variables)
        return variables[0][0].numpy()

    return step


WAYS = ("bare", "original", "ours")


def ways_of(family):
    for name, original, ours in families():
        if name == family:
            return dict(zip(WAYS, (lambda opt: opt, original, ours)))
    raise ValueError(family)


def peak_memory(family, way):
    """Prints the peak resident size, in MB, of a process after some steps."""
    step, _ = session_step(ways_of(family)[way], *CASES["20 x 500,000"])
    for _ in range(10):
        step()
    # Not `ru_maxrss`, which in a new process starts at the size of its parent.
    with open("/proc/self/status", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("VmHWM")]
    print(int(line.split()[1]) / 1024.0)


def measured_memory(family, way):
    command = [sys.executable, "-W", "ignore", os.path.abspath(__file__), "--peak", family, way]
    return float(subprocess.check_output(command, universal_newlines=True).split()[-1])


def main():
    report = harness.Report("A step of the TensorFlow 1 family", tf.__version__)
    modes = {"session": lambda *args: session_step(*args)[0]}
    if tf.executing_eagerly():
        modes.update(function=function_step, eager=eager_step)
    for family, _, _ in families():
        for case, (count, size) in CASES.items():
            for mode, make in modes.items():
                makers = {
                    name: functools.partial(make, wrap, count, size)
                    for name, wrap in ways_of(family).items()
                }
                times = harness.processor_times(makers, report.repetitions)
                report.add(f"{family} {mode} {case}", **harness.added(times))
        operations = {
            name: (session_step(wrap, 30, 10)[1] - session_step(wrap, 10, 10)[1]) / 20.0
            for name, wrap in ways_of(family).items()
        }
        report.add(family + " operations per variable", **operations)
        memory = {name: measured_memory(family, name) for name in WAYS}
        report.add(family + " peak memory of a process, MB", **memory)
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        peak_memory(*sys.argv[2:4])
    else:
        main()
