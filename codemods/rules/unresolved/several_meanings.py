"""Reports names that mean a legacy symbol on one path and something else on another.

Each place that binds such a name is rewritten on its own, and the uses stay as they are: the shim's
symbols have the same parameters. Only a use through a module that also holds other things cannot
follow; it is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.places import Unclear
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import place_needs_shim, report
from ..rule import Example, Rule
from .namespace_as_value import is_whole

__all__ = ["RULE"]

_MESSAGE = "this name can mean {}: use different names, then migrate again"
_SEVERAL = "this name has other meanings, too"


def check(program: Program) -> Iterator[Proposal]:
    """Says that such places need the shim, or reports those that no rename reaches."""
    if not any(branch.has_final for branch in program.guards):
        for place in program.guarded:
            if not program.goes_to_shim(place.legacy.group):
                group = place.legacy.group
                yield place_needs_shim(place.node, "LS904", place.legacy.name, group, _SEVERAL)
    for unclear in program.unclear:
        if unclear.why != "several":
            continue
        for legacy in unclear.legacy:
            if legacy.rule and not program.goes_to_shim(legacy.group):
                yield place_needs_shim(unclear.node, "LS904", unclear.name, legacy.group, _SEVERAL)
        if any(one.rule for one in unclear.legacy) and not _follows(program, unclear):
            guidance = _MESSAGE.format(unclear.through)
            yield report(unclear.node, "LS904", unclear.name, guidance)


def _follows(program: Program, unclear: Unclear) -> bool:
    """Whether the use is right once the places that bind its first name are rewritten."""
    if isinstance(unclear.node, cst.Name):
        return True
    assert isinstance(unclear.node, cst.Attribute)
    modules = program.origins.of_expression(unclear.node.value, unclear.scope)
    modules = frozenset(path for path in modules if program.namespace_of(path) is not None)
    is_direct = isinstance(unclear.node.value, cst.Name)
    return is_direct and all(is_whole(program, path) for path in modules)


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
            "another library's class in the other branch",
            """\
            try:
                from npu_bridge.npu_init import FixedLossScaleManager
            except ImportError:
                from tensorflow.contrib.mixed_precision import FixedLossScaleManager

            manager = FixedLossScaleManager(8)
            """,
            """\
            try:
                from npu_bridge.npu_init import FixedLossScaleManager
            except ImportError:
                from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

            manager = FixedLossScaleManager(8)
            """,
            Safety.SAFE,
            message_contains="go to the shim",
        ),
        Example(
            "None in the other branch does not count",
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
