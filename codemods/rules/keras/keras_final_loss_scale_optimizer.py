"""Moves the final class to the shim's for Keras 3, and repairs calls of it with `loss_scale`.

Keras 3 (TensorFlow 2.16, release notes 2.16.1) has a different class of the same name. It lacks
`get_scaled_loss`, `get_unscaled_gradients`, `loss_scale` and fixed scales. Its scale can reach 0 or
infinity. It checks the gradients of the first replica only, and does not advance `iterations` on a
skipped step. The shim's class subclasses it and keeps the methods and numbers of Keras 2. With
`--unsafe`, plain loops use the installed class itself (LS402).

A program is written for Keras 3's class, which then stays, if it calls `scale_loss` of an optimizer
that is certainly a loss-scale optimizer. If another file of it calls `get_scaled_loss` instead, it
needs the shim's class, which has both. On Keras 2, the public class cannot be subclassed from
TensorFlow 2.9 on; the shim's can.

`tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")` is what a search and
replace of `experimental.` leaves behind (LS304). No TensorFlow accepts it: a TypeError up to 2.15,
a ValueError in Keras 3, where `LossScaleOptimizer(opt, "dynamic")` even constructs and fails at the
first step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..rule import Decision, Mention, Obstacle, Options, Program, Proposal, Rule, When
from ._final_class import FinalClass
from ._repairs import repairs

__all__ = ["RULE"]

_NAME = "LossScaleOptimizer"
_SHIM_CLASS = (
    "the shim's class keeps the methods and numbers of Keras 2; the class of this name in Keras 3 "
    "does not"
)
_BACKEND = (
    "the shim's class needs the TensorFlow backend, but this file imports only keras, which can "
    "run on a different one"
)
_PRIVATE = "the module of this path is private, and is in no current TensorFlow"
_BASE = "from TensorFlow 2.9 on, the public class of Keras 2 cannot be subclassed"
_MEMBER = "from TensorFlow 2.9 on, the public class of Keras 2 lacks most attributes"
_ON_SHIM = "the program uses the shim's final class already"
_SCALING = ("get_scaled_loss", "get_unscaled_gradients")


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """On Keras 2, subclasses and attributes of the class need the shim's."""
    if options.for_keras_3:
        return
    for reference in FinalClass(program, options).moving():
        why = {Mention.BASE: _BASE, Mention.MEMBER: _MEMBER}.get(program.mentions.of(reference))
        if why:
            yield Obstacle.at(reference, why, When.IF_NOT_FOR_KERAS_3)
    for node, name in program.migrated:
        if name == _NAME:  # an earlier run has sent the classes of the program there together
            when = When.IF_NOT_FOR_KERAS_3
            yield Obstacle.of_optimizers(node, "LS401", _NAME, _ON_SHIM, when)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the shim's class on Keras 3, and the public path of the class on Keras 2."""
    final = FinalClass(program, options, decision)
    if decision.is_for_keras_3 or final.caveat:
        return
    for reference in final.moving():
        legacy = reference.legacy
        is_of_keras = legacy.root == "keras" and not legacy.is_private
        if not options.for_keras_3:
            if legacy.is_private:
                made = Proposal.moved(reference, final.path, _PRIVATE)
                assert made is not None
                yield made
        elif is_of_keras and _may_run_elsewhere(program):
            yield Proposal.to_shim(reference, "").as_unsafe(_BACKEND)
        else:
            yield Proposal.to_shim(reference, _SHIM_CLASS)


def _may_run_elsewhere(program: Program) -> bool:
    """Whether a file imports only `keras`, and nothing shows that it is Keras 2's."""
    if any(program.attributes(name) for name in _SCALING):
        return False
    return not program.imports_tensorflow()


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Repairs calls with a loss scale; reports uses that depend on the exact class."""
    final = FinalClass(program, options, decision)
    yield from repairs(final)
    yield from final.uses_of_exact_class("LS401")


RULE = Rule(
    codes={
        "LS304": "the final LossScaleOptimizer with loss_scale=",
        "LS401": "tf.keras.mixed_precision.LossScaleOptimizer on Keras 3",
    },
    summary="the final Keras LossScaleOptimizer to the shim's, for Keras 3; loss_scale= repaired",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    needs=needs,
    check=check,
    reports=reports,
    cases="""
        # not on Keras 2
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)

        # on Keras 3
        > --keras 3: keeps the methods
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)

        # dynamic, and a number
        > safe: never took loss_scale
          from tensorflow.keras import mixed_precision

        - opt = mixed_precision.LossScaleOptimizer(opt, loss_scale='dynamic')
        - opt = mixed_precision.LossScaleOptimizer(opt, loss_scale=128.0)
        + opt = mixed_precision.LossScaleOptimizer(opt)
        + opt = mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=128.0)

        # a loss scale, for the shim
        > manual, --to shim
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")

        # on Keras 3, with an import and a class test
        > --keras 3
        - from tensorflow.keras.mixed_precision import LossScaleOptimizer
        + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

          if not isinstance(opt, LossScaleOptimizer):
              opt = LossScaleOptimizer(opt, dynamic=False, initial_scale=128)
    """,
)
