"""Compares finite steps with and without a `Monitor`.

The result is the CPU time of a monitored step, in one thread, divided by that of the same step
without a monitor, for steps from tiny to large. All variants run in one process, in random order.
The unmonitored step is measured twice, as two variants: what they differ by is the noise.
"""

import functools

import harness

harness.quiet()

import tensorflow as tf
import tf1_step

import tf_lossscale as tfls

# Number and size of the variables, and the number of instances: the smaller a step, the more.
CASES = {
    "10 x 1,000": (10, 1000, 12),
    "50 x 1,000": (50, 1000, 6),
    "200 x 1,000": (200, 1000, 4),
    "20 x 500,000": (20, 500000, 2),
}
FEWEST_CALLS = 101


def monitored(wrap):
    def make(inner):
        optimizer = wrap(inner)
        tfls.monitoring.Monitor(optimizer)
        return optimizer

    return make


def session_step(*args):
    return tf1_step.session_step(*args)[0]


def main():
    report = harness.Report("A step with a Monitor", tf.__version__)
    modes = {"session": session_step}
    if tf.executing_eagerly():
        modes.update(function=tf1_step.function_step)
    wrap = tf1_step.v1(tf1_step.OURS_V1)
    for case, (count, size, instances) in CASES.items():
        for mode, make in modes.items():
            plain = functools.partial(make, wrap, count, size)
            times = harness.processor_times(
                {
                    "plain": plain,
                    "again": plain,
                    "monitored": functools.partial(make, monitored(wrap), count, size),
                },
                max(report.repetitions, FEWEST_CALLS),
                instances,
            )
            plain_s, again_s = times["plain"].mean, times["again"].mean
            without, monitored_s = (plain_s + again_s) / 2, times["monitored"].mean
            report.add(
                f"{mode} {case}",
                plain_s=without,
                added_s=monitored_s - without,
                monitored_over_plain=monitored_s / without,
                noise=again_s / plain_s,
            )
    report.finish()


if __name__ == "__main__":
    main()
