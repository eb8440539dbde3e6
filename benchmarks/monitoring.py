"""Compares finite steps with and without a `Monitor`.

The result is the CPU time of a monitored step, in one thread, divided by that of the same step
without a monitor. Both run in one process and take turns.
"""

import functools

import harness

harness.quiet()

import tensorflow as tf
import tf1_step

import tf_lossscale as tfls


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
        modes.update(function=tf1_step.function_step, eager=tf1_step.eager_step)
    families = {
        "v1": tf1_step.v1(tf1_step.OURS_V1),
        "contrib": tf1_step.contrib(tfls.contrib.mixed_precision),
    }
    for family, wrap in families.items():
        for case, (count, size) in tf1_step.CASES.items():
            for mode, make in modes.items():
                times = harness.processor_times(
                    {
                        "plain": functools.partial(make, wrap, count, size),
                        "monitored": functools.partial(make, monitored(wrap), count, size),
                    },
                    report.repetitions,
                )
                report.add(
                    f"{family} {mode} {case}",
                    plain_s=times["plain"],
                    monitored_s=times["monitored"],
                    monitored_over_plain=times["monitored"] / times["plain"],
                )
    report.finish()


if __name__ == "__main__":
    main()
