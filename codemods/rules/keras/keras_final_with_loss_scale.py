"""Repairs the final class called with the experimental class's `loss_scale`.

`tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")` is what a search and
replace of `experimental.` leaves behind. No TensorFlow accepts it: a TypeError up to 2.15, a
ValueError in Keras 3, where `LossScaleOptimizer(opt, "dynamic")` even constructs and fails at the
first step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import is_at, references
from ..findings import manual, safe
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._constructors import FINAL_CLASS, ConstructorPlan, has_loss_scale, plan
from ._keras3_loops import final_class

__all__ = ["RULE"]

_BUG = "the final class never took loss_scale, in any TensorFlow"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class's own arguments."""
    for reference in references(program, "LS401"):
        call = program.call_of(reference.node)
        if call is not None and has_loss_scale(call):
            yield _repaired(program, reference, plan(program, call))._replace(code="LS304")


def _repaired(program: Program, reference: Reference, wrap: ConstructorPlan) -> Proposal:
    message = f"{_BUG}; {wrap.message}"
    if not wrap.target:
        return manual(reference, message, group=KERAS_OPTIMIZERS)._replace(blocks=False)
    target = final_class(program) if wrap.target == FINAL_CLASS else wrap.target
    stays = reference.legacy.root == "tf_keras" and wrap.target == FINAL_CLASS
    if stays or is_at(program, reference, target):
        target = ""
    return safe(
        reference,
        message,
        path=target,
        edits=wrap.edits,
        removed=wrap.removed,
        group=KERAS_OPTIMIZERS,
    )


RULE = Rule(
    codes={"LS304": "the final LossScaleOptimizer with loss_scale="},
    summary="the final Keras LossScaleOptimizer called with loss_scale=, repaired",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not the final class's own arguments",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, True, 1024)
            """,
        ),
        Example(
            "not a Keras 3 initial scale by position",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, 1024.0)
            """,
        ),
        Example(
            "dynamic by keyword",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, loss_scale='dynamic')
            """,
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt)
            """,
            Safety.SAFE,
            message_contains="never took loss_scale",
        ),
        Example(
            "a number",
            """\
            import tensorflow as tf

            o = tf.keras.mixed_precision.LossScaleOptimizer(o, loss_scale=128.0)
            """,
            """\
            import tensorflow as tf

            o = tf.keras.mixed_precision.LossScaleOptimizer(o, dynamic=False, initial_scale=128.0)
            """,
            Safety.SAFE,
        ),
    ),
)
