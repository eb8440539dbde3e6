"""Moves `experimental.global_policy` to `tf.keras.mixed_precision.global_policy`.

TensorFlow 2.9 removed the experimental module (release notes 2.9.0); the final function has existed
since 2.4. The policy that it returns no longer has a `loss_scale` (LS605).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..rule import Example, Rule
from ._policies import to_final

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final function."""
    for reference in references(program, "LS603"):
        yield from to_final(program, reference)


RULE = Rule(
    codes={"LS603": "tf.keras.mixed_precision.experimental.global_policy"},
    summary="global_policy to the final function",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    examples=(
        Example(
            "not the final function",
            """\
            import tensorflow as tf

            print(tf.keras.mixed_precision.global_policy().compute_dtype)
            """,
        ),
        Example(
            "not a name bound to something else in the function",
            """\
            from tensorflow.keras import mixed_precision

            def f(global_policy):
                return global_policy()
            """,
        ),
        Example(
            "a read of the dtype",
            """\
            from tensorflow.keras.mixed_precision import experimental as mixed_precision

            dtype = mixed_precision.global_policy().compute_dtype
            """,
            """\
            from tensorflow.keras import mixed_precision

            dtype = mixed_precision.global_policy().compute_dtype
            """,
            Safety.SAFE,
        ),
    ),
)
