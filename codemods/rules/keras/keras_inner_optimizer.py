"""Rewrites `optimizer._optimizer` to `optimizer.inner_optimizer`.

The experimental class kept the wrapped optimizer in a private attribute; TensorFlow 2.4 made
`inner_optimizer` public, and Keras 3 only has the public one. The rule applies only to objects that
are certain to be Keras loss-scale optimizers: wrappers of other libraries have a `_optimizer`, too,
and loops that unwrap any object that has one must continue to work.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Safety
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..groups import KERAS_OPTIMIZERS
from ..rule import Example, Rule
from ._optimizer_type import is_keras_optimizer

__all__ = ["RULE"]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the public name for each read of a Keras loss-scale optimizer's attribute."""
    for attribute in program.attributes("_optimizer"):
        if is_keras_optimizer(program, attribute.value) and not _is_target(program, attribute):
            yield Proposal(
                node=attribute,
                code="LS303",
                symbol="LossScaleOptimizer._optimizer",
                outcome=Safety.SAFE,
                message="use inner_optimizer, which is public since TensorFlow 2.4",
                edits=((attribute, _public),),
                group=KERAS_OPTIMIZERS,
            )


def _is_target(program: Program, attribute: cst.Attribute) -> bool:
    parent = program.parents.get(attribute)
    return isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del))


def _public(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Attribute)
    return node.with_changes(attr=node.attr.with_changes(value="inner_optimizer"))


RULE = Rule(
    codes={"LS303": "_optimizer of a Keras LossScaleOptimizer"},
    summary="optimizer._optimizer to optimizer.inner_optimizer",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    examples=(
        Example(
            "not a loop that unwraps any optimizer",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            def unwrap(optimizer):
                while hasattr(optimizer, "_optimizer"):
                    optimizer = optimizer._optimizer
                return optimizer
            """,
        ),
        Example(
            "not an attribute of self",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            class Wrapper:
                def lr(self):
                    return self._optimizer.lr
            """,
        ),
        Example(
            "not an assignment",
            """\
            from tensorflow.keras.mixed_precision import LossScaleOptimizer

            opt = LossScaleOptimizer(opt)
            opt._optimizer = other
            """,
        ),
        Example(
            "under an isinstance check",
            """\
            import tensorflow as tf

            def learning_rate(optimizer):
                if isinstance(optimizer, tf.keras.mixed_precision.experimental.LossScaleOptimizer):
                    optimizer = optimizer._optimizer
                return optimizer.lr
            """,
            """\
            import tensorflow as tf

            def learning_rate(optimizer):
                if isinstance(optimizer, tf.keras.mixed_precision.LossScaleOptimizer):
                    optimizer = optimizer.inner_optimizer
                return optimizer.lr
            """,
            Safety.SAFE,
        ),
    ),
)
