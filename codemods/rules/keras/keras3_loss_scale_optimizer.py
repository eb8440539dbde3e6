"""On the Keras 3 target, moves the final class to the shim's.

Keras 3 (TensorFlow 2.16, release notes 2.16.1) has another class of the same name. It lacks
`get_scaled_loss`, `get_unscaled_gradients`, `loss_scale` and fixed scales; its scale can reach 0 or
infinity; it checks the gradients of the first replica only, and does not advance `iterations` on a
skipped step. The shim's class subclasses it and keeps the methods and numbers of Keras 2. With
`--unsafe`, plain loops use the installed class itself: `scale_loss`, and no unscaling, because
`apply_gradients` unscales.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import safe
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._keras3_loops import final_class, plain_loops

__all__ = ["RULE"]

_MESSAGE = (
    "the shim's class keeps the methods and numbers of Keras 2; the class of this name in Keras 3 "
    "does not"
)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the shim's class, unless the program is written for Keras 3's."""
    if program.options.keras != 3 or program.attributes("scale_loss"):
        return
    if program.cached(plain_loops) is not None:
        return  # the installed class stays; the loops change
    for reference in references(program, "LS401"):
        if reference.legacy.root != "tf_keras" and not _repaired_elsewhere(program, reference):
            path = final_class(program)
            yield safe(reference, _MESSAGE, path=path, group=KERAS_OPTIMIZERS)


def _repaired_elsewhere(program: Program, reference: Reference) -> bool:
    call = program.call_of(reference.node)
    return call is not None and any(
        isinstance(argument.keyword, cst.Name) and argument.keyword.value == "loss_scale"
        for argument in call.args
    )


RULE = Rule(
    codes={"LS401": "tf.keras.mixed_precision.LossScaleOptimizer on Keras 3"},
    summary="the final Keras LossScaleOptimizer to the shim's, for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not on Keras 2",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "not tf_keras, which stays Keras 2",
            """\
            from tf_keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            """,
            keras=3,
        ),
        Example(
            "not a loop written for Keras 3",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.scale_loss(loss_of(model(x), y))
            """,
            keras=3,
        ),
        Example(
            "a loop with clipping stays as it is on the shim's class",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(loss_of(model(x), y))
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
            grads, _ = tf.clip_by_global_norm(grads, 1.0)
            opt.apply_gradients(zip(grads, model.trainable_variables))
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(loss_of(model(x), y))
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.trainable_variables))
            grads, _ = tf.clip_by_global_norm(grads, 1.0)
            opt.apply_gradients(zip(grads, model.trainable_variables))
            """,
            Safety.SAFE,
            keras=3,
        ),
    ),
)
