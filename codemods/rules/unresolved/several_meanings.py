"""Reports names that mean a legacy symbol on one path and something else on another.

A name is rewritten only if all its possible meanings are the same symbol.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.legacy_symbols import Family
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._family import proposals

__all__ = ["RULE"]

_MESSAGE = "this name can mean {through}: use different names, then migrate again"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such place."""
    for proposal in proposals(program, "several", "LS904", _MESSAGE):
        if not _calls_what_was_chosen(program, proposal.node):
            yield proposal


def _calls_what_was_chosen(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` calls a variable that keeps its parameters wherever its values move.

    In `wrap = CrossShardOptimizer if use_tpu else keep`, the class is rewritten where it is chosen;
    `wrap(opt)` needs no edit. A class that moves with other parameters is not of this kind.
    """
    scope = program.scopes.loads.get(node) if isinstance(node, cst.Name) else None
    if scope is None or program.call_of(node) is None:
        return False
    assert isinstance(node, cst.Name)
    bindings = scope.bindings_of(node.value)
    if not bindings or any(binding.value is None for binding in bindings):
        return False
    found = [
        legacy
        for binding in bindings
        for path in program.origins.of_binding(binding)
        for legacy in [program.legacy_of(path)]
        if legacy is not None
    ]
    to_shim = program.options.target is Target.SHIM
    return all(legacy.family is Family.CROSS_SHARD or to_shim for legacy in found)


RULE = Rule(
    codes={"LS904": "a name that has a legacy and another meaning"},
    summary="names with several meanings, reported",
    upstream="https://docs.python.org/3/reference/executionmodel.html#naming-and-binding",
    check=check,
    examples=(
        Example(
            "not where both meanings are the same symbol",
            """\
            try:
                import tensorflow.compat.v1 as tf
            except ImportError:
                import tensorflow as tf

            scale = tf.compat.v1.mixed_precision.DynamicLossScale()
            """,
        ),
        Example(
            "not where a parameter hides the name",
            """\
            from tensorflow.compat.v1.mixed_precision import DynamicLossScale

            def scale(DynamicLossScale):
                return DynamicLossScale()
            """,
        ),
        Example(
            "another library's class in the other arm",
            """\
            try:
                from npu_bridge.npu_init import FixedLossScaleManager
            except ImportError:
                from tensorflow.contrib.mixed_precision import FixedLossScaleManager

            manager = FixedLossScaleManager(8)
            """,
            None,
            Safety.MANUAL,
            message_contains="npu_bridge",
        ),
        Example(
            "None in the other arm does not count",
            """\
            try:
                from tensorflow.contrib.mixed_precision import LossScaleOptimizer
            except ImportError:
                LossScaleOptimizer = None

            if LossScaleOptimizer is not None:
                opt = LossScaleOptimizer(opt, manager)
            """,
            """\
            try:
                from tf_lossscale.contrib.mixed_precision import LossScaleOptimizer
            except ImportError:
                LossScaleOptimizer = None

            if LossScaleOptimizer is not None:
                opt = LossScaleOptimizer(opt, manager)
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
