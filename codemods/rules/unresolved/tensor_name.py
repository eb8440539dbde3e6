"""Reports strings that name a loss-scale tensor, such as `"loss_scale:0"`.

Sessions fetch tensors by name, and the variables of the classes have different names: contrib's
manager has `loss_scale`, `DynamicLossScale` has `current_loss_scale`. On TensorFlow 2, variables
are resource variables, and such a name is a handle, not the value. Strings are never rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.legacy_symbols import Family
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_NAME = re.compile(r"""["'](?:[\w.\-/]+/)?loss_scale:0["']$""")
_MESSAGE = (
    "only a contrib manager, or the program itself, makes a tensor of this name, and on TensorFlow "
    "2 a manager's is a handle, not the value: fetch the tensor (manager.get_loss_scale())"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such string of a program that uses a legacy loss scale, or the shim's."""
    if not _has_loss_scale(program):
        return
    for string in program.scopes.strings:
        if _NAME.search(string.value):
            yield report(string, "LS905", "loss_scale:0", _MESSAGE)


def _has_loss_scale(program: Program) -> bool:
    """Whether anything in the program can be what makes a tensor of that name."""
    others = (Family.CROSS_SHARD, Family.FINAL)
    if any(one.legacy.family not in others for one in program.references):
        return True
    if any(name.endswith(("LossScale", "LossScaleManager")) for _, name in program.migrated):
        return True
    return bool(program.guarded or program.unclear)


RULE = Rule(
    codes={"LS905": "a string that names a loss-scale tensor"},
    summary="tensor names in strings, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not without TensorFlow",
            """\
            name = "loss_scale:0"
            """,
        ),
        Example(
            "a fetch by name",
            """\
            import tensorflow as tf
            from tf_lossscale.contrib.mixed_precision import FixedLossScaleManager

            manager = FixedLossScaleManager(128)
            scale = graph.get_tensor_by_name("tower/loss_scale:0")
            """,
            None,
            Safety.MANUAL,
        ),
        Example(
            "the shim's managers use this name, but TensorFlow 2 gives it to a handle",
            """\
            import tf_lossscale as tfls

            manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128)
            scale = session.run("loss_scale:0")
            """,
            None,
            Safety.MANUAL,
            target=Target.SHIM,
            message_contains="is a handle",
        ),
    ),
)
