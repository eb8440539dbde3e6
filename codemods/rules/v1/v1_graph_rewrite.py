"""Moves the mixed-precision graph rewrite to `tf.compat.v1.mixed_precision`, or to the shim.

TensorFlow 2.6 removed `tf.train.experimental.enable_mixed_precision_graph_rewrite` and its opposite
(release notes 2.6.0); both are in `tf.compat.v1.mixed_precision`. From 2.11 on that function
refuses Keras optimizers. The shim's takes them on every version, so a program stays with
TensorFlow's only if each optimizer is seen to be one of `tf.compat.v1.train`. Calls whose result is
not used are kept, because they set an option of TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.classes import Kind, kind_of_optimizer
from ...resolve.mentions import Mention, mention_of
from ...resolve.places import Reference
from ...resolve.program import Program
from ...rewrite.arguments import matched
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import needs_shim
from ..rule import Example, Rule
from .v1_loss_scales import at_last_path

__all__ = ["RULE"]

_HARMLESS = (Mention.IMPORT, Mention.ALIAS)
_DISABLE = "disable_mixed_precision_graph_rewrite"
_KERAS = "TensorFlow 2.11 and later refuse Keras optimizers here"
_UNKNOWN = f"{_KERAS}, and the class of this optimizer cannot be determined statically"
_PASSED = f"{_KERAS}, and what calls this function cannot be seen"


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the last path where every optimizer is one of `tf.train`."""
    for reference in references(program, "LS205"):
        why = _why_shim(program, reference)
        if why:
            yield needs_shim(reference, why)
        else:
            yield from at_last_path(program, reference)


def _why_shim(program: Program, reference: Reference) -> str:
    """Why only the shim's function fits here; empty if TensorFlow's does."""
    if reference.legacy.name == _DISABLE or mention_of(program, reference) in _HARMLESS:
        return ""
    call = program.call_of(reference.node)
    if call is None:
        is_statement = isinstance(program.parents.get(reference.node), cst.Expr)
        return "" if is_statement else _PASSED
    found = matched(call, ("opt", "loss_scale"))
    optimizer = found.get("opt") if found is not None else None
    if optimizer is None:
        return _UNKNOWN
    kind = kind_of_optimizer(program, optimizer.value)
    return {Kind.V1: "", Kind.KERAS: _KERAS, Kind.UNKNOWN: _UNKNOWN}[kind]


RULE = Rule(
    codes={"LS205": "enable_ and disable_mixed_precision_graph_rewrite"},
    summary="the mixed-precision graph rewrite to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.6.0",
    check=check,
    examples=(
        Example(
            "not the quantization graph rewriter",
            """\
            from object_detection.builders import graph_rewriter_builder

            graph_rewriter_builder.build(rewrite, is_training=True)
            """,
        ),
        Example(
            "on the shim where it wraps a Keras optimizer",
            """\
            import tensorflow as tf

            opt = tf.keras.optimizers.Adam()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tf.keras.optimizers.Adam()
            opt = tfls.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            """,
            Safety.SAFE,
            message_contains="2.11",
        ),
    ),
)
