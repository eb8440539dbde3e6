"""Moves `tf.contrib.mixed_precision.LossScaleManager`, the abstract base, to the shim's class.

`tf.contrib` was removed in TensorFlow 2.0. Subclasses override `get_loss_scale` and
`update_loss_scale`, and the shim's optimizer calls them like the original.
"""

from __future__ import annotations

from ...model import Safety
from ..rule import Example, Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={"LS104": "tf.contrib.mixed_precision.LossScaleManager"},
    summary="contrib LossScaleManager to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
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
