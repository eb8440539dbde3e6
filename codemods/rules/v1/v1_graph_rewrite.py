"""Moves the mixed-precision graph rewrite to `tf.compat.v1.mixed_precision`.

TensorFlow 2.6 removed `tf.train.experimental.enable_mixed_precision_graph_rewrite` and its opposite
(release notes 2.6.0); both are in `tf.compat.v1.mixed_precision`. Calls whose result is not used
are kept, because they set a grappler option. From 2.11 on the function refuses Keras optimizers;
such calls are left to a person, because only the policy API works with those.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...rewrite.proposal import Proposal
from ...rewrite.rename import references
from ..findings import manual
from ..rule import Example, Rule
from ._family import MOVES, makes_keras_optimizer

__all__ = ["RULE"]

_KERAS = (
    "TensorFlow 2.11 and later refuse Keras optimizers here: use --to shim, or "
    'tf.keras.mixed_precision.set_global_policy("mixed_float16"), which changes the dtypes of '
    "layers, and wrap the optimizer"
)


def check(program: Program) -> Iterator[Proposal]:
    """Leaves calls on Keras optimizers, and with them their symbol, to a person."""
    for reference in references(program, "LS205"):
        if _on_keras(program, reference):
            yield manual(reference, _KERAS)
        else:
            yield from MOVES.proposals(program, reference)


def _on_keras(program: Program, reference: Reference) -> bool:
    call = program.call_of(reference.node)
    if call is None or not call.args or call.args[0].star:
        return False
    return makes_keras_optimizer(program, call.args[0].value)


RULE = Rule(
    codes={"LS205": "enable_ and disable_mixed_precision_graph_rewrite"},
    summary="the mixed-precision graph rewrite to tf.compat.v1.mixed_precision",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.6.0",
    check=check,
    examples=(
        Example(
            "not the quantization graph rewriter",
            """\
            from object_detection.builders import graph_rewriter_builder

            graph_rewriter_builder.build(rewrite, is_training=True)
            """,
        ),
        Example(
            "not a string that chooses it",
            """\
            import tensorflow as tf

            if flags.fp16_implementation == "enable_mixed_precision_graph_rewrite":
                setup()
            """,
        ),
        Example(
            "left where it wraps a Keras optimizer",
            """\
            import tensorflow as tf

            opt = tf.keras.optimizers.Adam()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)
            """,
            None,
            Safety.MANUAL,
            message_contains="2.11",
        ),
        Example(
            "a v1 optimizer",
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt, 'dynamic')
            """,
            """\
            import tensorflow as tf

            opt = tf.compat.v1.train.AdamOptimizer()
            opt = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(opt, 'dynamic')
            """,
            Safety.SAFE,
        ),
        Example(
            "called for its side effect alone",
            """\
            import tensorflow as tf

            dummy_op = tf.train.experimental.enable_mixed_precision_graph_rewrite(
                LAMBOptimizer(learning_rate=0.0), tf.train.experimental.FixedLossScale(1)
            )
            """,
            """\
            import tensorflow as tf

            dummy_op = tf.compat.v1.mixed_precision.enable_mixed_precision_graph_rewrite(
                LAMBOptimizer(learning_rate=0.0), tf.compat.v1.mixed_precision.FixedLossScale(1)
            )
            """,
            Safety.SAFE,
        ),
        Example(
            "a Keras optimizer, to the shim",
            """\
            import tensorflow as tf

            sgd = tf.keras.optimizers.SGD()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(sgd)
            tf.train.experimental.disable_mixed_precision_graph_rewrite()
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            sgd = tf.keras.optimizers.SGD()
            opt = tfls.train.experimental.enable_mixed_precision_graph_rewrite(sgd)
            tfls.train.experimental.disable_mixed_precision_graph_rewrite()
            """,
            Safety.SAFE,
            target=Target.SHIM,
        ),
    ),
)
