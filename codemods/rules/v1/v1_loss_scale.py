"""Moves `LossScale`, the base class, from its experimental paths to `tf.compat.v1.mixed_precision`.

`tf.train.experimental.LossScale` and `tf.mixed_precision.experimental.LossScale` were removed in
TensorFlow 2.9; the class is in `tf.compat.v1.mixed_precision` since 2.4. Subclasses keep working
with `MixedPrecisionLossScaleOptimizer`; Keras optimizers have not accepted them since 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._paths import to_last_path

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the last path."""
    return to_last_path(program, "LS201")


RULE = Rule(
    codes={"LS201": "tf.train.experimental.LossScale"},
    summary="LossScale to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not the class of jmp",
            """\
            import jmp

            scale = jmp.LossScale(8)
            """,
        ),
        Example(
            "a base class",
            """\
            import tensorflow as tf

            class Mine(tf.train.experimental.LossScale):
                def __call__(self) -> tf.Tensor:
                    return self._scale
            """,
            """\
            import tensorflow as tf

            class Mine(tf.compat.v1.mixed_precision.LossScale):
                def __call__(self) -> tf.Tensor:
                    return self._scale
            """,
            Safety.SAFE,
        ),
        Example(
            "an annotation under TYPE_CHECKING",
            """\
            from typing import TYPE_CHECKING

            if TYPE_CHECKING:
                from tensorflow.python.training.experimental.loss_scale import LossScale

            def update(scale: 'LossScale'):
                scale.update([])
            """,
            """\
            from typing import TYPE_CHECKING

            if TYPE_CHECKING:
                from tf_lossscale.train.experimental import LossScale

            def update(scale: 'LossScale'):
                scale.update([])
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
