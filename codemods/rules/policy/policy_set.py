"""Moves `experimental.set_policy` to `tf.keras.mixed_precision.set_global_policy`.

TensorFlow 2.9 removed the experimental module (release notes 2.9.0: "set_policy is replaced by
set_global_policy"). `tf.keras.mixed_precision.set_policy`, which some programs call after
`experimental.` was dropped, never existed; it is repaired too.
"""

from __future__ import annotations

from ...model import Safety, Target
from ..rule import Example, Rule

__all__ = ["RULE"]

RULE = Rule(
    codes={"LS601": "tf.keras.mixed_precision.experimental.set_policy"},
    summary="set_policy to set_global_policy",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
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
