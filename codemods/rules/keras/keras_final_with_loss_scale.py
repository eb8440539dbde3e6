"""Repairs the final class called with the experimental class's `loss_scale`.

`tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")` is what a search and
replace of `experimental.` leaves behind. No TensorFlow accepts it: a TypeError up to 2.15, a
ValueError in Keras 3, where `LossScaleOptimizer(opt, "dynamic")` even constructs and fails at the
first step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import is_at, move, references
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._constructors import FINAL_CLASS, has_loss_scale, plan
from ._keras3_loops import final_class

__all__ = ["RULE"]

_BUG = "a bug found: the final class takes no loss_scale, in any TensorFlow"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class's own arguments."""
    for reference in references(program, "LS401", "final"):
        call = program.call_of(reference.node)
        if call is None or not has_loss_scale(call):
            continue
        wrap = plan(program, call)
        if not wrap.target:
            yield Proposal(
                node=reference.node,
                code="LS304",
                symbol="LossScaleOptimizer",
                outcome=Safety.MANUAL,
                message=f"{_BUG}; {wrap.message}",
                group=KERAS_OPTIMIZERS,
            )
            continue
        shim = program.options.target is Target.SHIM and program.options.keras == 2
        target = final_class(program) if wrap.target == FINAL_CLASS else wrap.target
        proposal = move(
            program, reference, target, f"{_BUG}: {wrap.message}", group=KERAS_OPTIMIZERS
        )
        if is_at(program, reference, target) or (shim and "from_loss_scale" not in target):
            proposal = proposal._replace(moves=())
        yield proposal._replace(code="LS304", edits=wrap.edits, removed=wrap.removed)


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
            message_contains="a bug found",
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
