"""Reports uses of `model.optimizer` that Keras 3 lacks, where `compile` may have wrapped it.

Under a `mixed_float16` policy, `compile` wraps the optimizer of a model in the class of the
installed Keras. That of Keras 3 (TensorFlow 2.16) has no `get_scaled_loss`, no
`get_unscaled_gradients` and no `loss_scale`: a training step that uses them raises an
AttributeError. No edit of the step alone is right, so a person must wrap the optimizer in the
shim's class before `compile`. A read of `model.optimizer.loss_scale` counts in a program that makes
loss-scale optimizers or sets a policy, unless the object is called a configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...rewrite.proposal import Proposal
from ..findings import report
from ..rule import Example, Rule
from ._loss_scale_receivers import may_be_loss_scale_optimizer
from ._optimizer_sources import Source, sources

__all__ = ["RULE"]

_METHODS = ("get_scaled_loss", "get_unscaled_gradients")
_SCALE = "loss_scale"
_CONFIGURATIONS = re.compile(r"conf|cfg|param|flag|arg|option|setting", re.IGNORECASE)
_MESSAGE = (
    "compile may have wrapped this optimizer in the class of the installed Keras, and that of "
    "Keras 3 has no {}: wrap the optimizer in tf_lossscale's class before compile"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports each use that no test of the optimizer guards."""
    if not program.options.for_keras_3 and program.options.target is not Target.SHIM:
        return
    for name in (*_METHODS, _SCALE):
        for attribute in program.attributes(name):
            is_used = _is_read if name == _SCALE else _is_called
            if not is_used(program, attribute) or _is_guarded(program, attribute):
                continue
            found = sources(program, attribute.value)
            if Source.COMPILED in found and Source.WRAPPED not in found:
                yield report(
                    attribute, "LS406", f"LossScaleOptimizer.{name}", _MESSAGE.format(name)
                )


def _is_called(program: Program, attribute: cst.Attribute) -> bool:
    return program.call_of(attribute) is not None


def _is_read(program: Program, attribute: cst.Attribute) -> bool:
    """Whether the loss scale of an optimizer is read. LS302 reports calls of it."""
    owner = attribute.value.value if isinstance(attribute.value, cst.Attribute) else attribute.value
    return (
        program.call_of(attribute) is None
        and not isinstance(program.parents.get(attribute), cst.AssignTarget)
        and not _CONFIGURATIONS.search(program.code(owner))
        and may_be_loss_scale_optimizer(program, attribute.value)
    )


def _is_guarded(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a test that LS401 or LS404 looks at decides about the call."""
    below: cst.CSTNode = attribute
    for above in program.ancestors(attribute):
        if isinstance(above, (cst.If, cst.IfExp)) and below is not above.test:
            test = program.code(above.test)
            if "LossScaleOptimizer" in test or any(name in test for name in (*_METHODS, _SCALE)):
                return True
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return False
        below = above
    return False


RULE = Rule(
    codes={"LS406": "get_scaled_loss or loss_scale of an optimizer that compile may have wrapped"},
    summary="Keras 2's methods of a compiled optimizer, reported for Keras 3",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not on Keras 2",
            """\
            import tensorflow as tf

            class Scaled(tf.keras.Model):
                def train_step(self, data):
                    return self.optimizer.get_scaled_loss(self.loss_of(data))
            """,
        ),
        Example(
            "not where the optimizer is always wrapped before compile",
            """\
            import tensorflow as tf
            from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

            class Scaled(tf.keras.Model):
                def train_step(self, data):
                    return self.optimizer.get_scaled_loss(self.loss_of(data))

            model = Scaled()
            model.compile(LossScaleOptimizer(tf.keras.optimizers.SGD()))
            """,
            keras=3,
        ),
        Example(
            "a step of a model",
            """\
            import tensorflow as tf

            class Scaled(tf.keras.Model):
                def train_step(self, data):
                    return self.optimizer.get_scaled_loss(self.loss_of(data))
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="before compile",
        ),
        Example(
            "not the loss scale of a configuration",
            """\
            from tensorflow.keras import mixed_precision

            mixed_precision.set_global_policy("mixed_float16")
            scale = config.optimizer.loss_scale
            """,
            keras=3,
        ),
        Example(
            "the loss scale of a compiled model",
            """\
            from tensorflow.keras import mixed_precision

            mixed_precision.set_global_policy("mixed_float16")
            model.compile("sgd", "mse")
            print(float(model.optimizer.loss_scale))
            """,
            None,
            Safety.MANUAL,
            keras=3,
            message_contains="no loss_scale",
        ),
    ),
)
