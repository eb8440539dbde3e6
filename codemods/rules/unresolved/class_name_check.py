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
from ...resolve.tree import string_of
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_NAME = re.compile(r"LossScale(?:Optimizer(?:V[13])?)?")
_OF_V1 = "MixedPrecisionLossScaleOptimizer"
"""A name that TensorFlow's class and the shim's have in every version."""
_ASKED = re.compile(r"__name__|__qualname__|\b(?:str|repr)\(type\(|__class__")
_ASKING = (cst.Call, cst.Comparison, cst.Subscript)
_MESSAGE = "the name of the class depends on the TensorFlow version: use isinstance"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each expression with such a name that reads the name of a class."""
    to_shim = program.options.target is Target.SHIM
    for string in program.scopes.strings:
        name = string_of(string) or ""
        if _NAME.fullmatch(name) or (name == _OF_V1 and not to_shim):
            for node in [string, *_reads(program, string)]:
                asking = (one for one in program.ancestors(node) if isinstance(one, _ASKING))
                place = next((one for one in asking if _ASKED.search(program.code(one))), None)
                if place is not None:
                    yield report(place, "LS906", "__name__", _MESSAGE)
                    break


def _reads(program: Program, string: cst.CSTNode) -> list[cst.Name]:
    """The reads of the variable that is bound to a string, or to a tuple with it."""
    parent = program.parents.get(string)
    while isinstance(parent, (cst.Element, cst.Tuple, cst.List, cst.Set)):
        parent = program.parents.get(parent)
    targets = [one.target for one in parent.targets] if isinstance(parent, cst.Assign) else []
    names = [one.value for one in targets if isinstance(one, cst.Name)]
    return [name for name in program.scopes.loads if name.value in names]


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
    ),
)
