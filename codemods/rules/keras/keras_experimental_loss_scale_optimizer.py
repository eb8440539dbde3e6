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

from ..rule import Decision, Mention, Obstacle, Options, Program, Proposal, Rule, When
from ._final_class import FinalClass

__all__ = ["RULE"]

_INSTALLED = "tensorflow.keras.mixed_precision.LossScaleOptimizer"
_TOGETHER = "rewritten with the constructor so that isinstance checks still match"
_WHY = {
    Mention.BASE: "a subclass inherits the experimental constructor and attributes",
    Mention.MEMBER: "the final class has other attributes",
    Mention.VALUE: "the class is passed on as a value, and its arguments are given elsewhere",
}
_ANNOTATED = (
    "a comment, `__all__`, or a text that is evaluated, such as an annotation in a string, names "
    "the class, where no edit reaches it"
)
_BOTH = "the program also has the final class, and this test tells the two apart"
_COMPILED = "compile may have made the optimizer of this test, which then has a different class"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The places that are neither constructors, imports, annotations, nor class tests."""
    final = FinalClass(program, options)
    for reference in program.references_to("LS301"):
        mention = program.mentions.of(reference)
        why = _WHY.get(mention, "")
        if mention is Mention.CALL:
            call = program.call_of(reference.node)
            assert call is not None
            why = final.plan(call).problem
        names = program.mentions.names_bound(reference) if mention is Mention.IMPORT else ()
        if any(map(program.evaluated_texts.show, names)):
            why = _ANNOTATED
        if why:
            yield Obstacle.at(reference, why)
        elif mention is Mention.TEST:
            yield Obstacle.at(reference, _BOTH, When.IF_BOTH)
            if program.classes.tests_foreign(reference.node):
                yield Obstacle.at(reference, _COMPILED, When.IF_COMPILED)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the final class, and for a call the arguments that it needs."""
    final = FinalClass(program, options, decision)
    path = _INSTALLED if final.caveat else final.path
    for reference in program.references_to("LS301"):
        call = program.call_of(reference.node)
        made = Proposal.safe(reference, _TOGETHER, path=path)
        if call is not None:
            plan = final.plan(call)
            new, edits = plan.path or path, plan.edits
            made = Proposal.safe(
                reference, plan.message, path=new, edits=edits, removed=plan.removed
            )
        yield made.as_unsafe(f"{made.message}; {final.caveat}") if final.caveat else made


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports uses whose result depends on the exact class."""
    yield from FinalClass(program, options, decision).uses_of_exact_class("LS301")


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
