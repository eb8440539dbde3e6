"""One custom loop, recorded with the original of TensorFlow 2.3, gives its numbers everywhere.

The loop (`tests/data/recorders/keras_loop.py`) scales the loss, unscales the gradients, accumulates
them over micro-batches, clips them by their global norm and applies them; its float16 forward pass
overflows by itself, and three batches hold an infinity or a NaN.

The loss scale, its counter and the iterations must be equal. Weights must be equal to the bit with
SGD and momentum without clipping: all their sums and products are the same float32 operations
everywhere. Clipping takes a square root and a division, and each generation of Keras orders Adam's
arithmetic differently, so there the last bits of a weight differ; and where such a weight lies
between two float16 numbers, its forward pass may round the other way, which changes a gradient by
2**-11 of itself and a weight by up to 2**-11 of the learning rate, 2**-4. `TOLERANCE` is twice
that; leaving out a step, or clipping at the wrong place, makes a difference of 2**-7 and more.
"""

import importlib.util
import os
from typing import Any, List

import numpy as np
import pytest
import recorded
import tensorflow as tf

_PATH = os.path.join(recorded.DATA, "recorders", "keras_loop.py")
_SPEC = importlib.util.spec_from_file_location("keras_loop", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
keras_loop: Any = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(keras_loop)

TRACES = recorded.load("traces", "keras_loop.json")["traces"]
TOLERANCE = 2.0**-14
EXACT = ("sgd", "momentum")
LONG = os.environ.get("TFLS_TEST_SIZE") == "long"


def subjects() -> List[recorded.Subject]:
    """Ours; in the long tests the originals that advance iterations on every step, too."""
    known = [
        each for each in recorded.originals() if each.api != "keras3" and recorded.TF >= (2, 3)
    ]
    return (known if LONG else []) + recorded.with_own_step()


def names(size: str, mode: str) -> List[str]:
    """All programs; where tests are to be quick, each way of running takes a part of them."""
    everything = sorted(TRACES)
    if size != "small":
        return everything
    if mode == "eager":
        return ["accumulate_clip/adam", "plain/momentum"]
    if mode == "function":
        return ["accumulate_clip/sgd", "plain/adam"]
    return ["accumulate_clip/momentum"]


@pytest.mark.parametrize("mode", ["eager", "function", "pieces"])
@pytest.mark.parametrize("subject", subjects(), ids=str)
def test_the_loop_gives_the_recorded_numbers(subject: Any, mode: str, size: str) -> None:
    for name in names(size, mode):
        program, optimizer = name.split("/")
        kind, arguments = keras_loop.OPTIMIZERS[optimizer]
        trace = keras_loop.run(
            tf,
            program,
            lambda kind=kind, arguments=arguments: subject.inner(kind, **arguments),
            lambda inner: subject.dynamic(inner, keras_loop.SCALE, keras_loop.PERIOD),
            subject.read,
            lambda value, name: recorded.make_variable(subject.kind, value, name),
            recorded.gradient_source,
            mode,
        )
        exact = optimizer in EXACT and "clip" not in program
        tolerance = 0 if exact else TOLERANCE
        assert len(trace) == len(TRACES[name]) == keras_loop.STEPS
        for number, (step, expected) in enumerate(zip(trace, TRACES[name])):
            where = f"{name}, step {number}: {step} instead of {expected}"
            for key in ("loss_scale", "counter", "iterations"):
                assert step[key] == expected[key], where
            for key in ("w", "b"):
                np.testing.assert_allclose(
                    step[key], expected[key], rtol=0, atol=tolerance, err_msg=where
                )
