"""Several replicas take one decision: logical devices in a process, and two worker processes."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))

import processes
import support
import tensorflow as tf

PROGRAMS = os.path.join(os.path.dirname(__file__), "programs")
MIRRORED = os.path.join(PROGRAMS, "mirrored.py")
WORKERS = os.path.join(PROGRAMS, "workers.py")

# In a `tf.function` under a strategy, TensorFlow 1.15 cannot run any v1 optimizer.
MODES = ["graph", "eager" if support.IS_TF1 else "eager,function"]


@pytest.mark.parametrize("modes", MODES)
def test_replicas_agree(modes):
    for rows in processes.run_program(MIRRORED, "contrib,v1", "ours", modes).values():
        for _, copies, scales, _ in rows:
            assert copies[0] == copies[1]
            assert scales[0] == scales[1]
        # Steps: fine, four that are skipped (the last because only the sum overflows), fine.
        assert [row[1][0][0] for row in rows] == [-3.0] * 5 + [-9.0]
        assert [row[2][0] for row in rows] == [1024.0, 512.0, 256.0, 128.0, 64.0, 64.0]
        assert [row[3] for row in rows] == [1, 1, 1, 1, 1, 2]


def test_three_replicas():
    rows = processes.run_program(MIRRORED, "v1", "ours", "eager", "3")["v1 eager"]
    assert [row[1][2][0] for row in rows] == [-4.0] * 5 + [-11.5]


def test_d1_the_original_applies_a_sum_that_overflows():
    rows = processes.run_program(MIRRORED, "v1", "original", "graph")["v1 graph"]
    assert rows[4][0] == "sum overflows"
    assert rows[4][1][0][0] == -float("inf")


@pytest.mark.skipif(not support.IS_TF1, reason="only TensorFlow 1.15 has the original")
def test_c9_the_contrib_original_cannot_be_used_under_a_strategy():
    with pytest.raises(AssertionError, match="Error"):
        processes.run_program(MIRRORED, "contrib", "original", "graph")


def test_two_workers_agree():
    workers = processes.start_workers(WORKERS, 2, "contrib,v1")
    first, second = processes.wait_for_workers(workers)
    assert first == second
    for rows in first.values():
        assert [row[1][0] for row in rows] == [-3.0] * 5 + [-9.0]
        assert [row[2] for row in rows] == [1024.0, 512.0, 256.0, 128.0, 64.0, 64.0]


def test_l5_update_inside_a_replica_says_what_is_wrong():
    message = {"original": "'NoneType' object has no attribute", "ours": "replica context"}
    for name, namespace in support.v1_namespaces().items():
        with support.eager():
            strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
            run = strategy.run if hasattr(strategy, "run") else strategy.experimental_run_v2
            with strategy.scope():
                scale = namespace.DynamicLossScale()
            with pytest.raises((AttributeError, RuntimeError), match=message[name]):
                run(lambda: scale.update([tf.constant(1.0)]))  # noqa: B023


def test_outside_the_replicas_it_is_a_value_error(v1):
    with support.eager():
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        with strategy.scope():
            variable = tf.Variable([1.0])
            opt = v1.MixedPrecisionLossScaleOptimizer(
                tf.compat.v1.train.GradientDescentOptimizer(0.5), "dynamic"
            )
            with pytest.raises(ValueError, match="must be called in a replica context"):
                opt.apply_gradients([(tf.constant([1.0]), variable)])
