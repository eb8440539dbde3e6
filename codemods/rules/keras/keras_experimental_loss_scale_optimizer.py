"""Moves `tf.keras.mixed_precision.experimental.LossScaleOptimizer` to the final class.

TensorFlow 2.9 removed `tf.keras.mixed_precision.experimental` (release notes 2.9.0). The final
class (2.4) takes `dynamic`, `initial_scale` and `dynamic_growth_steps` instead of a loss scale. A
loss scale that cannot be determined statically is left to the shim's `from_loss_scale` at run time.
On Keras 3, the shim's final class keeps the methods and the numbers.

The final class is not a subclass of the experimental one. A program goes to it only if every place
is a constructor, an import, an annotation, or a class test of which the result stays the same.
Subclasses, the class as a value and attributes of the class need the shim's experimental class,
and then all places go there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...resolve.classes import names_final_class, names_final_class_of_shim
from ...resolve.mentions import Mention, mention_of, named_in_text, names_bound
from ...resolve.places import Reference
from ..rule import Program, Proposal, Rule, Safety
from ._class_uses import missed_by_tests, reports_of_class, tests_compiled
from ._constructors import final_class, plan_constructors
from .keras3_plain_loop import INSTALLED, plain_loops

__all__ = ["RULE"]

_TOGETHER = "rewritten with the constructor so that isinstance checks still match"
_WHY = {
    Mention.BASE: "a subclass inherits the experimental constructor and attributes",
    Mention.MEMBER: "the final class has other attributes",
    Mention.VALUE: "the class is passed on as a value, and its arguments are given elsewhere",
}
_ANNOTATED = "an annotation in a string or a comment names the class, where no edit reaches it"
_BOTH = "the program also has the final class, which is another one"
_COMPILED = "compile may have made the optimizer of this test, with another class"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final class, or says which places need the shim's."""
    loops = program.cached(plain_loops)
    for reference in program.references_to("LS301"):
        why = _why_shim(program, reference)
        if why:
            yield Proposal.needs_shim(reference, why)
            continue
        made = _moved(program, reference)
        if loops is not None:
            message = f"{made.message}; {INSTALLED}"
            made = made._replace(outcome=Safety.UNSAFE, message=message)
        yield made


def _why_shim(program: Program, reference: Reference) -> str:
    """Why the final class does not fit this place; empty if it does."""
    mention = mention_of(program, reference)
    is_on_shim = reference.legacy.is_on_shim and not program.options.for_keras_3
    if is_on_shim and names_final_class_of_shim(program):
        return _BOTH  # an earlier run has sent them there together
    if mention is Mention.CALL:
        call = program.call_of(reference.node)
        assert call is not None
        return program.cached(plan_constructors)[call].problem
    if mention is Mention.IMPORT and any(
        named_in_text(program, name) for name in names_bound(program, reference)
    ):
        return _ANNOTATED
    if mention is Mention.TEST:
        if names_final_class(program):
            return _BOTH
        return _COMPILED if tests_compiled(program, reference.node) else ""
    return _WHY.get(mention, "")


def _moved(program: Program, reference: Reference) -> Proposal:
    path = final_class(program)
    if program.cached(plain_loops) is not None:
        path = "tensorflow.keras.mixed_precision.LossScaleOptimizer"
    call = program.call_of(reference.node)
    if call is None:
        return Proposal.safe(reference, _TOGETHER, path=path)
    plan = program.cached(plan_constructors)[call]
    return Proposal.safe(
        reference, plan.message, path=plan.path or path, edits=plan.edits, removed=plan.removed
    )


def reports(program: Program) -> Iterator[Proposal]:
    """Reports uses of which the result depends on the exact class."""
    yield from reports_of_class(program, "LS301")
    yield from missed_by_tests(program)


RULE = Rule(
    codes={"LS301": "tf.keras.mixed_precision.experimental.LossScaleOptimizer"},
    summary="experimental Keras LossScaleOptimizer to the final class",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    reports=reports,
    cases="""
        # not the final class
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=8)

        # at run time where a policy has the loss scale
        > manual: policy
        - from tensorflow.keras.mixed_precision import experimental as prec
        + from tf_lossscale.keras.mixed_precision import experimental as prec
        + import tf_lossscale as tfls

          scale = prec.global_policy().loss_scale
        - opt = prec.LossScaleOptimizer(opt, scale)
        + opt = tfls.keras.mixed_precision.from_loss_scale(opt, scale)
    """,
)
