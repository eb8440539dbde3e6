"""Moves `tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager` to the shim's class.

`tf.contrib` was removed in TensorFlow 2.0. By default this manager waits for two steps with
non-finite gradients and then multiplies the scale by 0.8. No later class does either, so migrations
by hand to `DynamicLossScale` changed the numbers. `--unsafe` writes `DynamicLossScale` if the
numbers are the same: `decr_every_n_nan_or_inf=1`, and `decr_ratio` is the inverse of `incr_ratio`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._twins import to_twin

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the similar class of TensorFlow 2, with `--unsafe`."""
    return to_twin(program, "LS102")


RULE = Rule(
    codes={"LS102": "tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager"},
    summary="contrib ExponentialUpdateLossScaleManager to the shim",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.0.0 (tf.contrib removed)",
    check=check,
    examples=(
        Example(
            "not from npu_bridge by name",
            """\
            from npu_bridge.npu_init import ExponentialUpdateLossScaleManager

            manager = ExponentialUpdateLossScaleManager(2**32, 1000, 2, 2.0, 0.5)
            """,
        ),
        Example(
            "one of two managers, chosen by a branch",
            """\
            from tensorflow.contrib.mixed_precision import (
                ExponentialUpdateLossScaleManager,
                FixedLossScaleManager,
                LossScaleOptimizer,
            )

            def wrap(opt, scale):
                if scale is None:
                    manager = ExponentialUpdateLossScaleManager(2 ** 32, 1000)
                else:
                    manager = FixedLossScaleManager(scale)
                return LossScaleOptimizer(opt, manager)
            """,
            """\
            from tf_lossscale.contrib.mixed_precision import (
                ExponentialUpdateLossScaleManager,
                FixedLossScaleManager,
                LossScaleOptimizer,
            )

            def wrap(opt, scale):
                if scale is None:
                    manager = ExponentialUpdateLossScaleManager(2 ** 32, 1000)
                else:
                    manager = FixedLossScaleManager(scale)
                return LossScaleOptimizer(opt, manager)
            """,
            Safety.SAFE,
        ),
        Example(
            "moved to the shim where the numbers differ, even with --unsafe",
            """\
            from tensorflow.contrib import mixed_precision as mp

            manager = mp.ExponentialUpdateLossScaleManager(2**32, 1000, 2, decr_ratio=0.5)
            """,
            """\
            from tf_lossscale.contrib import mixed_precision as mp

            manager = mp.ExponentialUpdateLossScaleManager(2**32, 1000, 2, decr_ratio=0.5)
            """,
            Safety.SAFE,
            unsafe=True,
        ),
    ),
)
