"""The original and our class run the same random program and agree exactly at every step.

A program is an optimizer with random arguments, a loss scale, a dtype, dense or sparse gradients,
and up to a few hundred steps of finite and non-finite gradients. Both sides take their steps in one
`tf.function`, in one each, which Grappler optimizes alone, or eagerly. `TFLS_TEST_SIZE` says how
many programs there are.
"""

from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import pytest
import recorded
import support
import tensorflow as tf
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

PROGRAMS = {"small": 12, "long": 200}
BAD = [float("inf"), float("-inf"), float("nan")]
SIZE = 50

OPTIMIZERS: Dict[str, Dict[str, Any]] = {
    "SGD": {"learning_rate": 0.125, "momentum": 0.5},
    "Adam": {"learning_rate": 0.05},
    "Adagrad": {"learning_rate": 0.1},
    "RMSprop": {"learning_rate": 0.01, "momentum": 0.5},
    "Adadelta": {"learning_rate": 0.5},
}


class Program(NamedTuple):
    optimizer: str
    clip: Dict[str, float]
    dynamic: bool
    scale: float
    period: int
    dtype: str
    sparse: bool
    mode: str
    seed: int
    bad: float
    steps: int


PROGRAM = st.builds(
    Program,
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    clip=st.sampled_from([{}, {}, {"clipnorm": 0.5}, {"clipvalue": 0.25}]),
    dynamic=st.sampled_from([True, True, True, False]),
    scale=st.sampled_from([1.0, 7.0, 1024.0, 32768.0, 2.0**100]),
    period=st.integers(1, 8),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    sparse=st.booleans(),
    mode=st.sampled_from(["together", "apart", "eager"]),
    seed=st.integers(0, 2**31 - 1),
    bad=st.sampled_from([0.0, 0.02, 0.2, 0.6]),
    steps=st.integers(20, 200),
)


def comparable(original: recorded.Subject, program: Program) -> bool:
    """Whether the original can do it, and does it as Keras 2 does."""
    if original.api == "keras3" and not program.dynamic:
        return False  # it has no fixed scale
    if (recorded.TF < (2, 4) and program.clip) or (recorded.TF < (2, 3) and program.sparse):
        return False  # it refuses to clip, and makes sparse gradients dense (K7, K5)
    # Adam's step depends on the iterations.
    return counts_skipped(original) or program.optimizer != "Adam" or never_skips(program)


def never_skips(program: Program) -> bool:
    """Whether no step overflows, also when the scale has grown all along."""
    return (
        not program.bad
        and program.dtype != "float16"
        and program.scale <= 32768.0
        and program.period > 3
    )


def counts_skipped(original: recorded.Subject) -> bool:
    """Whether skipped steps count as iterations, as always with our class (known difference K6)."""
    return original.api != "keras3" and recorded.TF >= (2, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("original", recorded.originals(), ids=str)
def test_programs(original: recorded.Subject, size: str):
    @settings(
        max_examples=PROGRAMS[size] // len(recorded.originals()),
        deadline=None,
        derandomize=size != "long",
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # a program takes a second, and its steps are no smaller ones
    )
    @given(PROGRAM.filter(lambda program: comparable(original, program)))
    def compare(program: Program):
        run(original, program)

    compare()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["RMSprop", "Adam", "Adadelta"])
@pytest.mark.parametrize("original", recorded.originals(), ids=str)
def test_steps_in_functions_apart(original: recorded.Subject, name: str):
    """Grappler replaces the division by a square root, but only in a branch that is lowered."""
    run(original, Program(name, {}, True, 1024.0, 10, "float32", False, "apart", 0, 0.0, 30))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", recorded.kinds(), ids=lambda kind: kind.name)
def test_small_gradients_of_float16_variables(kind: recorded.Kind):
    """K19: a function may take the reciprocal of the scale before the scale, and underflow."""
    program = Program("SGD", {}, True, 2.0**15, 100, "float16", False, "together", 0, 0.0, 1)
    subjects = [
        subject for subject in recorded.originals() + recorded.ours() if subject.kind == kind
    ]
    sides = [Side(subject, program) for subject in subjects]

    def step(factor: Any):
        for side in sides:
            side.step(factor)

    small = [2.0**-12, -(2.0**-13), 2.0**-14, *[0.0] * (SIZE - 3)]
    tf.function(step)(tf.constant(small, tf.float16))
    momentum = [side.state(with_iterations=False)[-1][1] for side in sides]
    assert all(support.same(momentum[0], other) for other in momentum[1:])
    if kind.name == "keras3":
        np.testing.assert_array_equal(momentum[0] * 8, -np.array(small, np.float16))


def run(original: recorded.Subject, program: Program):
    sides = [Side(subject, program) for subject in (original, original.counterpart())]
    apart = program.mode == "apart"
    steps = [tf.function(side.step) if apart else side.step for side in sides]

    def step(factor: Any):
        for take_step in steps:
            take_step(factor)

    take = tf.function(step) if program.mode == "together" else step
    random = np.random.RandomState(program.seed)
    # Eager steps take a hundred times as long.
    for index in range(program.steps // 10 if program.mode == "eager" else program.steps):
        values = random.standard_normal(SIZE)
        if random.uniform() < program.bad:
            values[random.randint(SIZE)] = random.choice(BAD)
        take(tf.constant(values, program.dtype))
        first, second = (side.state(counts_skipped(original)) for side in sides)
        assert len(first) == len(second)
        if original.api == "keras3" and not 1 <= first[0][1] < float("inf"):
            return  # our class stops in the end, and the original goes on (known difference Q1, Q2)
        for (name, theirs), (_, mine) in zip(first, second):
            assert support.same(theirs, mine), f"step {index}, {name}: {theirs} and {mine}"


class Side:
    """One of the two optimizers, with a variable of its own."""

    def __init__(self, subject: recorded.Subject, program: Program):
        self._subject, self._program = subject, program
        inner = subject.inner(program.optimizer, **OPTIMIZERS[program.optimizer], **program.clip)
        self._optimizer = (
            subject.dynamic(inner, program.scale, program.period)
            if program.dynamic
            else subject.fixed(inner, program.scale)
        )
        self._variable = recorded.make_variable(
            subject.kind, np.linspace(-1, 1, SIZE), "v", dtype=program.dtype
        )
        # Keras 2's newer wrappers have no `build` in TensorFlow 2.11.
        built = self._optimizer if subject.kind.name == "keras3" else inner
        if hasattr(built, "build"):
            built.build([self._variable])

    def step(self, factor: Any):
        optimizer, watched = self._optimizer, recorded.gradient_source(self._variable)
        as_keras_3 = self._subject.kind.name == "keras3"
        scaled_by = optimizer.scale_loss if as_keras_3 else optimizer.get_scaled_loss
        with tf.GradientTape() as tape:
            value = watched
            if self._program.sparse:
                # No row twice: the sum of two depends on the order.
                value, factor = tf.gather(watched, [1, 3]), tf.gather(factor, [1, 3])
            loss = scaled_by(tf.reduce_sum(value * factor))
        gradients = tape.gradient(loss, [watched])
        if not as_keras_3:
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(list(zip(gradients, [self._variable])))

    def state(self, with_iterations: bool) -> List[Tuple[str, Any]]:
        scale, counter, _ = self._subject.read(self._optimizer)
        inner = getattr(self._optimizer, "inner_optimizer", None) or self._optimizer._optimizer
        variables = [self._variable, *recorded.variables_of(inner)]
        values = [(variable.name, variable.numpy()) for variable in variables]
        return [
            ("scale", np.float32(scale)),
            ("counter", np.float32(counter or 0)),
            *[pair for pair in values if with_iterations or pair[1].dtype.kind != "i"],
        ]
