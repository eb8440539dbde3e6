"""Moves the mixed-precision graph rewrite to `tf.compat.v1.mixed_precision`.

TensorFlow 2.6 removed `tf.train.experimental.enable_mixed_precision_graph_rewrite` and its opposite
(release notes 2.6.0); both are in `tf.compat.v1.mixed_precision`. Calls whose result is not used
are kept, because they set a grappler option. From 2.11 on the function refuses Keras optimizers;
such calls are left to a person, because only the policy API works with those.

Evidence for safe: every value that the optimizer can have is made by a class of
`tf.compat.v1.train` or `tf.contrib`, or by a class of the program that subclasses one; or the
result is always used as such an optimizer (`minimize` or `apply_gradients` with `global_step`,
`compute_gradients`). If neither is seen, as for a parameter, the edit is unsafe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Safety, Target
from ...resolve.optimizer_kinds import Kind, kinds_of
from ...resolve.program import Program, Reference
from ...resolve.reaching_values import loads_of
from ...rewrite.arguments import matched
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import OR_TO_SHIM, manual
from ..rule import Example, Rule
from ._family import MOVES
from ._v1_evidence import is_used_as_v1

__all__ = ["RULE"]

_NAME = "enable_mixed_precision_graph_rewrite"
_KERAS = (
    "TensorFlow 2.11 and later refuse Keras optimizers here: use "
    'tf.keras.mixed_precision.set_global_policy("mixed_float16"), which changes the dtypes of '
    f"layers, and wrap the optimizer{OR_TO_SHIM}"
)
_UNKNOWN = (
    "TensorFlow 2.11 and later refuse Keras optimizers here, and the class of this optimizer "
    "cannot be determined statically: use --unsafe if it is always one of tf.compat.v1.train"
    f"{OR_TO_SHIM}"
)


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the last path: safe for v1 optimizers, manual for Keras, otherwise unsafe."""
    for reference in references(program, "LS205"):
        kind = _kind(program, reference)
        if kind is Kind.KERAS:
            yield manual(reference, _KERAS)
            continue
        for proposal in MOVES.proposals(program, reference):
            if kind is Kind.V1:
                yield proposal
            else:
                yield proposal._replace(outcome=Safety.UNSAFE, message=_UNKNOWN)


def _kind(program: Program, reference: Reference) -> Kind:
    """The kind of the optimizers that this place wraps; V1 for a place that wraps none."""
    if reference.legacy.name != _NAME or isinstance(reference.node, cst.ImportAlias):
        return Kind.V1
    calls = _calls(program, reference)
    kinds = {_wrapped(program, call) for call in calls} if calls is not None else {Kind.UNKNOWN}
    for kind in (Kind.KERAS, Kind.UNKNOWN):
        if kind in kinds:
            return kind
    return Kind.V1


def _wrapped(program: Program, call: cst.Call) -> Kind:
    """The kind of the optimizer that `call` wraps; KERAS if that is one of several."""
    found = matched(call, ("opt", "loss_scale"))
    optimizer = found.get("opt") if found is not None else None
    kinds = kinds_of(program, optimizer.value) if optimizer is not None else {Kind.UNKNOWN}
    if Kind.KERAS in kinds:
        return Kind.KERAS
    is_v1 = kinds == {Kind.V1} or is_used_as_v1(program, call)
    return Kind.V1 if is_v1 else Kind.UNKNOWN


def _calls(program: Program, reference: Reference) -> Optional[list[cst.Call]]:
    """The calls of the function from this place; None if it is passed on.

    `wrap = rewrite if fp16 else keep` is called by that name.
    """
    call = program.call_of(reference.node)
    if call is not None:
        return [call]
    value, parent = reference.node, program.parents.get(reference.node)
    while isinstance(parent, cst.IfExp) and parent.test is not value:
        value, parent = parent, program.parents.get(parent)
    if not isinstance(parent, cst.Assign) or reference.scope.kind == "class":
        return [] if isinstance(parent, cst.Expr) else None
    calls = []
    for one in parent.targets:
        if not isinstance(one.target, cst.Name):
            return None
        owner = reference.scope.owner(one.target.value)
        for name in loads_of(program, owner, one.target.value) if owner is not None else ():
            if name in program.by_node:
                continue  # a place of its own
            call = program.call_of(name)
            if call is None:
                return None
            calls.append(call)
    return calls


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
            "not a string with its name",
            """\
            import tensorflow as tf

            if flags.fp16_implementation == "enable_mixed_precision_graph_rewrite":
                setup()
            """,
        ),
        Example(
            "left where it wraps a Keras optimizer",
            """\
            import tensorflow as tf

            opt = tf.keras.optimizers.Adam()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            """,
            None,
            Safety.MANUAL,
            message_contains="2.11",
        ),
        Example(
            "left where one of several optimizers is Keras's",
            """\
            import tensorflow as tf

            OPTIMIZERS = {"sgd": tf.compat.v1.train.GradientDescentOptimizer}

            def wrap(name):
                opt = OPTIMIZERS[name](0.1) if name in OPTIMIZERS else tf.keras.optimizers.SGD()
                return tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            """,
            None,
            Safety.MANUAL,
            message_contains="2.11",
        ),
        Example(
            "unsafe where the optimizer is a parameter",
            """\
            import tensorflow as tf

            def wrap(optimizer):
                return tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)
            """,
            None,
            Safety.UNSAFE,
            message_contains="cannot be determined",
        ),
        Example(
            "unsafe where only one path uses it as an optimizer of tf.train",
            """\
            import tensorflow as tf

            def train(optimizer, loss, step):
                optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)
                if step is not None:
                    return optimizer.minimize(loss, global_step=step)
                return optimizer
            """,
            None,
            Safety.UNSAFE,
        ),
        Example(
            "an optimizer that is used as one of tf.train",
            """\
            import tensorflow as tf

            def train(opt, loss, step, fp16):
                if fp16:
                    opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
                return opt.minimize(loss, global_step=step)
            """,
            """\
            import tensorflow as tf

            def train(opt, loss, step, fp16):
                if fp16:
                    opt = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt)
                return opt.minimize(loss, global_step=step)
            """,
            Safety.SAFE,
        ),
        Example(
            "a v1 optimizer",
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt, 'dynamic')
            """,
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            opt = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt, 'dynamic')
            """,
            Safety.SAFE,
        ),
        Example(
            "called only for its side effect",
            """\
            import tensorflow as tf

            class LAMBOptimizer(tf.compat.v1.train.Optimizer):
                pass

            dummy_op = tf.train.experimental.enable_mixed_precision_graph_rewrite(
                LAMBOptimizer(learning_rate=0.0), tf.train.experimental.FixedLossScale(1)
            )
            """,
            """\
            import tensorflow as tf

            class LAMBOptimizer(tf.compat.v1.train.Optimizer):
                pass

            dummy_op = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(
                LAMBOptimizer(learning_rate=0.0), tf.compat.v1.mixed_precision.FixedLossScale(1)
            )
            """,
            Safety.SAFE,
        ),
        Example(
            "a Keras optimizer, to the shim",
            """\
            import tensorflow as tf

            sgd = tf.keras.optimizers.SGD()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(sgd)
            tf.train.experimental.disable_mixed_precision_graph_rewrite()
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            sgd = tf.keras.optimizers.SGD()
            opt = tfls.train.experimental.enable_mixed_precision_graph_rewrite(sgd)
            tfls.train.experimental.disable_mixed_precision_graph_rewrite()
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
