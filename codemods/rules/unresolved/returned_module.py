"""Reports legacy names on what a function returned, and modules that only a string names.

tensor2tensor and its descendants reach `contrib` through functions
(`contrib.tpu().CrossShardOptimizer`) that import it lazily or raise on TensorFlow 2. What such a
function returns cannot be determined statically. A module that a string names
(`importlib.import_module("tensorflow.keras.mixed_precision.experimental")`) is reported at the
string, because strings are never rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.places import Unclear
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule
from ._strings import completed_paths

__all__ = ["RULE"]

_MESSAGE = "`{}` cannot be resolved statically: import {} by name, then migrate again"
_NAMED = "only a string names this module: import it with a statement, then migrate again"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such expression at its first place, with all names that come through it."""
    found: dict[str, list[Unclear]] = {}
    for unclear in program.unclear:
        if unclear.why == "call":
            found.setdefault(unclear.through, []).append(unclear)
    for through, places in found.items():
        names = " and ".join(dict.fromkeys(f"`{one.name}`" for one in places))
        yield report(places[0].node, "LS902", places[0].name, _MESSAGE.format(through, names))
    for string, path in program.cached(completed_paths).items():
        yield report(string, "LS902", path.rpartition(".")[2], _NAMED)


RULE = Rule(
    codes={"LS902": "a legacy name on what a call returned or a caller passed"},
    summary="names on returned modules, reported",
    upstream="https://github.com/tensorflow/tensor2tensor/blob/master/tensor2tensor/utils/contrib.py",
    check=check,
    examples=(
        Example(
            "not an attribute of self",
            """\
            import tensorflow as tf

            class Trainer:
                def wrap(self, opt):
                    return self.LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "a module that a string names",
            """\
            import importlib

            mp = importlib.import_module("tensorflow.keras.mixed_precision.experimental")
            mp.set_policy("mixed_float16")
            """,
            None,
            Safety.MANUAL,
            message_contains="only a string",
        ),
        Example(
            "a function that returns contrib",
            """\
            from tensor2tensor.utils import contrib

            opt = contrib.tpu().CrossShardOptimizer(opt)
            """,
            None,
            Safety.MANUAL,
            message_contains="statically",
        ),
    ),
)
