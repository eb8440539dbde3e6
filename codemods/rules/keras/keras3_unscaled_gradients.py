"""On the Keras 3 target, reports gradients that are applied without having been scaled.

Keras 2's loss-scale optimizer applies gradients as they are. Keras 3's (TensorFlow 2.16) divides
them by the scale first, so the same loop hardly trains. The shim's class raises a RuntimeError,
because it cannot know which of the two is meant. A person must decide whether the scaling was
forgotten or is not wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.classes import is_loss_scale_optimizer, is_written_for_keras_3
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_SCALING = ("get_scaled_loss", "get_unscaled_gradients")
_MESSAGE = (
    "these gradients are not scaled, but Keras 3 divides them by the scale: scale the loss "
    "(get_scaled_loss, then get_unscaled_gradients), or use optimizer.inner_optimizer"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each call on a certain loss-scale optimizer, in a program without scaling."""
    if not program.options.for_keras_3 and program.options.target is not Target.SHIM:
        return
    if any(program.attributes(name) for name in _SCALING) or is_written_for_keras_3(program):
        return
    for attribute in program.attributes("apply_gradients"):
        call = program.call_of(attribute)
        if call is not None and is_loss_scale_optimizer(program, attribute.value):
            yield report(call, "LS403", "LossScaleOptimizer.apply_gradients", _MESSAGE)


RULE = Rule(
    codes={"LS403": "apply_gradients without scaling on Keras 3"},
    summary="gradients that are applied without having been scaled, reported for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not on Keras 2, which applies them as they are",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
            """,
        ),
        Example(
            "never scaled, beside a flag called scale_loss",
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            loss = loss * 2.0 if FLAGS.scale_loss else loss
            opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="inner_optimizer",
        ),
        Example(
            "not an optimizer without loss scaling",
            """\
            from tensorflow.keras.mixed_precision import Policy

            opt = SGD()
            opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
            """,
            keras=3,
        ),
    ),
)
