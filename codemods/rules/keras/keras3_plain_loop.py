"""With `--unsafe` on the Keras 3 target, writes plain training loops for Keras 3's own class.

Keras 3 (TensorFlow 2.16) has `scale_loss` and unscales in `apply_gradients`; Keras 2 had
`get_scaled_loss` and `get_unscaled_gradients`. The result is the same only if the gradients go
straight from the tape to `apply_gradients`; a file with any other loop stays on the shim's class.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._keras3_loops import INSTALLED, plain_loops

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes Keras 3's methods, where the whole program is plain."""
    loops = program.cached(plain_loops)
    if loops is None:
        return
    for attribute, edits in loops.edits.items():
        yield Proposal(
            node=attribute,
            code="LS402",
            symbol=f"LossScaleOptimizer.{attribute.attr.value}",
            outcome=Safety.UNSAFE,
            message=f"Keras 3 scales with scale_loss and unscales in apply_gradients; {INSTALLED}",
            edits=edits,
            group=KERAS_OPTIMIZERS,
        )


RULE = Rule(
    codes={"LS402": "get_scaled_loss and get_unscaled_gradients on Keras 3"},
    summary="plain loops for Keras 3's own LossScaleOptimizer (--unsafe)",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not without --unsafe",
            """\
            import tensorflow as tf

            def step(opt, tape, loss, variables):
                loss = opt.get_scaled_loss(loss)
                grads = opt.get_unscaled_gradients(tape.gradient(loss, variables))
                opt.apply_gradients(zip(grads, variables))
            """,
            keras=3,
        ),
        Example(
            "not in a loop whose gradients are not scaled",
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            loss = opt.get_scaled_loss(loss)
            grads = opt.get_unscaled_gradients(tape.gradient(loss, variables))
            opt.apply_gradients(zip(grads, variables))
            opt.apply_gradients(zip(others, variables))
            """,
            keras=3,
            unsafe=True,
        ),
        Example(
            "a loop that scales a function stays on the shim's class",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            scaled_loss = opt.get_scaled_loss(lambda: model(x))
            with tf.GradientTape() as tape:
                loss = scaled_loss()
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
            opt.apply_gradients(zip(grads, model.variables))
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            scaled_loss = opt.get_scaled_loss(lambda: model(x))
            with tf.GradientTape() as tape:
                loss = scaled_loss()
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
            opt.apply_gradients(zip(grads, model.variables))
            """,
            Safety.SAFE,
            keras=3,
            unsafe=True,
        ),
        Example(
            "a clipped loop stays on the shim's class",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(model(x))
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
            grads, _ = tf.clip_by_global_norm(grads, 1.0)
            opt.apply_gradients(zip(grads, model.variables))
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(model(x))
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
            grads, _ = tf.clip_by_global_norm(grads, 1.0)
            opt.apply_gradients(zip(grads, model.variables))
            """,
            Safety.SAFE,
            keras=3,
            unsafe=True,
        ),
        Example(
            "a plain loop",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(model(x))
            grads = tape.gradient(loss, model.variables)
            grads = opt.get_unscaled_gradients(grads)
            opt.apply_gradients(zip(grads, model.variables))
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.scale_loss(model(x))
            grads = tape.gradient(loss, model.variables)
            opt.apply_gradients(zip(grads, model.variables))
            """,
            Safety.UNSAFE,
            keras=3,
            unsafe=True,
            message_contains="floor",
        ),
    ),
)
