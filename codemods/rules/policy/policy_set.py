"""Moves `experimental.set_policy` to `tf.keras.mixed_precision.set_global_policy`.

TensorFlow 2.9 removed the experimental module (release notes 2.9.0: "set_policy is replaced by
set_global_policy"). `tf.keras.mixed_precision.set_policy`, which some programs call after
`experimental.` was dropped, never existed; it is repaired too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..rule import Example, Rule
from ._policies import reports_of_call, to_final

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final function."""
    for reference in references(program, "LS601"):
        yield from to_final(program, reference)


def reports(program: Program) -> Iterator[Proposal]:
    """Reports the arguments that no current TensorFlow accepts."""
    return reports_of_call(program, "LS601")


RULE = Rule(
    codes={"LS601": "tf.keras.mixed_precision.experimental.set_policy"},
    summary="set_policy to set_global_policy",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
    reports=reports,
    examples=(
        Example(
            "not another object's set_policy",
            """\
            from tensorflow.keras import mixed_precision

            agent.set_policy("mixed_float16")
            mixed_precision.set_global_policy("float32")
            """,
        ),
        Example(
            "as an attribute",
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
            """,
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.set_global_policy("mixed_float16")
            """,
            Safety.SAFE,
        ),
        Example(
            "reported where TensorFlow removed the policy",
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.experimental.set_policy("infer_float32_vars")
            """,
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.set_global_policy("infer_float32_vars")
            """,
            Safety.MANUAL,
            message_contains="of this name",
        ),
    ),
)
