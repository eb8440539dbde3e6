"""Moves `experimental.set_policy` to `tf.keras.mixed_precision.set_global_policy`.

TensorFlow 2.9 removed the experimental module (release notes 2.9.0: "set_policy is replaced by
set_global_policy"). `tf.keras.mixed_precision.set_policy`, which some programs call after
`experimental.` was dropped, never existed; it is repaired too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.arguments import constant
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import manual
from ..rule import Example, Rule
from ._family import MOVES, REMOVED_NAME, group_of, removed_name

__all__ = ["RULE"]

_NONE = 'Keras 3 does not accept None, which resets the policy: write "float32"'


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the final function, except for policies that the final API does not know."""
    for reference in references(program, "LS601"):
        call = program.call_of(reference.node)
        if call is not None and removed_name(call):
            yield manual(reference, REMOVED_NAME, group=group_of(reference))
        elif (
            call is not None
            and program.options.for_keras_3
            and len(call.args) == 1
            and constant(call.args[0].value) == (None,)
        ):
            yield manual(reference, _NONE, group=group_of(reference))
        else:
            yield from MOVES.proposals(program, reference)


RULE = Rule(
    codes={"LS601": "tf.keras.mixed_precision.experimental.set_policy"},
    summary="set_policy to set_global_policy",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    check=check,
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
            "not a function that the program defines",
            """\
            from tensorflow.keras.mixed_precision import Policy

            def set_policy(policy):
                return Policy(policy)

            set_policy("float32")
            """,
        ),
        Example(
            "not a path that is joined from a list of names",
            """\
            names = ["keras", "mixed_precision", "set_policy"]
            """,
        ),
        Example(
            "left where TensorFlow removed the policy",
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.experimental.set_policy("infer_float32_vars")
            """,
            None,
            Safety.MANUAL,
            message_contains="of this name",
        ),
        Example(
            "left where None resets the policy, which Keras 3 refuses",
            """\
            import tensorflow as tf

            tf.keras.mixed_precision.experimental.set_policy(None)
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="float32",
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
            "under compat.v1, which has no final policy function before 2.16",
            """\
            import tensorflow.compat.v1 as tf

            tf.compat.v2.keras.mixed_precision.experimental.set_policy("mixed_float16")
            tf.keras.mixed_precision.experimental.set_policy("float32")
            """,
            """\
            import tensorflow.compat.v1 as tf

            tf.compat.v2.keras.mixed_precision.set_global_policy("mixed_float16")
            tf.compat.v2.keras.mixed_precision.set_global_policy("float32")
            """,
            Safety.SAFE,
        ),
        Example(
            "an imported name is renamed where it is called",
            """\
            from tensorflow.keras.mixed_precision.experimental import Policy, set_policy

            set_policy(Policy("mixed_bfloat16"))
            """,
            """\
            from tensorflow.keras.mixed_precision import Policy, set_global_policy

            set_global_policy(Policy("mixed_bfloat16"))
            """,
            Safety.SAFE,
        ),
        Example(
            "an alias keeps its name",
            """\
            from tensorflow.keras.mixed_precision.experimental import set_policy as use

            use("mixed_bfloat16")
            """,
            """\
            from tensorflow.keras.mixed_precision import set_global_policy as use

            use("mixed_bfloat16")
            """,
            Safety.SAFE,
        ),
        Example(
            "a name that never existed in TensorFlow",
            """\
            from tensorflow.keras import mixed_precision

            mixed_precision.set_policy("mixed_float16")
            """,
            """\
            from tensorflow.keras import mixed_precision

            mixed_precision.set_global_policy("mixed_float16")
            """,
            Safety.SAFE,
            message_contains="never existed",
        ),
        Example(
            "to the shim",
            """\
            from tensorflow.keras.mixed_precision import experimental as prec

            prec.set_policy(prec.Policy("mixed_float16"))
            """,
            """\
            from tf_lossscale.keras.mixed_precision import experimental as prec

            prec.set_policy(prec.Policy("mixed_float16"))
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
