"""Reports `tf.gradients` beside a loss-scale optimizer of graph mode.

The contrib optimizer and the v1 optimizer scale the loss in `compute_gradients` only. Gradients
from `tf.gradients` are not scaled, but `apply_gradients` accepts them, so the program trains
without loss scaling, before and after a migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...resolve.legacy_symbols import root_of
from ..rule import Decision, Options, Program, Proposal, Rule

__all__ = ["RULE"]

_MESSAGE = (
    "tf.gradients bypasses the loss-scale optimizer, so the loss is not scaled: use "
    "optimizer.compute_gradients(loss, variables)"
)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports each call in a function that applies gradients by such an optimizer."""
    functions = {
        _function(program, attribute)
        for attribute in program.attributes("apply_gradients")
        if _scales(program, attribute.value)
    }
    for attribute in program.attributes("gradients") if functions else ():
        roots = [root_of(path) for path in program.paths_of(attribute)]
        is_ours = bool(roots) and all(root and root.rest == "gradients" for root in roots)
        is_called = program.call_of(attribute) is not None
        if is_ours and is_called and _function(program, attribute) in functions:
            yield Proposal.report(attribute, "LS907", "tf.gradients", _MESSAGE)


def _function(program: Program, node: cst.CSTNode) -> Optional[cst.FunctionDef]:
    return next((up for up in program.ancestors(node) if isinstance(up, cst.FunctionDef)), None)


def _scales(program: Program, node: cst.CSTNode) -> bool:
    """Whether a value of `node` is made by such an optimizer class."""
    calls = [source for source in program.values.sources_of(node) if isinstance(source, cst.Call)]
    made = [program.by_node.get(call.func) for call in calls]
    return any(reference is not None and reference.legacy.is_graph_optimizer for reference in made)


RULE = Rule(
    codes={"LS907": "tf.gradients beside a loss-scale optimizer"},
    summary="gradients that are never scaled, reported",
    upstream="https://github.com/tensorflow/tensorflow/pull/23244",
    reports=reports,
    cases="""
        # not in another function
          import tensorflow.compat.v1 as tf

          def train(opt, loss):
              opt = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(opt, 8)
              return opt.apply_gradients(opt.compute_gradients(loss))

          def penalty(loss, x):
              return tf.gradients(loss, x)

        # gradients computed without the optimizer
        > manual: not scaled
          import tensorflow.compat.v1 as tf

          def train(opt, loss, variables):
              opt = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(opt, 8)
              gradients = tf.gradients(loss, variables)
              return opt.apply_gradients(list(zip(gradients, variables)))

        # gradients that are clipped on the way
        > manual
          import tensorflow.compat.v1 as tf
        + import tf_lossscale as tfls

          def train(opt, loss, variables):
        -     opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
        +     opt = tfls.compat.v1.train.experimental.enable_mixed_precision_graph_rewrite(opt)
              gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
              return opt.apply_gradients(list(zip(gradients, variables)))
    """,
)
