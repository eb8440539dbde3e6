"""Moves the final class to the shim's for Keras 3, and repairs calls of it with `loss_scale`.

Keras 3 (TensorFlow 2.16, release notes 2.16.1) has a different class of the same name. It lacks
`get_scaled_loss`, `get_unscaled_gradients`, `loss_scale` and fixed scales. Its scale can reach 0 or
infinity. It checks the gradients of the first replica only, and does not advance `iterations` on a
skipped step. The shim's class subclasses it and keeps the methods and numbers of Keras 2. With
`--unsafe`, plain loops use the installed class itself (LS402).

A program is written for Keras 3's class, which then stays, if it calls `scale_loss` of an optimizer
that is certainly a loss-scale optimizer. On Keras 2, the public class cannot be subclassed from
TensorFlow 2.9 on; the shim's can.

`tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")` is what a search and
replace of `experimental.` leaves behind (LS304). No TensorFlow accepts it: a TypeError up to 2.15,
a ValueError in Keras 3, where `LossScaleOptimizer(opt, "dynamic")` even constructs and fails at the
first step.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.classes import is_written_for_keras_3
from ...resolve.mentions import Mention, mention_of
from ...resolve.places import Reference
from ...rewrite.arguments import has_loss_scale
from ..rule import Program, Proposal, Rule
from ..to_shim import to_shim
from ._class_uses import reports_of_class
from ._constructors import final_class, plan
from .keras3_plain_loop import plain_loops

__all__ = ["RULE"]

_NAME = "LossScaleOptimizer"
_BUG = "the final class never took loss_scale, in any TensorFlow"
_WRITE = "write LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)"
_SHIM_CLASS = (
    "the shim's class keeps the methods and numbers of Keras 2; the class of this name in Keras 3 "
    "does not"
)
_BASE = "from TensorFlow 2.9 on, the public class of Keras 2 cannot be subclassed"
_MEMBER = "from TensorFlow 2.9 on, the public class of Keras 2 lacks most attributes"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the shim's class on Keras 3, and says which places need it on Keras 2."""
    if program.cached(is_written_for_keras_3) or program.cached(plain_loops) is not None:
        return
    for reference in program.references_to("LS401"):
        call = program.call_of(reference.node)
        if reference.legacy.root == "tf_keras" or (call is not None and has_loss_scale(call)):
            continue  # the latter is repaired below
        if program.options.for_keras_3:
            yield to_shim(program, reference, _SHIM_CLASS)
            continue
        why = {Mention.BASE: _BASE, Mention.MEMBER: _MEMBER}.get(mention_of(program, reference))
        if why:
            yield Proposal.needs_shim(reference, why)


def reports(program: Program) -> Iterator[Proposal]:
    """Repairs calls with a loss scale; reports uses that depend on the exact class."""
    for reference in program.references_to("LS401"):
        call = program.call_of(reference.node)
        if call is not None and has_loss_scale(call):
            yield _repaired(program, reference, call)
    for node, name in program.migrated:
        call = program.call_of(node)
        if name == _NAME and call is not None and has_loss_scale(call):
            yield Proposal.report(node, "LS304", _NAME, f"{_BUG}: {_WRITE}")
    yield from reports_of_class(program, "LS401")


def _repaired(program: Program, reference: Reference, call: cst.Call) -> Proposal:
    """The call with the final class's own arguments; `--to shim` edits no arguments."""
    made = plan(program, call)
    if made.problem or program.options.to_shim:
        return Proposal.report(reference.node, "LS304", _NAME, f"{_BUG}: {_WRITE}")
    path = made.path or final_class(program)
    if reference.legacy.root == "tf_keras" and not made.path:
        path = ""
    message = f"{_BUG}; {made.message}"
    repaired = Proposal.safe(reference, message, path=path, edits=made.edits, removed=made.removed)
    return repaired._replace(code="LS304")


RULE = Rule(
    codes={
        "LS304": "the final LossScaleOptimizer with loss_scale=",
        "LS401": "tf.keras.mixed_precision.LossScaleOptimizer on Keras 3",
    },
    summary="the final Keras LossScaleOptimizer to the shim's, for Keras 3; loss_scale= repaired",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
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
    """,
)
