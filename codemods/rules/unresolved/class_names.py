"""Reports tests of the name of a class, `type(opt).__name__ == "LossScaleOptimizer"`.

The final class is called `LossScaleOptimizerV3` from TensorFlow 2.11 to 2.15. The experimental one
was called `LossScaleOptimizerV1` from 2.4 to 2.8. The classes of the shim have the names of the
installed ones. So the result of such a test depends on the version. The result of
`isinstance` does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...resolve import vocabulary
from ...resolve.mentions import DISPLAYS
from ...resolve.tree import string_of
from ..rule import Decision, Options, Program, Proposal, Rule

__all__ = ["RULE"]

_CLASS = re.compile(rf"{vocabulary.LOSS_SCALE}|{vocabulary.CLASS}(?:V[13])?")
_ASKED = re.compile(r"__name__|__qualname__|\b(?:str|repr)\(type\(|__class__")
_ASKING = (cst.Call, cst.Comparison, cst.Subscript)
_COMPARED = "the name of the class depends on the TensorFlow version: use isinstance"


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """The expressions with such a name, also through a variable, that read a class's name.

    Cerebras/modelzoo compares the name of the class of an optimizer with "LossScaleOptimizer".
    """
    for string in program.scopes.strings:
        if not _is_class_name(string, options):
            continue
        written, _ = program.outside(string, DISPLAYS)
        nodes = [string, *program.values.reads_of(written)]
        places = filter(None, (_reading_of_name(program, node) for node in nodes))
        place = next(places, None)
        if place is not None:
            yield Proposal.report(place, "LS906", "__name__", _COMPARED)


def _is_class_name(string: cst.SimpleString, options: Options) -> bool:
    """Whether a string is the name of a class that not every version has."""
    name = string_of(string) if vocabulary.LOSS_SCALE in string.value else None
    if (
        name == vocabulary.V1_CLASS
    ):  # TensorFlow's class and the shim's have this name in every version
        return not options.to_shim
    return name is not None and bool(_CLASS.fullmatch(name))


def _reading_of_name(program: Program, node: cst.CSTNode) -> Optional[cst.CSTNode]:
    """The innermost expression around a node that reads the name of a class."""
    for above in program.ancestors(node):
        if isinstance(above, _ASKING) and _ASKED.search(program.code(above)):
            return above
    return None


RULE = Rule(
    codes={"LS906": "a test of a class's name"},
    summary="tests of the name of a class, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.11.0",
    reports=reports,
    cases="""
        # a comparison with the name of the class
        > manual: isinstance
          import tensorflow as tf

          if type(opt).__name__ in ["LossScaleOptimizer", "LossScaleOptimizerV1"]:
              opt = opt.inner_optimizer

        # the name of a class in a condition
        > manual
          import tensorflow as tf

          is_scaled = opt.__class__.__name__ == "LossScaleOptimizer"
    """,
)
