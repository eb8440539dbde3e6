"""On the Keras 3 target, reports `hasattr(opt, "get_scaled_loss")` and similar tests.

Keras 3's own loss-scale optimizer (TensorFlow 2.16) lacks both methods, so such a test is False:
the loss stays unscaled, but the gradients are still divided by the scale. The shim's class has the
methods, but a file that only tests for them does not show which class it is called with.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule
from ._optimizer_sources import Source, sources

__all__ = ["RULE"]

_METHODS = ("get_scaled_loss", "get_unscaled_gradients")
_OWN = frozenset([Source.WRAPPED, Source.PLAIN])
_TESTS = ("hasattr", "getattr")
_MESSAGE = (
    "Keras 3's own class lacks this method: the loss stays unscaled, but gradients are divided by "
    "the scale; use tf_lossscale's class, and test with isinstance"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each test for one of the methods by its name."""
    if not program.options.for_keras_3 or program.options.target is Target.SHIM:
        return
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or program.code(call.func) not in _TESTS:
            continue
        if string_of(string) in _METHODS and argument in call.args[1:2]:
            if sources(program, call.args[0].value) <= _OWN:
                continue  # made here, where the loss-scale optimizers become the shim's
            symbol = f"LossScaleOptimizer.{string_of(string)}"
            yield report(call, "LS404", symbol, _MESSAGE)


RULE = Rule(
    codes={"LS404": "a test for the methods that Keras 3's own class lacks"},
    summary='hasattr(opt, "get_scaled_loss"), reported for Keras 3',
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not on Keras 2",
            """\
            if hasattr(opt, "get_scaled_loss"):
                loss = opt.get_scaled_loss(loss)
            """,
        ),
        Example(
            "not where the file makes the optimizer, which becomes the shim's",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            if hasattr(opt, "get_scaled_loss"):
                loss = opt.get_scaled_loss(loss)
            """,
            keras=3,
        ),
        Example(
            "not a check for another attribute",
            """\
            print("get_scaled_loss")
            names = getattr(opt, "names", "get_scaled_loss")
            """,
            keras=3,
        ),
        Example(
            "a loop that takes any optimizer",
            """\
            if hasattr(opt, "get_scaled_loss"):
                loss = opt.get_scaled_loss(loss)
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="isinstance",
        ),
    ),
)
