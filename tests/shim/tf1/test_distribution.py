"""Several replicas take one decision: logical devices in a process, and two worker processes."""

import os

import numpy as np
import processes
import pytest
import replicas
import support
import tensorflow as tf

PROGRAMS = os.path.join(os.path.dirname(__file__), "programs")
MIRRORED = os.path.join(PROGRAMS, "mirrored.py")
WORKERS = os.path.join(PROGRAMS, "workers.py")

# In a `tf.function` under a strategy, TensorFlow 1.15 cannot run any v1 optimizer.
MODES = ["graph", "eager" if support.IS_TF1 else "eager,function"]

# As in `mirrored.py`: what each variable starts at, and its gradient where a replica's is 1.
VARIABLES = [([1.0, 1.0], 1.0), (2.0, 0.5), ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], -0.25)]
SCALES = [1024.0, 512.0, 256.0, 128.0, 64.0, 64.0]
# The step that the originals apply, though the sum of the gradients overflows (D1).
SUM_OVERFLOWS = 4


def weights(optimizer, gradient_sums):
    """The variables after each step: `gradient_sums` are those of the first variable, or None."""
    variables = [np.array(start) for start, _ in VARIABLES]
    momenta, rows = [0.0] * len(variables), []
    for total in gradient_sums:
        if total is not None:
            for index, (_, gradient) in enumerate(VARIABLES):
                kept = 0.5 * momenta[index] if optimizer == "momentum" else 0.0
                momenta[index] = kept + gradient * total
                variables[index] = variables[index] - momenta[index]
        rows.append([each.tolist() for each in variables])
    return rows


@pytest.fixture(scope="module", params=MODES)
def mirrored(request):
    """What two replicas gave in one mode, or two; one process, because each start takes long."""
    classes = "contrib-ours,v1-ours,v1-original"
    return processes.run_program(MIRRORED, classes, request.param, timeout=300)


def test_replicas_agree(mirrored):
    compared = 0
    for case, rows in mirrored.items():
        cls, optimizer, _ = case.split()
        if cls == "v1-original":
            continue
        compared += 1
        # Steps: fine, four that are skipped (the last because only the sum overflows), fine.
        assert [row[1] for row in rows] == [
            [each, each] for each in weights(optimizer, [4.0, None, None, None, None, 4.0])
        ], case
        assert [row[2] for row in rows] == [[scale, scale] for scale in SCALES], case
        assert [row[3] for row in rows] == [1, 1, 1, 1, 1, 2], case
    assert compared >= 2


def test_replicas_train_as_with_the_original(mirrored):
    originals = [case for case in mirrored if case.startswith("v1-original")]
    assert originals
    for case in originals:
        ours = mirrored[case.replace("original", "ours")]
        assert ours[:SUM_OVERFLOWS] == mirrored[case][:SUM_OVERFLOWS], case


def test_d1_the_original_applies_a_sum_that_overflows(mirrored):
    originals = [rows for case, rows in mirrored.items() if case.startswith("v1-original")]
    assert originals
    for rows in originals:
        assert rows[SUM_OVERFLOWS][0] == "sum overflows"
        assert rows[SUM_OVERFLOWS][1][0][0] == [-float("inf")] * 2


def test_three_replicas():
    found = processes.run_program(MIRRORED, "v1-ours", "eager", "3")
    assert found
    for case, rows in found.items():
        expected = weights(case.split()[1], [5.0, None, None, None, None, 5.0])
        assert [row[1] for row in rows] == [[each] * 3 for each in expected], case


@pytest.mark.skipif(not support.IS_TF1, reason="only TensorFlow 1.15 has the original")
def test_c9_the_contrib_original_cannot_be_used_under_a_strategy():
    with pytest.raises(AssertionError, match="Error"):
        processes.run_program(MIRRORED, "contrib-original", "graph")


def test_two_workers_agree():
    workers = processes.start_workers(WORKERS, 2, "contrib-ours,v1-ours")
    first, second = processes.wait_for_workers(workers)
    assert first == second
    assert len(first) >= 2
    for case, rows in first.items():
        expected = weights(case.split()[1], [4.0, None, None, None, None, 4.0])
        assert [row[1] for row in rows] == expected, case
        assert [row[2] for row in rows] == SCALES, case


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
