"""Reports legacy names that only a star import can bind.

`from module import *` hides where a name comes from. In public code, most loss-scale managers with
these names come from `from npu_bridge.npu_init import *`, which is not TensorFlow. So no name is
rewritten because of its spelling, and neither is a star import of a legacy module.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Group, Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import SHIM
from ..findings import place_needs_shim, report
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = "names from `import *` ({}) cannot be resolved: import them by name, then migrate again"
_ON_SHIM = f"{SHIM}.contrib.mixed_precision"
_STAR = "names from a star import cannot be told apart"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such place; contrib classes of the shim stay there."""
    for scope in program.all_scopes():
        for star, path in scope.stars:
            if path == _ON_SHIM and not program.goes_to_shim(Group.CONTRIB):
                yield place_needs_shim(star, "LS901", "*", Group.CONTRIB, _STAR)
    for unclear in program.unclear:
        if unclear.why == "star":
            guidance = _MESSAGE.format(unclear.through)
            yield report(unclear.node, "LS901", unclear.name, guidance)


RULE = Rule(
    codes={"LS901": "a legacy name that only a star import can bind"},
    summary="names from star imports, reported",
    upstream="https://docs.python.org/3/tutorial/modules.html#importing-from-a-package",
    check=check,
    examples=(
        Example(
            "not from npu_bridge",
            """\
            from npu_bridge.npu_init import *

            manager = ExponentialUpdateLossScaleManager(2**32, 1000)
            """,
        ),
        Example(
            "a module that a star import binds",
            """\
            from tensorflow.keras import *

            mixed_precision.experimental.set_policy("mixed_float16")
            """,
            None,
            Safety.MANUAL,
            message_contains="tensorflow.keras",
        ),
        Example(
            "the only star import, also for the shim",
            """\
            import tensorflow as tf
            from tensorflow.contrib.mixed_precision import *

            manager = FixedLossScaleManager(8)
            opt = LossScaleOptimizer(tf.train.AdamOptimizer(), manager)
            """,
            None,
            Safety.MANUAL,
            target=Target.SHIM,
            message_contains="import them by name",
        ),
    ),
)
