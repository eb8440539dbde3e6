"""Reports legacy names that come through another module, which may be TensorFlow's or not.

Projects have their own `compat` modules (`from lingvo import compat as tf`); this file does not
show what their names mean. Migrate that module instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._family import proposals

__all__ = ["RULE"]

_MESSAGE = (
    "`{name}` comes through `{through}`: migrate that module if it re-exports TensorFlow's; "
    "otherwise silence this line (# lossscale: ignore[LS903])"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each such place."""
    yield from proposals(program, "re-export", "LS903", _MESSAGE)


RULE = Rule(
    codes={"LS903": "a legacy name that comes through another module"},
    summary="names through other modules, reported",
    upstream="https://github.com/tensorflow/lingvo/blob/master/lingvo/compat.py",
    check=check,
    examples=(
        Example(
            "not from a library with its own class",
            """\
            from smdistributed.modelparallel.tensorflow import LossScaleOptimizer
            from paddle.fluid.contrib import mixed_precision

            opt = LossScaleOptimizer(opt)
            """,
        ),
        Example(
            "not a relative import of another name",
            """\
            from .optimizers import AutomaticLossScaler

            opt = AutomaticLossScaler(opt)
            """,
        ),
        Example(
            "not from the shim, which is the target",
            """\
            import tf_lossscale as tfls
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            manager = tfls.contrib.mixed_precision.FixedLossScaleManager(128.0)
            """,
        ),
        Example(
            "a module of the project that re-exports TensorFlow",
            """\
            from lingvo import compat as tf

            y = tf.tpu.cross_replica_sum(x)
            """,
            None,
            Safety.MANUAL,
            message_contains="lingvo.compat.tpu",
        ),
        Example(
            "a relative import of the same name",
            """\
            from .optimizers import LossScaleOptimizer

            opt = LossScaleOptimizer(opt, 'dynamic')
            """,
            None,
            Safety.MANUAL,
            message_contains="`.optimizers`",
        ),
        Example(
            "another module of the same project",
            """\
            from . import optimizers

            opt = optimizers.LossScaleOptimizer(opt, 'dynamic')
            """,
            None,
            Safety.MANUAL,
            message_contains="`.optimizers`",
        ),
    ),
)
