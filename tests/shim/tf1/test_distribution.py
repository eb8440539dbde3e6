"""Several replicas take one decision: logical devices in a process, and two worker processes."""

import math

import processes
import pytest
import replicas
import replicated
import support
import tensorflow as tf

pytestmark = pytest.mark.by_value("mirrored")

# In a `tf.function` under a strategy, TensorFlow 1.15 cannot run any v1 optimizer.
MODES = [["graph"], ["eager"] if support.IS_TF1 else ["eager", "function"]]


@pytest.fixture(scope="module", params=MODES)
def mirrored(request):
    """What two replicas did in one mode, or two; one process, because each start takes long."""
    classes = "contrib-ours", "v1-ours", "v1-original"
    cases = [f"{cls}:{mode}" for cls in classes for mode in request.param]
    return processes.run_program(replicated.PROGRAM, "2", "nothing", *cases)


@pytest.mark.sampled(2)
def test_replicas_agree_and_train_as_with_the_original(mirrored):
    """But for D1: the original applies a sum that overflows."""
    for what, runs in mirrored.items():
        if "original" not in what:
            replicated.check(runs, what, 2, 2)
            continue
        for name, run in runs.items():
            ours = mirrored[what.replace("original", "ours")][name]["rows"]
            overflow = len(ours) + replicated.SUM_OVERFLOWS
            assert run["rows"][:overflow] == ours[:overflow], what
            assert all(math.isinf(copy[-1]) for copy in run["rows"][overflow]["weights"]), what


@pytest.mark.slow
def test_three_replicas():
    found = processes.run_program(replicated.PROGRAM, "3", "nothing", "v1-ours:eager")
    replicated.check(found["v1-ours:eager"], "v1-ours", 3, 3)


@pytest.mark.skipif(not support.IS_TF1, reason="only TensorFlow 1.15 has the original")
def test_c9_the_contrib_original_cannot_be_used_under_a_strategy():
    with pytest.raises(AssertionError, match="Error"):
        processes.run_program(replicated.PROGRAM, "2", "nothing", "contrib-original:graph")


@pytest.mark.slow
def test_two_workers_agree():
    cases = "contrib-ours:function", "v1-ours:function"
    workers = processes.start_workers(replicated.PROGRAM, 2, "2", "nothing", *cases)
    for found in processes.wait_for_workers(workers):
        for what in cases:
            replicated.check(found[what], what, 2, 1)


def test_l5_update_inside_a_replica_raises_a_clear_error():
    message = {"original": "'NoneType' object has no attribute", "ours": "replica context"}
    for name, namespace in support.v1_namespaces().items():
        with support.eager():
            strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
            with strategy.scope():
                scale = namespace.DynamicLossScale()
            with pytest.raises((AttributeError, RuntimeError), match=message[name]):
                replicas.run(strategy, lambda: scale.update([tf.constant(1.0)]))  # noqa: B023 - called at once


def test_outside_the_replicas_it_is_a_value_error(v1):
    with support.eager():
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        with strategy.scope():
            variable = tf.Variable([1.0])
            opt = v1.MixedPrecisionLossScaleOptimizer(support.sgd(), "dynamic")
            with pytest.raises(ValueError, match="must be called in a replica context"):
                opt.apply_gradients([(tf.constant([1.0]), variable)])
