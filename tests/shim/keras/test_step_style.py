"""On Keras 3 gradients are unscaled exactly once, or not applied, whichever methods are called.

Each program is a training step in one of the two styles, split as users write them. `expected` is
the required result: the gradients are scaled, unscaled, or this cannot be determined.
"""

import concurrent.futures
import gc
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest
import recorded
import tensorflow as tf

from tf_lossscale._keras.calls import ScalingCalls

pytestmark = pytest.mark.skipif(recorded.TF < (2, 4), reason="only Keras 3 needs it")

K2, K3, UNSCALE = "get_scaled_loss", "scale_loss", "get_unscaled_gradients"
APPLY = "apply_gradients"


class Program:
    """An optimizer's calls, each eager or in a `tf.function` of its own."""

    def __init__(self, *calls: Any) -> None:
        self.calls = ScalingCalls()
        self.functions: Dict[str, Any] = {}
        for call in calls:
            self.call(call)

    def call(self, call: Any) -> Any:
        """Calls a method, or a function of several; returns whether gradients are scaled."""
        if isinstance(call, tuple):
            return self.compiled(*call)
        return self.calls.applies_scaled() if call == APPLY else self.calls.note(call)

    def compiled(self, name: str, *methods: str) -> Any:
        """Calls the methods in a function called `name`, which is traced the first time only."""

        def body(x: Any) -> Any:
            result.extend(self.call(method) for method in methods)
            return x + 1.0

        if name not in self.functions:
            result: list = []
            body.__name__ = name
            self.functions[name] = (tf.function(body, autograph=False), result)
        function, result = self.functions[name]
        function(tf.constant(1.0))
        return result[-1]


SCALED, NOT_SCALED, UNDETERMINED = True, False, None
# The calls of some parts of a step, each of them a function.
GRADIENTS = ("gradients", K2, UNSCALE)
UPDATE = ("update", APPLY)
LOSS = ("loss", K2)
LOSS_3 = ("loss", K3)
UNSCALING = ("unscale", UNSCALE)
TRAIN_STEP = ("train_step", K3, APPLY)

# Each call is eager, or a function: its name and the calls in it.
PROGRAMS: Dict[str, Tuple[Optional[bool], List[Any]]] = {
    "keras 2 step": (NOT_SCALED, [K2, UNSCALE, APPLY]),
    "keras 3 step": (SCALED, [K3, APPLY]),
    "keras 2 step, compiled": (NOT_SCALED, [("step", K2, UNSCALE, APPLY)]),
    "keras 3 step, compiled": (SCALED, [("step", K3, APPLY)]),
    "micro-batches": (NOT_SCALED, [K2, UNSCALE, K2, UNSCALE, K2, UNSCALE, APPLY]),
    "two updates after one unscaling": (NOT_SCALED, [K2, UNSCALE, APPLY, APPLY]),
    "two updates after one scaling": (SCALED, [K3, APPLY, APPLY]),
    "keras 2 in pieces": (NOT_SCALED, [GRADIENTS, UPDATE]),
    "keras 2 in smaller pieces": (NOT_SCALED, [LOSS, UNSCALING, UPDATE]),
    "keras 3 in pieces": (SCALED, [LOSS_3, UPDATE]),
    "compiled gradients, eager update": (NOT_SCALED, [GRADIENTS, APPLY]),
    "eager gradients, compiled update": (NOT_SCALED, [K2, UNSCALE, UPDATE]),
    "eager loss, compiled unscaling": (NOT_SCALED, [K2, UNSCALING, APPLY]),
    "scaled as in keras 3, unscaled as in keras 2": (NOT_SCALED, [K3, UNSCALE, APPLY]),
    "fit after an eager loop": (SCALED, [K2, UNSCALE, APPLY, TRAIN_STEP]),
    "an eager loop after fit": (NOT_SCALED, [TRAIN_STEP, K2, UNSCALE, APPLY]),
    "eager fit after an eager loop": (SCALED, [K2, UNSCALE, APPLY, K3, APPLY]),
    "a loop in pieces after fit": (NOT_SCALED, [TRAIN_STEP, GRADIENTS, UPDATE]),
    "fit after a loop in pieces": (SCALED, [GRADIENTS, UPDATE, TRAIN_STEP]),
    "never unscaled": (UNDETERMINED, [K2, APPLY]),
    "never unscaled, in pieces": (UNDETERMINED, [LOSS, UPDATE]),
    "nothing scaled, nothing unscaled": (UNDETERMINED, [APPLY]),
    "scaled twice": (UNDETERMINED, [K2, K3, APPLY]),
    "half of the gradients unscaled": (UNDETERMINED, [K2, UNSCALE, K3, APPLY]),
    "pieces of both styles": (UNDETERMINED, [GRADIENTS, LOSS_3, UPDATE]),
    "unscaled in a function, scaled eagerly": (UNDETERMINED, [UNSCALING, K3, APPLY]),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_gradients_are_unscaled_once_or_not_applied(name: str) -> None:
    expected, calls = PROGRAMS[name]
    program = Program()
    for call in calls[:-1]:
        program.call(call)
    if expected is UNDETERMINED:
        with pytest.raises(RuntimeError, match=r"Keras 2 step.*or a Keras 3 step"):
            program.call(calls[-1])
    else:
        assert program.call(calls[-1]) is expected


def test_a_function_that_unscales_is_seen_where_it_is_called_again() -> None:
    program = Program()
    unscale: Callable[..., Any] = tf.function(
        lambda x: (program.call(UNSCALE), x * 0.5)[-1], autograph=False
    )
    unscale(tf.constant(1.0))  # traced here, so that a call of it in `step` leaves no note

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        program.call(K3)
        x = unscale(x)
        program.call(APPLY)
        return x

    with pytest.raises(RuntimeError, match="may have been unscaled"):
        step(tf.constant(1.0))


def test_the_error_of_an_eager_step_states_how_to_fix_it() -> None:
    """`fit(run_eagerly=True)` next to a loop in compiled parts; the advice in the message works."""
    program = Program(GRADIENTS, K3)
    with pytest.raises(RuntimeError, match=r"run it as a tf.function.*run_eagerly.*or delete"):
        program.call(APPLY)
    assert program.call(TRAIN_STEP) is SCALED
    program.functions.pop("gradients")
    gc.collect()
    program.call(K3)
    assert program.call(APPLY) is SCALED


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ([K2], None),
        ([K3], None),
        ([], None),  # scaled by hand with dynamic_scale, as Keras 3 allows
        ([K2, UNSCALE], "has done so already"),
        ([GRADIENTS], "has done so already"),
        ([K2, K3], "scaled twice"),
    ],
)
def test_apply_takes_scaled_gradients_only(calls: List[Any], error: Optional[str]) -> None:
    program = Program(*calls)
    if error is None:
        program.calls.check_apply()
    else:
        with pytest.raises(RuntimeError, match=error):
            program.calls.check_apply()


def test_graphs_are_not_kept_alive() -> None:
    program = Program(("step", K2, UNSCALE, APPLY))
    assert len(program.calls._places) == 1
    program.functions.clear()
    gc.collect()
    assert not program.calls._places


def test_the_calls_of_each_thread_count_for_itself() -> None:
    """Two threads share an optimizer: one takes Keras 2 steps, the other Keras 3 steps."""
    calls = ScalingCalls()
    first, second = (concurrent.futures.ThreadPoolExecutor(1) for _ in range(2))
    with first, second:
        for _ in range(2):
            first.submit(calls.note, K3).result()
            second.submit(calls.note, K2).result()
            second.submit(calls.note, UNSCALE).result()
            assert first.submit(calls.applies_scaled).result() is True
            first.submit(calls.note, K3).result()
            assert second.submit(calls.applies_scaled).result() is False
            first.submit(calls.check_apply).result()


def test_calls_of_another_thread_count_if_there_are_no_others() -> None:
    calls = ScalingCalls()
    calls.note(K2)
    calls.note(UNSCALE)
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        assert other.submit(calls.applies_scaled).result() is False


def test_a_thread_that_left_gradients_scaled_is_refused() -> None:
    calls = ScalingCalls()
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        other.submit(calls.note, K2).result()
        with pytest.raises(RuntimeError, match="were not unscaled"):
            other.submit(calls.applies_scaled).result()
