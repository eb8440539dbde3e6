"""Reports legacy names that only a star import can bind.

`from module import *` hides where a name comes from. In public code, most managers of these names
come from `from npu_bridge.npu_init import *`, another library. So no name is rewritten because of
its spelling.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._family import proposals

__all__ = ["RULE"]

_MESSAGE = (
    "names from `import *` ({through}) cannot be resolved: import them by name, then migrate again"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such place."""
    yield from proposals(program, "star", "LS901", _MESSAGE)


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
            "not a name that the program binds itself",
            """\
            from utilities import *
            from mindspore import FixedLossScaleManager

            manager = FixedLossScaleManager(8)
            """,
        ),
        Example(
            "a star import of the program's own",
            """\
            import tensorflow as tf
            from utilities import *

            opt = CrossShardOptimizer(opt)
            """,
            None,
            Safety.MANUAL,
            message_contains="utilities",
        ),
        Example(
            "a star import of a legacy module",
            """\
            from tensorflow.keras.mixed_precision.experimental import *

            set_policy("mixed_float16")
            """,
            None,
            Safety.MANUAL,
            message_contains="import *",
        ),
    ),
)
