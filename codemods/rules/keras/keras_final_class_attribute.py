"""Reports attributes of the final class that Keras 2 lacks from TensorFlow 2.9 on.

Up to TensorFlow 2.8 the public class is that of the optimizers. From 2.9 on it only chooses one, so
`LossScaleOptimizer.from_config(config)` raises an AttributeError. The instances have all
attributes, and so has the shim's class.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...resolve.reaching_values import is_stored
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import OR_TO_SHIM, report
from ..rule import Example, Rule
from ._class_uses import OF_EVERY_CLASS
from ._keras3_loops import to_shim_class

__all__ = ["RULE"]

_FROM_CONFIG = (
    "from TensorFlow 2.9 on, this class of Keras 2 has no from_config: use "
    f"tf.keras.optimizers.deserialize{OR_TO_SHIM}"
)
_MISSING = (
    "from TensorFlow 2.9 on, this class of Keras 2 has no {}: read it from an optimizer"
    f"{OR_TO_SHIM}"
)

_KEPT = OF_EVERY_CLASS | {
    "dynamic",
    "dynamic_counter",
    "dynamic_growth_steps",
    "get_scaled_loss",
    "get_unscaled_gradients",
    "initial_scale",
    "inner_optimizer",
    "loss_scale",
}
"""What the class has in every TensorFlow from 2.9 to 2.21 with Keras 2."""


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such attribute."""
    if to_shim_class(program) or not program.options.for_keras_2:
        return
    for reference in references(program, "LS401"):
        parent = program.parents.get(reference.node)
        if not isinstance(parent, cst.Attribute) or parent.value is not reference.node:
            continue
        name = parent.attr.value
        if name in _KEPT or is_stored(program, parent):
            continue
        message = _FROM_CONFIG if name == "from_config" else _MISSING.format(name)
        yield report(parent, "LS307", f"LossScaleOptimizer.{name}", message)


RULE = Rule(
    codes={"LS307": "an attribute of the final class, which Keras 2 lacks from TensorFlow 2.9 on"},
    summary="class attributes that Keras 2 lacks from TensorFlow 2.9 on, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not of an optimizer, nor what every class has",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            copy = type(opt).from_config(opt.get_config())
            print(tf.keras.mixed_precision.LossScaleOptimizer.__name__)
            print(tf.keras.mixed_precision.LossScaleOptimizer.get_scaled_loss)
            """,
        ),
        Example(
            "from_config",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer.from_config(config)
            """,
            None,
            Safety.MANUAL,
            message_contains="deserialize",
        ),
        Example(
            "a method",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            LossScaleOptimizer.apply_gradients(opt, zip(gradients, variables))
            """,
            None,
            Safety.MANUAL,
            message_contains="read it from an optimizer",
        ),
        Example(
            "not on the shim's class, which has it everywhere",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer.from_config(config)
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer.from_config(config)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
