"""On Keras 3 gradients are unscaled exactly once, or not applied, whichever methods are called.

Each program is a training step in one of the two styles, split as users write them. `expected` is
the required result: the gradients are scaled, unscaled, or this cannot be determined.
"""

import concurrent.futures
import gc
from typing import Any, Callable, Dict

import pytest
import recorded
import tensorflow as tf

from tf_lossscale._keras.calls import ScalingCalls

pytestmark = pytest.mark.skipif(recorded.TF < (2, 4), reason="only Keras 3 needs it")

K2, K3, UNSCALE = "get_scaled_loss", "scale_loss", "get_unscaled_gradients"


class Program:
    """An optimizer's calls, each eager or in a `tf.function` of its own."""

    def __init__(self) -> None:
        self.calls = ScalingCalls()
        self.functions: Dict[str, Any] = {}

    def note(self, *methods: str) -> None:
        for method in methods:
            self.calls.note(method)

    def compiled(self, name: str, *methods: str) -> Any:
        """Calls the methods in a function called `name`, which is traced the first time only."""

        def body(x: Any) -> Any:
            for method in methods:
                result.append(self.applies() if method == "apply_gradients" else self.note(method))
            return x + 1.0

        if name not in self.functions:
            result: list = []
            body.__name__ = name
            self.functions[name] = (tf.function(body, autograph=False), result)
        function, result = self.functions[name]
        function(tf.constant(1.0))
        return result[-1]

    def applies(self) -> bool:
        return self.calls.applies_scaled()


SCALED, NOT_SCALED, UNDETERMINED = True, False, None

PROGRAMS: Dict[str, Any] = {
    "keras 2 step": (NOT_SCALED, lambda p: (p.note(K2, UNSCALE), p.applies())[-1]),
    "keras 3 step": (SCALED, lambda p: (p.note(K3), p.applies())[-1]),
    "keras 2 step, compiled": (
        NOT_SCALED,
        lambda p: p.compiled("step", K2, UNSCALE, "apply_gradients"),
    ),
    "keras 3 step, compiled": (SCALED, lambda p: p.compiled("step", K3, "apply_gradients")),
    "micro-batches": (
        NOT_SCALED,
        lambda p: (p.note(K2, UNSCALE, K2, UNSCALE, K2, UNSCALE), p.applies())[-1],
    ),
    "two updates after one unscaling": (
        NOT_SCALED,
        lambda p: (p.note(K2, UNSCALE), p.applies(), p.applies())[-1],
    ),
    "two updates after one scaling": (SCALED, lambda p: (p.note(K3), p.applies(), p.applies())[-1]),
    "keras 2 in pieces": (
        NOT_SCALED,
        lambda p: (p.compiled("gradients", K2, UNSCALE), p.compiled("update", "apply_gradients"))[
            -1
        ],
    ),
    "keras 2 in smaller pieces": (
        NOT_SCALED,
        lambda p: (
            p.compiled("loss", K2),
            p.compiled("unscale", UNSCALE),
            p.compiled("update", "apply_gradients"),
        )[-1],
    ),
    "keras 3 in pieces": (
        SCALED,
        lambda p: (p.compiled("loss", K3), p.compiled("update", "apply_gradients"))[-1],
    ),
    "compiled gradients, eager update": (
        NOT_SCALED,
        lambda p: (p.compiled("gradients", K2, UNSCALE), p.applies())[-1],
    ),
    "eager gradients, compiled update": (
        NOT_SCALED,
        lambda p: (p.note(K2, UNSCALE), p.compiled("update", "apply_gradients"))[-1],
    ),
    "eager loss, compiled unscaling": (
        NOT_SCALED,
        lambda p: (p.note(K2), p.compiled("unscale", UNSCALE), p.applies())[-1],
    ),
    "scaled as in keras 3, unscaled as in keras 2": (
        NOT_SCALED,
        lambda p: (p.note(K3, UNSCALE), p.applies())[-1],
    ),
    "fit after an eager loop": (
        SCALED,
        lambda p: (
            p.note(K2, UNSCALE),
            p.applies(),
            p.compiled("train_step", K3, "apply_gradients"),
        )[-1],
    ),
    "an eager loop after fit": (
        NOT_SCALED,
        lambda p: (
            p.compiled("train_step", K3, "apply_gradients"),
            p.note(K2, UNSCALE),
            p.applies(),
        )[-1],
    ),
    "eager fit after an eager loop": (
        SCALED,
        lambda p: (p.note(K2, UNSCALE), p.applies(), p.note(K3), p.applies())[-1],
    ),
    "a loop in pieces after fit": (
        NOT_SCALED,
        lambda p: (
            p.compiled("train_step", K3, "apply_gradients"),
            p.compiled("gradients", K2, UNSCALE),
            p.compiled("update", "apply_gradients"),
        )[-1],
    ),
    "fit after a loop in pieces": (
        SCALED,
        lambda p: (
            p.compiled("gradients", K2, UNSCALE),
            p.compiled("update", "apply_gradients"),
            p.compiled("train_step", K3, "apply_gradients"),
        )[-1],
    ),
    "never unscaled": (UNDETERMINED, lambda p: (p.note(K2), p.applies())[-1]),
    "never unscaled, in pieces": (
        UNDETERMINED,
        lambda p: (p.compiled("loss", K2), p.compiled("update", "apply_gradients"))[-1],
    ),
    "nothing scaled, nothing unscaled": (UNDETERMINED, lambda p: p.applies()),
    "scaled twice": (UNDETERMINED, lambda p: (p.note(K2, K3), p.applies())[-1]),
    "half of the gradients unscaled": (
        UNDETERMINED,
        lambda p: (p.note(K2, UNSCALE, K3), p.applies())[-1],
    ),
    "pieces of both styles": (
        UNDETERMINED,
        lambda p: (
            p.compiled("gradients", K2, UNSCALE),
            p.compiled("loss", K3),
            p.compiled("update", "apply_gradients"),
        )[-1],
    ),
    "unscaled in a function, scaled eagerly": (
        UNDETERMINED,
        lambda p: (p.compiled("unscale", UNSCALE), p.note(K3), p.applies())[-1],
    ),
}


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_gradients_are_unscaled_once_or_not_applied(name: str) -> None:
    expected, program = PROGRAMS[name]
    if expected is UNDETERMINED:
        with pytest.raises(RuntimeError, match=r"Keras 2 step.*or a Keras 3 step"):
            program(Program())
    else:
        assert program(Program()) is expected


def test_a_function_that_unscales_is_seen_where_it_is_called_again() -> None:
    program = Program()
    unscale: Callable[..., Any] = tf.function(
        lambda x: (program.note(UNSCALE), x * 0.5)[-1], autograph=False
    )
    unscale(tf.constant(1.0))  # traced here, so that a call of it in `step` leaves no note

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        program.note(K3)
        x = unscale(x)
        program.applies()
        return x

    with pytest.raises(RuntimeError, match="may have been unscaled"):
        step(tf.constant(1.0))


def test_the_error_of_an_eager_step_states_how_to_fix_it() -> None:
    """`fit(run_eagerly=True)` next to a loop in compiled parts; the advice in the message works."""
    program = Program()
    program.compiled("gradients", K2, UNSCALE)
    program.note(K3)
    with pytest.raises(RuntimeError, match=r"run it as a tf.function.*run_eagerly.*or delete"):
        program.applies()
    assert program.compiled("train_step", K3, "apply_gradients") is SCALED
    program.functions.pop("gradients")
    gc.collect()
    program.note(K3)
    assert program.applies() is SCALED


def test_apply_takes_scaled_gradients_only() -> None:
    for scaling in (K2, K3):
        program = Program()
        program.note(scaling)
        program.calls.check_apply()
    program = Program()
    program.calls.check_apply()  # scaled by hand with dynamic_scale, as Keras 3 allows
    program.note(K2, UNSCALE)
    with pytest.raises(RuntimeError, match="has done so already"):
        program.calls.check_apply()
    program = Program()
    program.compiled("gradients", K2, UNSCALE)
    with pytest.raises(RuntimeError, match="has done so already"):
        program.calls.check_apply()
    program = Program()
    program.note(K2, K3)
    with pytest.raises(RuntimeError, match="scaled twice"):
        program.calls.check_apply()


def test_graphs_are_not_kept_alive() -> None:
    program = Program()
    program.compiled("step", K2, UNSCALE, "apply_gradients")
    assert len(program.calls._traced) == 1
    program.functions.clear()
    gc.collect()
    assert not program.calls._traced


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
