"""Grappler optimizes the step of our class as it does that of the original, to the last bit.

It replaces the division by a square root, for example, but only in a branch that is lowered.
"""

from typing import Any, Dict, List

import numpy as np
import pytest
import recorded
import tensorflow as tf

OPTIMIZERS: Dict[str, Dict[str, Any]] = {
    "RMSprop": {"learning_rate": 0.003, "momentum": 0.5},
    "Adam": {"learning_rate": 0.005},
    "Adadelta": {"learning_rate": 0.5},
}
SIZE, STEPS = 50, 30


@pytest.mark.sampled(3)
@pytest.mark.parametrize("clip", [{}, {"clipnorm": 1.0}], ids=["", "clipped"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("original", recorded.originals(), ids=str)
def test_steps_in_a_function_are_equal_to_the_bit(
    original: recorded.Subject, name: str, clip: Dict[str, float]
) -> None:
    # There is nothing to compare with: up to 2.3, the constructor of the original raises for it.
    if clip and recorded.TF < (2, 4):
        pytest.skip("the original refuses to clip (known difference K7)")
    ours = original._replace(who="ours", api="final" if original.api == "keras3" else original.api)
    with recorded.eagerly():
        first, second = (trained(each, name, clip) for each in (original, ours))
    for step, (theirs, mine) in enumerate(zip(first, second)):
        assert theirs.tobytes() == mine.tobytes(), f"step {step}: {theirs} and {mine}"


def trained(subject: recorded.Subject, name: str, clip: Dict[str, float]) -> List[Any]:
    """Returns the weights after each step."""
    inner = subject.inner(name, **OPTIMIZERS[name], **clip)
    optimizer = subject.dynamic(inner, 1024.0, 10)
    variable = recorded.make_variable(subject.kind, np.linspace(-1, 1, SIZE), "v", dtype="float32")
    if hasattr(optimizer, "build"):
        optimizer.build([variable])
    watched = recorded.gradient_source(variable)
    as_keras_3 = subject.kind.name == "keras3"

    @tf.function
    def step(factor: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(watched - factor))
            loss = (optimizer.scale_loss if as_keras_3 else optimizer.get_scaled_loss)(loss)
        gradients = tape.gradient(loss, [watched])
        if not as_keras_3:
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(list(zip(gradients, [variable])))

    random = np.random.RandomState(0)
    found = []
    for _ in range(STEPS):
        step(tf.constant(random.standard_normal(SIZE), tf.float32))
        found.append(watched.numpy())
    return found
