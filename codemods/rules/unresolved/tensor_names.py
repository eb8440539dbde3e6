"""Reports strings that name the tensor of a loss scale, such as `"loss_scale:0"`.

Sessions fetch tensors by such names. The variables of the classes have different names: contrib's
manager has `loss_scale`, `DynamicLossScale` has `current_loss_scale`. On TensorFlow 2, variables
are resource variables, and such a name is a handle, not the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..rule import Decision, Options, Program, Proposal, Rule

__all__ = ["RULE"]

_TENSOR = re.compile(r"""["'](?:[\w.\-/]+/)?((?:loss_scale|bad_steps)(?:/read)?:0)["']$""")
_FETCHED = (
    "only a contrib manager, or the program itself, makes a tensor of this name, and on TensorFlow "
    "2 a manager's is a handle, not the value: fetch the tensor (manager.get_loss_scale())"
)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports the names in a program that may have what makes a tensor of that name."""
    has_loss_scale = any(reference.legacy.has_loss_scales for reference in program.references)
    migrated = [name for _, name in program.migrated]
    has_loss_scale |= any(path.endswith(("LossScale", "LossScaleManager")) for path in migrated)
    if has_loss_scale or program.mixed or program.unclear:
        for string in program.scopes.strings:
            named = _TENSOR.search(string.value)
            if named is not None:
                yield Proposal.report(string, "LS905", named[1], _FETCHED)


RULE = Rule(
    codes={"LS905": "a string that names a loss-scale tensor"},
    summary="tensors that strings name, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0",
    reports=reports,
    cases="""
        # a fetch by the name of a tensor
        > manual
          import tensorflow.compat.v1 as tf

        - scale = tf.train.experimental.DynamicLossScale(64)
        + scale = tf.mixed_precision.DynamicLossScale(64)
          print(session.run("loss_scale:0"))

        # a fetch of several tensors
        > manual
        - import tensorflow.compat.v1 as tf
        + import tf_lossscale as tfls

        - manager = tf.contrib.mixed_precision.FixedLossScaleManager(8)
        + manager = tfls.contrib.mixed_precision.FixedLossScaleManager(8)
          _, scale = session.run([train_op, "train/loss_scale:0"])
    """,
)
