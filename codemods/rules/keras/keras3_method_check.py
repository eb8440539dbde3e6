"""Reports `hasattr(opt, "get_scaled_loss")` and similar tests, which Keras 3's class fails.

Keras 3's own loss-scale optimizer (TensorFlow 2.16) lacks both methods, so such a test is False.
Then the loss is not scaled, but the gradients are still divided by the scale. The shim's class has
the methods, but a file that only tests for them does not show which class it is called with.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.classes import is_made_here, may_compile
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_METHODS = ("get_scaled_loss", "get_unscaled_gradients")
_CLASSES = ("LossScaleOptimizer", "from_loss_scale")
_TESTS = ("hasattr", "getattr")
_MESSAGE = (
    "Keras 3's own class lacks this method: the loss stays unscaled, but gradients are divided by "
    "the scale; use tf_lossscale's class, and test with isinstance"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each test for one of the methods by its name."""
    if not program.options.for_keras_3 and program.options.target is not Target.SHIM:
        return
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or program.code(call.func) not in _TESTS:
            continue
        if string_of(string) in _METHODS and argument in call.args[1:2]:
            if is_made_here(program, call.args[0].value) or _makes_all(program):
                continue
            symbol = f"LossScaleOptimizer.{string_of(string)}"
            yield report(call, "LS404", symbol, _MESSAGE)


def _makes_all(program: Program) -> bool:
    """Whether the file makes its loss-scale optimizers itself, which become the shim's."""
    named = [one.node for one in program.references if one.legacy.is_keras_optimizer]
    named += [node for node, name in program.migrated if name in _CLASSES]
    is_called = any(program.call_of(node) is not None for node in named)
    return is_called and not may_compile(program)


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
    ),
)
