"""Reports reads and writes of `optimizer._loss_scale`.

Up to TensorFlow 2.3, this private attribute of the Keras optimizer was the loss scale. Since 2.4 it
is an internal state, and Keras 3 has none. Which object an expression means is often unknown, so
any `_loss_scale` but that of `self` counts in a file that makes or tests such an optimizer. The
optimizers of the file stay as they are until it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...resolve.tree import string_of
from ...rewrite.proposal import Proposal
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._loss_scale_receivers import may_be_loss_scale_optimizer

__all__ = ["RULE"]

_NAME = "_loss_scale"
_ACCESS = ("delattr", "getattr", "hasattr", "setattr")
_MESSAGE = (
    "_loss_scale is no loss scale since TensorFlow 2.4, and is missing in Keras 3: read "
    "optimizer.loss_scale, and set initial_scale= where the optimizer is made"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each use of the attribute on what can be a Keras loss-scale optimizer."""
    to_shim = program.options.target is Target.SHIM
    for node, receiver in _uses(program):
        if may_be_loss_scale_optimizer(program, receiver):
            yield Proposal(
                node=node,
                code="LS305",
                symbol="LossScaleOptimizer._loss_scale",
                outcome=Safety.MANUAL,
                message=_MESSAGE,
                group=None if to_shim else KERAS_OPTIMIZERS,
                blocks=not to_shim,
            )


def _uses(program: Program) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Each use of the attribute, with the object that it belongs to."""
    for attribute in program.attributes(_NAME):
        yield attribute, attribute.value
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or string_of(string) != _NAME:
            continue
        if program.code(call.func) in _ACCESS and argument in call.args[1:2]:
            yield call, call.args[0].value


RULE = Rule(
    codes={"LS305": "_loss_scale of a Keras LossScaleOptimizer"},
    summary="optimizer._loss_scale, which is private, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not an attribute of the program's own class",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Trainer:
                def __init__(self, opt, scale):
                    self.opt = LossScaleOptimizer(opt)
                    self._loss_scale = scale
            """,
        ),
        Example(
            "not of an object of another class",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Trainer:
                _loss_scale = 1.0

            trainer = Trainer()
            print(trainer._loss_scale)
            """,
        ),
        Example(
            "not in a file without such an optimizer",
            """\
            import tensorflow as tf

            print(model.optimizer._loss_scale, tf.mixed_precision)
            """,
        ),
        Example(
            "a call holds back the constructor",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            print(opt._loss_scale())
            """,
            None,
            Safety.MANUAL,
            message_contains="initial_scale",
        ),
        Example(
            "a write, on an optimizer that a function is passed",
            """\
            import tensorflow as tf

            wrap = tf.keras.mixed_precision.LossScaleOptimizer

            def reset(opt):
                opt._loss_scale = 1.0
            """,
            None,
            Safety.MANUAL,
        ),
        Example(
            "reported for the shim",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            scale = getattr(opt, "_loss_scale")
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            scale = getattr(opt, "_loss_scale")
            """,
            Safety.MANUAL,
            target=Target.SHIM,
        ),
    ),
)
