"""Moves v1 loss scales, their optimizer and the graph rewrite to `tf.compat.v1.mixed_precision`.

TensorFlow 2.9 removed `LossScale`, `FixedLossScale` and `DynamicLossScale` from
`tf.train.experimental` and `tf.mixed_precision.experimental`. TensorFlow 1.14 and 1.15 alone have
`tf.train.experimental.MixedPrecisionLossScaleOptimizer`. The same classes are in
`tf.compat.v1.mixed_precision` since 2.4. A loss scale that is only passed to a Keras optimizer
becomes arguments of that optimizer instead (LS301). Subclasses of `LossScale` keep working with
`MixedPrecisionLossScaleOptimizer`; Keras optimizers have not accepted them since 2.4.

TensorFlow 2.6 removed `tf.train.experimental.enable_mixed_precision_graph_rewrite` and its opposite
(LS205). From 2.11 on, `tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite` refuses
Keras optimizers. The shim's takes them on every version, so a program goes to TensorFlow's only if
each optimizer is seen to be one of `tf.compat.v1.train`. Calls whose result is not used are kept,
because they set an option of TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...rewrite.arguments import matched
from ..keras._constructors import plans
from ..rule import Decision, Obstacle, Options, Program, Proposal, Reference, Rule

__all__ = ["RULE"]

_CODES = {
    "LS201": "tf.train.experimental.LossScale",
    "LS202": "tf.train.experimental.FixedLossScale",
    "LS203": "tf.train.experimental.DynamicLossScale",
    "LS204": "tf.train.experimental.MixedPrecisionLossScaleOptimizer",
    "LS205": "enable_ and disable_mixed_precision_graph_rewrite",
}
_REWRITE = "enable_mixed_precision_graph_rewrite"
_MESSAGE = "the same, in TensorFlow 2.4 and later"
_INLINED = "becomes arguments of the Keras optimizer"
_KERAS = "TensorFlow 2.11 and later refuse Keras optimizers here"
_UNKNOWN = f"{_KERAS}, and the class of this optimizer cannot be determined statically"
_PASSED = f"{_KERAS}, and what calls this function cannot be seen"


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The shim's graph rewrite takes every optimizer; TensorFlow's does not."""
    for reference in program.references_to("LS205"):
        why = _why_shim(program, reference) if reference.legacy.name == _REWRITE else ""
        if why:
            yield Obstacle.at(reference, why)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the last path, or the arguments of a Keras optimizer."""
    inlined = {
        reference for plan in plans(program, decision).values() for reference in plan.removed
    }
    for reference in program.references_to(*_CODES):
        if reference in inlined:
            yield Proposal.safe(reference, _INLINED)
            continue
        path = f"tensorflow.compat.v1.mixed_precision.{reference.legacy.name}"
        made = Proposal.moved(reference, path, _MESSAGE)
        if made is not None:
            yield made


def _why_shim(program: Program, reference: Reference) -> str:
    """Why only the shim's graph rewrite fits here; empty if TensorFlow's does."""
    call = program.call_of(reference.node)
    if call is None:
        is_statement = isinstance(program.parents.get(reference.node), cst.Expr)
        is_harmless = is_statement or program.mentions.of(reference).binds_name
        return "" if is_harmless else _PASSED
    found = matched(call, ("opt", "loss_scale"))
    if not found or "opt" not in found:
        return _UNKNOWN
    kind = program.classes.kind_of_optimizer(found["opt"].value)
    if kind.is_v1:
        return ""
    return _KERAS if kind.is_keras else _UNKNOWN


RULE = Rule(
    codes=_CODES,
    summary="v1 loss scales and the graph rewrite to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    needs=needs,
    check=check,
    cases="""
        # not at its last path
          from tensorflow.compat.v1.mixed_precision import FixedLossScale

          scale = FixedLossScale(8)

        # a fixed loss scale
          import tensorflow as tf

        - scale = tf.train.experimental.FixedLossScale(128)
        - opt = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt, scale)
        + scale = tf.compat.v1.mixed_precision.FixedLossScale(128)
        + opt = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(opt, scale)

        # a dynamic loss scale, imported by name
        - from tensorflow.mixed_precision.experimental import DynamicLossScale, FixedLossScale
        + from tensorflow.compat.v1.mixed_precision import DynamicLossScale, FixedLossScale

          scale = DynamicLossScale(2**15) if dynamic else FixedLossScale(128)

        # a class test
          import tensorflow as tf

        - assert isinstance(scale, tf.train.experimental.LossScale)
        + assert isinstance(scale, tf.compat.v1.mixed_precision.LossScale)

        # the graph rewrite of a v1 optimizer
          import tensorflow as tf

          opt = tf.compat.v1.train.AdamOptimizer(1e-3)
        - opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
        + opt = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt)

        # a base class, and a loss scale passed to the v1 optimizer
          import tensorflow as tf

        - class Mine(tf.train.experimental.LossScale):
        + class Mine(tf.compat.v1.mixed_precision.LossScale):
              def __call__(self) -> tf.Tensor:
                  return self._scale

        - train_op = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
        + train_op = tf.compat.v1.mixed_precision.MixedPrecisionLossScaleOptimizer(
              opt,  # float32 inside
        -     tf.train.experimental.DynamicLossScale(),
        +     tf.compat.v1.mixed_precision.DynamicLossScale(),
          ).minimize(loss)

        # on the shim where it wraps a Keras optimizer
        > safe: 2.11
          import tensorflow as tf
        + import tf_lossscale as tfls

          opt = tf.keras.optimizers.Adam()
        - opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
        + opt = tfls.train.experimental.enable_mixed_precision_graph_rewrite(opt)
    """,
)
