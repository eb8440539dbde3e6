"""Reports the legacy arm of a version guard whose other arm is already final.

Such an arm is left as a whole: rewriting a name inside it would break it on the TensorFlow that it
is for. When a program no longer supports TensorFlow below 2.4, which lacks the final API, remove
the guard and the legacy arm, as OpenNMT-tf did.

A guard is an `if`, a `match`, a conditional expression or a table that depends on a version, on
`hasattr` or on a flag, a `try` that catches the absence of a module or attribute, or `getattr` with
a default. Its arms can use the symbols, import them, bind a name to the module of either API, or
call a function that does. An arm that runs only on a TensorFlow below 2.4 is left even if no other
arm is final. Versions of Python and of other libraries make no guard.

With `--to final --unsafe`, the guard is replaced by its final arm, and what follows it is rewritten
in the same run: afterwards the program needs TensorFlow 2.4. This is done for `if` and `else`, a
`try` with one handler, a conditional expression and `getattr`; other guards are left to you.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...resolve.version_guards import Guarded, guarded_places
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule

__all__ = ["RULE"]

_MESSAGE = (
    "removable: the other arm of this version guard is already final; remove this arm and the "
    "guard when TensorFlow below 2.4 is no longer supported"
)
_REMOVED = "the legacy arm is removed: the program no longer runs on TensorFlow below 2.4"
_THEN = "{}; then migrate again to rewrite the uses of {}, which has two meanings here"
_ALONE = (
    "only a TensorFlow that has the legacy API runs this arm, and no other arm uses the final API: "
    "write that one, then remove this arm"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each legacy name in such an arm, or with `--unsafe` takes out the arm."""
    for removal in program.cut.removals:
        for number, (node, symbol) in enumerate(removal.places):
            edits = () if number else ((removal.guard, removal.edit),)
            made = report(node, "LS908", symbol, _REMOVED)
            yield made._replace(outcome=Safety.UNSAFE, edits=edits)
    for place in program.cached(guarded_places):
        yield report(place.node, "LS908", place.symbol, _message(place))


def _message(place: Guarded) -> str:
    if not place.has_final:
        return _ALONE
    return _THEN.format(_MESSAGE, place.name) if place.name else _MESSAGE


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
            "a module that the guard chooses",
            """\
            import tensorflow as tf

            if tf.__version__ < "2.4":
                from tensorflow.keras.mixed_precision import experimental as mixed_precision
                mixed_precision.set_policy("mixed_float16")
            else:
                from tensorflow.keras import mixed_precision
                mixed_precision.set_global_policy("mixed_float16")
            opt = mixed_precision.LossScaleOptimizer(opt, "dynamic")
            """,
            None,
            Safety.MANUAL,
            message_contains="uses of mixed_precision",
        ),
        Example(
            "an arm that runs on old versions only",
            """\
            import tensorflow as tf

            if tf.__version__ < "2.4":
                tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
            """,
            None,
            Safety.MANUAL,
            message_contains="no other arm",
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
        Example(
            "removed",
            """\
            import tensorflow as tf

            if tf.__version__ < "2.4":
                mixed_precision = tf.keras.mixed_precision.experimental
                mixed_precision.set_policy("mixed_float16")
            else:
                mixed_precision = tf.keras.mixed_precision
                mixed_precision.set_global_policy("mixed_float16")
            """,
            """\
            import tensorflow as tf

            mixed_precision = tf.keras.mixed_precision
            mixed_precision.set_global_policy("mixed_float16")
            """,
            Safety.UNSAFE,
            unsafe=True,
            message_contains="no longer runs on TensorFlow below 2.4",
        ),
    ),
)
