"""Reports subclasses of the final class that the target cannot run as they are.

From TensorFlow 2.9 on, the public class of Keras 2 cannot be subclassed: the constructor of the
subclass raises a TypeError ("takes no arguments"). On Keras 3, `fit` does not make a step from the
same methods: it never calls `get_scaled_loss` or `get_unscaled_gradients`.

A subclass moves to the shim's class safely only if its body shows that it overrides no method of a
step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import manual
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._keras3_loops import to_shim_class
from ._optimizer_type import calls_scale_loss
from ._subclasses import overridden_by

__all__ = ["RULE"]

_KERAS_2 = (
    "from TensorFlow 2.9 on, this class of Keras 2 cannot be subclassed (TypeError: takes no "
    "arguments): subclass tf_lossscale.keras.mixed_precision.LossScaleOptimizer"
)
_KERAS_3 = (
    "this subclass overrides {}, but fit on Keras 3 makes a step from other methods, without "
    "get_scaled_loss and get_unscaled_gradients: port the subclass to "
    "tf_lossscale.keras.mixed_precision.LossScaleOptimizer by hand"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each subclass that cannot run."""
    moves = to_shim_class(program)
    if moves and calls_scale_loss(program):
        return
    for reference in references(program, "LS401"):
        guidance = _guidance(program, reference, moves)
        if guidance is not None:
            group = KERAS_OPTIMIZERS if moves else None
            found = manual(reference, guidance, group=group)
            yield found._replace(code="LS405", blocks=moves)


def _guidance(program: Program, reference: Reference, moves: bool) -> Optional[str]:
    names = overridden_by(program, reference.node)
    if names is None:
        return None
    if reference.legacy.root == "tf_keras":
        return _KERAS_2
    if not moves:
        return _KERAS_2 if program.options.for_keras_2 else None
    return _KERAS_3.format(", ".join(names)) if names else None


RULE = Rule(
    codes={"LS405": "a subclass of tf.keras.mixed_precision.LossScaleOptimizer"},
    summary="subclasses of the final class that the target cannot run, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not a subclass of the shim's class, which runs everywhere",
            """\
            import tf_lossscale as tfls

            class Logged(tfls.keras.mixed_precision.LossScaleOptimizer):
                def apply_gradients(self, grads_and_vars, **kwargs):
                    return super().apply_gradients(grads_and_vars, **kwargs)
            """,
            keras=3,
        ),
        Example(
            "on Keras 2 from TensorFlow 2.9 on",
            """\
            import tensorflow as tf

            class Named(tf.keras.mixed_precision.LossScaleOptimizer):
                title = "scaled"
            """,
            None,
            Safety.MANUAL,
            message_contains="takes no arguments",
        ),
        Example(
            "with a step of its own, on Keras 3",
            """\
            import tensorflow as tf

            class Logged(tf.keras.mixed_precision.LossScaleOptimizer):
                def apply_gradients(self, grads_and_vars, **kwargs):
                    print("step")
                    return super().apply_gradients(grads_and_vars, **kwargs)

            opt = Logged(tf.keras.optimizers.SGD())
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="overrides apply_gradients",
        ),
        Example(
            "with methods that fit does not call on Keras 3, for the shim",
            """\
            import tensorflow as tf

            class Halved(tf.keras.mixed_precision.LossScaleOptimizer):
                def get_scaled_loss(self, loss):
                    return super().get_scaled_loss(loss / 2)
            """,
            None,
            Safety.MANUAL,
            target=Target.SHIM,
            message_contains="get_scaled_loss",
        ),
        Example(
            "a subclass that overrides no method of a step",
            """\
            import tensorflow as tf

            class Named(tf.keras.mixed_precision.LossScaleOptimizer):
                title = "scaled"
            """,
            """\
            import tf_lossscale as tfls

            class Named(tfls.keras.mixed_precision.LossScaleOptimizer):
                title = "scaled"
            """,
            Safety.SAFE,
            keras=3,
        ),
    ),
)
