"""Reports tests of a class's name: `type(opt).__name__ == "LossScaleOptimizer"`.

The final class is called `LossScaleOptimizerV3` from TensorFlow 2.11 to 2.15. The experimental one
was called `LossScaleOptimizerV1` from 2.4 to 2.8. The classes of the shim have the names of the
installed ones. So the result of such a test depends on the version; that of `isinstance` does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_NAME = re.compile(r"""["']LossScaleOptimizer(?:V[13])?["']$""")
_OF_V1 = re.compile(r"""["']MixedPrecisionLossScaleOptimizer["']$""")
"""A name that TensorFlow's class and the shim's have in every version."""
_MESSAGE = "the name of the class depends on the TensorFlow version: use isinstance"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each comparison of a `__name__` with such a name."""
    to_shim = program.options.target is Target.SHIM
    for string in program.scopes.strings:
        if _NAME.search(string.value) or (not to_shim and _OF_V1.search(string.value)):
            for above in program.ancestors(string):
                if isinstance(above, cst.Comparison):
                    if "__name__" in program.code(above):
                        yield report(above, "LS906", "__name__", _MESSAGE)
                    break


RULE = Rule(
    codes={"LS906": "a test of a class's name"},
    summary="class-name tests, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.11.0",
    check=check,
    examples=(
        Example(
            "not a key of custom objects",
            """\
            import tensorflow as tf

            objects = {"LossScaleOptimizer": Mine}
            """,
        ),
        Example(
            "a comparison with the name of the class",
            """\
            import tensorflow as tf

            if type(opt).__name__ in ["LossScaleOptimizer", "LossScaleOptimizerV1"]:
                opt = opt.inner_optimizer
            """,
            None,
            Safety.MANUAL,
            message_contains="isinstance",
        ),
        Example(
            "the same, for the shim",
            """\
            import tensorflow as tf

            is_scaled = type(opt).__name__ == "LossScaleOptimizerV1"
            """,
            None,
            Safety.MANUAL,
            target=Target.SHIM,
            message_contains="isinstance",
        ),
        Example(
            "not a comparison with a configuration value",
            """\
            import tensorflow as tf

            if flags.wrapper == "LossScaleOptimizer":
                pass
            """,
        ),
        Example(
            "not a name that all versions have, for the shim",
            """\
            import tensorflow as tf

            is_scaled = type(opt).__name__ == "MixedPrecisionLossScaleOptimizer"
            """,
            target=Target.SHIM,
        ),
    ),
)
