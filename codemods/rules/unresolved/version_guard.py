"""Reports the legacy arm of a version guard whose other arm is already final.

Rewriting such an arm would make both arms the same. When a program no longer supports TensorFlow
below 2.4, which lacks the final API, remove the guard and the legacy arm, as OpenNMT-tf did.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.program import Program
from ...resolve.version_guards import removable_arms
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = (
    "removable: the other arm of this version guard is already final; remove this arm and the "
    "guard when TensorFlow below 2.4 is no longer supported"
)
_THEN = "{}; then migrate again to rewrite the uses of {}, which has two meanings here"


def check(program: Program) -> Iterator[Proposal]:
    """Reports each legacy reference in such an arm."""
    stay = program.cached(removable_arms)
    imports = [one for one in program.guarded if isinstance(one.node, cst.ImportAlias)]
    for reference in [*program.references, *imports]:
        if reference in stay or reference in imports:
            message = _MESSAGE
            if reference in imports:
                message = _THEN.format(_MESSAGE, reference.legacy.name)
            yield report(reference.node, "LS908", reference.legacy.name, message)


RULE = Rule(
    codes={"LS908": "the legacy arm of a version guard"},
    summary="legacy arms of version guards, reported as removable",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a guard between two final arms",
            """\
            import tensorflow as tf

            if tf.__version__ >= "2.11":
                opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.legacy.SGD())
            else:
                opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD())
            """,
        ),
        Example(
            "the old arm of a version test",
            """\
            import tensorflow as tf
            from packaging import version

            if version.parse(tf.__version__) >= version.parse("2.4.0"):
                opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            else:
                opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="removable",
        ),
        Example(
            "a name that the old arm uses stays the same",
            """\
            import tensorflow as tf

            LossScaleOptimizer = tf.keras.mixed_precision.experimental.LossScaleOptimizer

            if tuple(int(n) for n in tf.__version__.split(".")[:2]) >= (2, 4):
                opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            else:
                opt = LossScaleOptimizer(opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="removable",
        ),
        Example(
            "the old arm of an import that may fail",
            """\
            try:
                from tensorflow.keras.mixed_precision import LossScaleOptimizer
            except ImportError:
                from tensorflow.keras.mixed_precision.experimental import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            """,
            None,
            Safety.MANUAL,
            message_contains="migrate again",
        ),
        Example(
            "the old arm of a missing attribute",
            """\
            import tensorflow as tf

            try:
                set_policy = tf.keras.mixed_precision.set_global_policy
            except AttributeError:
                set_policy = tf.keras.mixed_precision.experimental.set_policy

            set_policy("mixed_float16")
            """,
            None,
            Safety.MANUAL,
            message_contains="removable",
        ),
    ),
)
