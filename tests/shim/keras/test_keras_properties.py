"""Any sequence of steps leaves the weights, the scale and the counts that the rule says.

The rule is written out here in NumPy, for a loop in either style, over every kind of optimizer.
"""

from typing import Any, List, NamedTuple

import numpy as np
import pytest
import recorded
import tensorflow as tf
from hypothesis import HealthCheck, given, settings, strategies as st

EXAMPLES = {"small": 40, "long": 200}  # functions are traced in `long` only
LEARNING_RATE = 0.5


class Step(NamedTuple):
    """One step: its true gradients, and how they come to the optimizer."""

    gradients: List[Any]
    style: str
    sparse: bool
    micro_batches: int


VALUES = st.sampled_from([0.0, 1.0, -2.0, 2.0**-20, float("inf"), float("-inf"), float("nan")])
FINITE = st.sampled_from([0.0, 1.0, -2.0, 0.25])
GRADIENTS = st.one_of(
    st.tuples(FINITE, FINITE),
    st.tuples(VALUES, VALUES),
    st.tuples(VALUES, st.none()),
)
STEPS = st.builds(
    Step,
    GRADIENTS,
    st.sampled_from(["loop", "fit"]),
    st.booleans(),
    st.integers(1, 3),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("subject", recorded.with_own_step(), ids=str)
def test_steps(subject, size: str):
    @settings(
        max_examples=EXAMPLES[size],
        deadline=None,
        derandomize=size != "long",
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(STEPS, min_size=1, max_size=12),
        st.sampled_from([0, 1, 3, 15, 100]),
        st.integers(1, 4),
        st.booleans(),
    )
    def check(steps: List[Step], exponent: int, period: int, compiled: bool):
        run(subject, steps, 2.0**exponent, period, compiled and size == "long")

    check()


def run(subject, steps: List[Step], scale: float, period: int, compiled: bool):
    optimizer = subject.dynamic(subject.inner("SGD", learning_rate=LEARNING_RATE), scale, period)
    names = ("first", "second")
    variables = [recorded.make_variable(subject.kind, [1.0, 1.0], name) for name in names]
    if hasattr(optimizer, "build"):
        optimizer.build(variables)
    weights, counter = [np.ones(2, np.float32) for _ in variables], 0
    for number, step in enumerate(steps):

        def update(step: Step = step):
            apply(subject, optimizer, variables, step)

        (tf.function(update) if compiled else update)()
        if all(gradient is None or np.isfinite(gradient) for gradient in step.gradients):
            for weight, gradient in zip(weights, step.gradients):
                if gradient is not None:
                    total = gradient * batches(subject, step)
                    weight[1] -= np.float32(LEARNING_RATE) * np.float32(total)
            counter += 1
            if counter >= period:
                counter, scale = 0, scale * 2
        else:
            counter, scale = 0, max(scale / 2, 1.0)
        where = f"step {number}: {step}"
        assert subject.read(optimizer) == (scale, counter, number + 1), where
        for variable, weight in zip(variables, weights):
            np.testing.assert_array_equal(variable.numpy(), weight, err_msg=where)


def apply(subject, optimizer: Any, variables: List[Any], step: Step):
    """Gives the optimizer these gradients, which change the second element of each variable."""
    scale = optimizer.loss_scale
    if subject.kind.name == "keras3" and step.style == "fit":
        optimizer.scale_loss(tf.constant(1.0))
        optimizer.apply(
            [gradient_of(gradient, step, scale) for gradient in step.gradients], variables
        )
        return
    total: Any = None
    for _ in range(batches(subject, step)):
        scaled = [gradient_of(gradient, step, scale) for gradient in step.gradients]
        unscaled = optimizer.get_unscaled_gradients(scaled)
        if total is not None:
            pairs = zip(total, unscaled)
            unscaled = [
                None if gradient is None else before + gradient for before, gradient in pairs
            ]
        total = unscaled
    optimizer.apply_gradients(list(zip(total, variables)))


def batches(subject, step: Step) -> int:
    """Micro-batches whose gradients the step adds up, which sparse ones cannot be."""
    alone = step.sparse or (subject.kind.name == "keras3" and step.style == "fit")
    return 1 if alone else step.micro_batches


def gradient_of(value: Any, step: Step, scale: Any) -> Any:
    if value is None:
        return None
    if not np.isfinite(value) or not step.sparse:
        return tf.constant([0.0, value], tf.float32) * scale
    values = tf.constant([value], tf.float32) * scale
    return tf.IndexedSlices(values, tf.constant([1]), tf.constant([2]))
