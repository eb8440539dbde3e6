"""Repairs the final class called with the experimental class's `loss_scale`.

`tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")` is what a search and
replace of `experimental.` leaves behind. No TensorFlow accepts it: a TypeError up to 2.15, a
ValueError in Keras 3, where `LossScaleOptimizer(opt, "dynamic")` even constructs and fails at the
first step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.places import Reference
from ...resolve.program import Program
from ...rewrite.arguments import has_loss_scale
from ...rewrite.proposal import Proposal
from ...rewrite.rename import is_at, references
from ..findings import report, safe
from ..rule import Example, Rule
from ._constructors import ConstructorPlan, final_class, plan

__all__ = ["RULE"]

_NAME = "LossScaleOptimizer"
_BUG = "the final class never took loss_scale, in any TensorFlow"
_WRITE = "write LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class's own arguments; `--to shim` edits no arguments."""
    for reference in references(program, "LS401"):
        call = program.call_of(reference.node)
        if call is not None and has_loss_scale(call):
            yield _repaired(program, reference, plan(program, call))
    for node, name in program.migrated:
        call = program.call_of(node)
        if name == _NAME and call is not None and has_loss_scale(call):
            yield report(node, "LS304", _NAME, f"{_BUG}: {_WRITE}")


def _repaired(program: Program, reference: Reference, wrap: ConstructorPlan) -> Proposal:
    if wrap.problem or program.options.target is Target.SHIM:
        return report(reference.node, "LS304", _NAME, f"{_BUG}: {_WRITE}")
    path = wrap.path or final_class(program)
    is_at_target = is_at(program, reference, path)
    if is_at_target or (reference.legacy.root == "tf_keras" and not wrap.path):
        path = ""
    made = safe(
        reference, f"{_BUG}; {wrap.message}", path=path, edits=wrap.edits, removed=wrap.removed
    )
    return made._replace(code="LS304")


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
            "dynamic, and a number",
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt, loss_scale='dynamic')
            opt = mixed_precision.LossScaleOptimizer(opt, loss_scale=128.0)
            """,
            """\
            from tensorflow.keras import mixed_precision

            opt = mixed_precision.LossScaleOptimizer(opt)
            opt = mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=128.0)
            """,
            Safety.SAFE,
            message_contains="never took loss_scale",
        ),
    ),
)
