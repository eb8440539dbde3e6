"""Steps that run at the same time share one loss scale, and none undoes the halving of another.

So a finite step must not write the scale, and must add to its counter in place.
"""

import threading
from typing import Any, List

import numpy as np
import processes
import pytest
import recorded
import tensorflow as tf

PROGRAM = "workers/programs/asynchronous.py"
INITIAL, OVERFLOWS, NEVER = 2.0**120, 60, 10**6
FAMILIES = ["v1", "contrib"]
HAS_ORIGINAL = {"v1": True, "contrib": recorded.TF < (2, 0)}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("who", ["original", "ours"])
def test_workers_of_a_parameter_server(family: str, who: str):
    if who == "original" and not HAS_ORIGINAL[family]:
        pytest.skip("this TensorFlow does not have the original")
    overflows, halvings = processes.run_program(PROGRAM, family, who, timeout=150)
    assert halvings == overflows


def step(subject, optimizer: Any, variable: Any, gradient: Any):
    with recorded.eagerly():
        optimizer.apply_gradients([(gradient, variable)])


@pytest.mark.parametrize(
    "subject", [subject for subject in recorded.ours() if subject.api == "final"], ids=str
)
def test_threads_share_an_optimizer(subject):
    """One thread has steps that overflow, another one only finite steps, on its own variable."""
    with recorded.eagerly():
        optimizer = subject.dynamic(
            subject.inner("SGD", learning_rate=0.5, momentum=0.5), INITIAL, NEVER
        )
        variables = [recorded.make_variable(subject.kind, [1.0, 2.0], name) for name in "vw"]
        if hasattr(optimizer, "build"):
            optimizer.build(variables)
        finite, infinite = tf.zeros([2]), tf.constant([1.0, float("inf")])
        for variable in variables:  # makes the slots
            optimizer.apply_gradients([(finite, variable)])
        counted = int(recorded.number(optimizer.dynamic_counter))
        is_over = threading.Event()
        made: List[int] = []

        def take_finite_steps():
            while not is_over.is_set():
                step(subject, optimizer, variables[0], finite)
                made.append(1)

        thread = threading.Thread(target=take_finite_steps)
        thread.start()
        for _ in range(OVERFLOWS):
            step(subject, optimizer, variables[1], infinite)
        is_over.set()
        thread.join()
        assert counted == len(variables)
        assert made
        assert np.log2(INITIAL / recorded.number(recorded.scale_of(optimizer))) == OVERFLOWS
