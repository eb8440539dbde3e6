"""Moves `tf.contrib.mixed_precision.LossScaleManager`, the abstract base, to the shim's class.

`tf.contrib` was removed in TensorFlow 2.0. Subclasses override `get_loss_scale` and
`update_loss_scale`, and the shim's optimizer calls them like TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._twins import to_twin

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the similar class of TensorFlow 2, with `--unsafe`."""
    return to_twin(program, "LS104")


RULE = Rule(
    codes={"LS104": "tf.contrib.mixed_precision.LossScaleManager"},
    summary="contrib LossScaleManager to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not another module with the same name",
            """\
            from mindspore.train import LossScaleManager

            class Mine(LossScaleManager):
                pass
            """,
        ),
        Example(
            "not a relative import of the project's own class",
            """\
            from .managers import LossScaleManagers

            manager = LossScaleManagers()
            """,
        ),
        Example(
            "a subclass",
            """\
            import tensorflow as tf

            class Halving(tf.contrib.mixed_precision.LossScaleManager):
                def get_loss_scale(self):
                    return self._scale
            """,
            """\
            import tf_lossscale as tfls

            class Halving(tfls.contrib.mixed_precision.LossScaleManager):
                def get_loss_scale(self):
                    return self._scale
            """,
            Safety.SAFE,
        ),
    ),
)
