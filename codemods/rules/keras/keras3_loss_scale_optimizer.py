"""On the Keras 3 target, and for an unknown Keras: the final class to the shim's.

Keras 3 (TensorFlow 2.16, release notes 2.16.1) has a different class of the same name. It lacks
`get_scaled_loss`, `get_unscaled_gradients`, `loss_scale` and fixed scales. Its scale can reach 0 or
infinity. It checks the gradients of the first replica only, and does not advance `iterations` on a
skipped step. The shim's class subclasses it and keeps the methods and numbers of Keras 2. With
`--unsafe`, plain loops use the installed class itself (LS402).

A program is written for Keras 3's class, which then stays, if it calls `scale_loss` of an optimizer
that is certainly a loss-scale optimizer. On Keras 2, the public class cannot be subclassed from
TensorFlow 2.9 on; the shim's can.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.classes import is_written_for_keras_3
from ...resolve.mentions import Mention, mention_of
from ...resolve.program import Program
from ...rewrite.arguments import has_loss_scale
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import needs_shim
from ..rule import Example, Rule
from ..to_shim import to_shim
from ._class_uses import reports_of_class
from .keras3_plain_loop import plain_loops

__all__ = ["RULE"]

_SHIM_CLASS = (
    "the shim's class keeps the methods and numbers of Keras 2; the class of this name in Keras 3 "
    "does not"
)
_BASE = "from TensorFlow 2.9 on, the public class of Keras 2 cannot be subclassed"
_MEMBER = "from TensorFlow 2.9 on, the public class of Keras 2 lacks most attributes"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the shim's class on Keras 3, and says which places need it on Keras 2."""
    if is_written_for_keras_3(program) or program.cached(plain_loops) is not None:
        return
    for reference in references(program, "LS401"):
        call = program.call_of(reference.node)
        if reference.legacy.root == "tf_keras" or (call is not None and has_loss_scale(call)):
            continue  # LS304 repairs the latter
        if program.options.for_keras_3:
            yield to_shim(program, reference, _SHIM_CLASS)
            continue
        why = {Mention.BASE: _BASE, Mention.MEMBER: _MEMBER}.get(mention_of(program, reference))
        if why:
            yield needs_shim(reference, why)


def reports(program: Program) -> Iterator[Proposal]:
    """Reports uses of which the result depends on the exact class."""
    return reports_of_class(program, "LS401")


RULE = Rule(
    codes={"LS401": "tf.keras.mixed_precision.LossScaleOptimizer on Keras 3"},
    summary="the final Keras LossScaleOptimizer to the shim's, for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    reports=reports,
    examples=(
        Example(
            "not on Keras 2",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "on Keras 3",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
            """\
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            """,
            Safety.SAFE,
            keras=3,
            message_contains="keeps the methods",
        ),
    ),
)
