"""Every recorded trace of the update rules replays exactly, with every kind of inner optimizer.

The traces are of the originals (`tests/data/golden`): the experimental class of TensorFlow 2.3, the
final one of 2.4 and Keras 3's. In the long tests each original that is installed replays its own
file, which proves this test; ours replays the final class's on every Keras, with the exceptions
that `excepted` names.
A trace says for each step whether the gradients are finite, and what the loss scale and the counter
are after it.
"""

from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest
import recorded
import tensorflow as tf
from processes import LONG

tf1 = tf.compat.v1
FILES = {"experimental": "exp.json", "final": "final.json", "keras3": "k3.json"}
EXP_FUNCTION = "exp_function.json"  # the multipliers that give other last bits in a tf.function
STATES = ("loss_scale", "good")
QUICK_CASES = 2
STEPS = {"small": 100, "long": 400}  # the longest trace has 400
LARGEST = float(np.finfo(np.float32).max)

Case = Dict[str, Any]


def cases(subject: recorded.Subject, mode: str) -> List[Case]:
    """The recorded cases that `subject` must replay exactly."""
    api = "final" if subject.who == "ours" and subject.api != "experimental" else subject.api
    found = recorded.load("golden", FILES[api])["cases"]
    if api == "experimental" and mode != "eager":
        other = recorded.load("golden", EXP_FUNCTION)["cases"]
        names = {trace["name"] for trace in other}
        found = [trace for trace in found if trace["name"] not in names] + other
    return [trace for trace in found if not excepted(subject, trace)]


def excepted(subject: recorded.Subject, case: Case) -> bool:
    """Whether `subject` rejects or fixes what `case` does; other tests cover such cases."""
    _, period, multiplier = arguments(case)
    if multiplier != 2 and subject.refuses_multiplier():
        return True
    return subject.who == "ours" and (period < 1 or out_of_bounds(subject, case))


def out_of_bounds(subject: recorded.Subject, case: Case) -> bool:
    """On Keras 3 our scale stays between 1 and the largest finite float32."""
    scales = np.array([arguments(case)[0], *case["loss_scale"]], np.float32)
    return subject.kind.name == "keras3" and not np.all((scales >= 1) & (scales <= LARGEST))


def arguments(case: Case) -> Tuple[float, float, float]:
    given = case["params"]
    return (
        float(given.get("initial_loss_scale", 2.0**15)),
        given.get("increment_period", 2000),
        given.get("multiplier", 2.0),
    )


def build(subject: recorded.Subject, case: Case) -> Any:
    scale, period, multiplier = arguments(case)
    inner = subject.inner("SGD", learning_rate=0.0)
    if multiplier != 2:
        return subject.cls(inner, subject.dynamic_loss_scale(scale, period, multiplier))
    return subject.dynamic(inner, scale, period)


def stepper(subject: recorded.Subject, optimizer: Any) -> Callable[[Any], Any]:
    """A function that takes one step with the true gradient that it is given."""
    variable = recorded.make_variable(subject.kind, 1.0, "v")
    if hasattr(optimizer, "build"):
        optimizer.build([variable])
    if subject.api == "keras3":
        return lambda gradient: optimizer.apply([gradient], [variable])
    if subject.kind.name != "keras3":
        return lambda gradient: optimizer.apply_gradients([(gradient, variable)])

    def step(gradient: Any):
        # Keras 3 optimizers take scaled gradients, so ours must see these unscaled.
        scaled = gradient * optimizer.loss_scale
        gradients = optimizer.get_unscaled_gradients([scaled])
        optimizer.apply_gradients(zip(gradients, [variable]))

    return step


def gradient_of(flag: str) -> np.float32:
    return np.float32(1.0 if flag == "1" else "nan")


def replay(subject: recorded.Subject, case: Case, mode: str, flags: str) -> List[Tuple[Any, Any]]:
    """The (loss scale, counter) before the first step and after each."""
    if mode == "graph":
        with tf.Graph().as_default(), tf1.Session() as session:
            optimizer = build(subject, case)
            gradient = tf1.placeholder(tf.float32, [])
            operation = stepper(subject, optimizer)(gradient)
            state = subject.scale_and_counter(optimizer)
            session.run(tf1.global_variables_initializer())
            trace = [tuple(session.run(state))]
            for flag in flags:
                session.run(operation, {gradient: gradient_of(flag)})
                trace.append(tuple(session.run(state)))
            return trace
    optimizer = build(subject, case)
    step = stepper(subject, optimizer)
    if mode == "function":
        eager_step = step

        @tf.function
        def step(gradient: Any):
            eager_step(gradient)

    trace = [subject.read(optimizer)[:2]]
    for flag in flags:
        step(tf.constant(gradient_of(flag)))
        trace.append(subject.read(optimizer)[:2])
    return trace


def subjects_and_modes() -> List[Any]:
    found = []
    for subject in (recorded.originals() if LONG else []) + recorded.ours():
        modes = ["eager", "function"]
        if subject.kind.name == "legacy":  # the kind that graphs and Sessions can run
            modes.append("graph")
        found += [pytest.param(subject, mode, id=f"{subject}-{mode}") for mode in modes]
    return found


def sample(everything: List[Case], size: str, subject: recorded.Subject, mode: str) -> List[Case]:
    """All cases; a few where tests are to be quick, others for each subject, mode and version."""
    if size != "small":
        return everything
    start = sum(map(ord, str(subject) + mode + tf.__version__))
    step = len(everything) // QUICK_CASES
    return [everything[(start + step * i) % len(everything)] for i in range(QUICK_CASES)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("subject", "mode"), subjects_and_modes())
def test_traces_replay_exactly(subject, mode: str, size: str):
    for case in sample(cases(subject, mode), size, subject, mode):
        flags = case["flags"][: STEPS[size]]
        trace = replay(subject, case, mode, flags)
        for column, name in enumerate(STATES):
            expected = np.array(case[name][: len(trace)], np.float32)
            actual = np.array([state[column] for state in trace], np.float32)
            np.testing.assert_array_equal(
                actual, expected, err_msg="{name}, {flag_set}, {params}".format(**case)
            )
