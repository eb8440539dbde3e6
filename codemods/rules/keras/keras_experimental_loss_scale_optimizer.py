"""Moves `tf.keras.mixed_precision.experimental.LossScaleOptimizer` to the final class.

TensorFlow 2.9 removed `tf.keras.mixed_precision.experimental` (release notes 2.9.0). The final
class (2.4) takes `dynamic`, `initial_scale` and `dynamic_growth_steps` instead of a loss scale. A
loss scale that cannot be determined statically is left to the shim's `from_loss_scale` at run time.
On Keras 3, the shim's final class keeps the methods and the numbers.

The final class is not a subclass of the experimental one. A program goes to it only if every place
is a constructor, an import, an annotation, or a class test whose result stays the same.
Subclasses, the class as a value and attributes of the class need the shim's experimental class,
and then all places go there.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...facts import SINGLE_FILE
from ...resolve.mentions import Mention
from ...resolve.places import Reference
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, Safety, When
from ._class_uses import reports_of_class
from ._constructors import final_class, plans
from .keras3_plain_loop import INSTALLED, plain_loops

__all__ = ["RULE"]

_TOGETHER = "rewritten with the constructor so that isinstance checks still match"
_WHY = {
    Mention.BASE: "a subclass inherits the experimental constructor and attributes",
    Mention.MEMBER: "the final class has other attributes",
    Mention.VALUE: "the class is passed on as a value, and its arguments are given elsewhere",
}
_ANNOTATED = "an annotation in a string or a comment names the class, where no edit reaches it"
_BOTH = "the program also has the final class, and this test tells the two apart"
_COMPILED = "compile may have made the optimizer of this test, which then has a different class"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The places that are neither constructors, imports, annotations, nor class tests."""
    for reference in program.references_to("LS301"):
        mention = program.mentions.of(reference)
        why = _WHY.get(mention, "")
        if mention is Mention.CALL:
            call = program.call_of(reference.node)
            assert call is not None
            why = plans(program, SINGLE_FILE)[call].problem
        if mention is Mention.IMPORT and _is_named_in_text(program, reference):
            why = _ANNOTATED
        if why:
            yield Obstacle.at(reference, why)
        elif mention is Mention.TEST:
            yield Obstacle.at(reference, _BOTH, When.IF_BOTH)
            if program.classes.tests_foreign(reference.node):
                yield Obstacle.at(reference, _COMPILED, When.IF_COMPILED)


def _is_named_in_text(program: Program, reference: Reference) -> bool:
    names = program.mentions.names_bound(reference)
    return any(program.mentions.is_in_annotation_text(name) for name in names)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the final class."""
    loops = plain_loops(program, options, decision)
    for reference in program.references_to("LS301"):
        made = _moved(program, reference, options, decision)
        if loops is not None:
            message = f"{made.message}; {INSTALLED}"
            made = made._replace(outcome=Safety.UNSAFE, message=message)
        yield made


def _moved(
    program: Program, reference: Reference, options: Options, decision: Decision
) -> Proposal:
    """The proposal for one place: the final class, and for a call the arguments that it needs."""
    path = final_class(options, decision)
    if plain_loops(program, options, decision) is not None:
        path = "tensorflow.keras.mixed_precision.LossScaleOptimizer"
    call = program.call_of(reference.node)
    if call is None:
        return Proposal.safe(reference, _TOGETHER, path=path)
    plan = plans(program, decision)[call]
    return Proposal.safe(
        reference, plan.message, path=plan.path or path, edits=plan.edits, removed=plan.removed
    )


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports uses whose result depends on the exact class."""
    yield from reports_of_class(program, "LS301", decision)


RULE = Rule(
    codes={"LS301": "tf.keras.mixed_precision.experimental.LossScaleOptimizer"},
    summary="experimental Keras LossScaleOptimizer to the final class",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    needs=needs,
    check=check,
    reports=reports,
    cases="""
        # not the final class
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=8)

        # dynamic loss scaling
          import tensorflow as tf

          opt = tf.keras.optimizers.Adam(1e-3)
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
        + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)

        # a fixed loss scale, and a class test
        - from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer
        + from tensorflow.keras.mixed_precision import LossScaleOptimizer

        - opt = LossScaleOptimizer(opt, loss_scale=128)
        + opt = LossScaleOptimizer(opt, dynamic=False, initial_scale=128)
          assert isinstance(opt, LossScaleOptimizer)

        # a loss scale with numbers of its own
        > --keras 3
        - import tensorflow as tf
        -
        - scale = tf.mixed_precision.experimental.DynamicLossScale(2**10, 2000)
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, scale)
        + import tf_lossscale as tfls
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt, initial_scale=2**10)

        # a subclass, which needs the shim
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - class Logged(tf.keras.mixed_precision.experimental.LossScaleOptimizer):
        + class Logged(tfls.keras.mixed_precision.experimental.LossScaleOptimizer):
              pass

        # at run time where a policy has the loss scale
        > safe: has no loss scale
        - from tensorflow.keras.mixed_precision import experimental as prec
        + from tf_lossscale.keras.mixed_precision import experimental as prec
        + import tf_lossscale as tfls

          scale = prec.global_policy().loss_scale
        - opt = prec.LossScaleOptimizer(opt, scale)
        + opt = tfls.keras.mixed_precision.from_loss_scale(opt, scale)
    """,
)
