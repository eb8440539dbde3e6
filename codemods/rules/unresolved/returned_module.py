"""Reports legacy names on what a function returned.

tensor2tensor and its descendants reach `contrib` through functions
(`contrib.tpu().CrossShardOptimizer`) that import it lazily or raise on TensorFlow 2. What such a
function returns cannot be determined statically.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._family import proposals

__all__ = ["RULE"]

_MESSAGE = "`{through}` cannot be resolved statically: import `{name}` by name, then migrate again"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such place."""
    yield from proposals(program, "call", "LS902", _MESSAGE)


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
            "not a module of another library",
            """\
            import mindspore

            manager = mindspore.nn.FixedLossScaleManager(8)
            """,
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
        Example(
            "a module that is a parameter",
            """\
            def wrap(tf, opt):
                return tf.contrib.tpu.CrossShardOptimizer(opt)
            """,
            None,
            Safety.MANUAL,
        ),
    ),
)
