"""Rewrites `optimizer._optimizer` to `optimizer.inner_optimizer`; `_loss_scale` needs the shim.

The experimental class kept the wrapped optimizer and the loss scale in private attributes;
TensorFlow 2.4 made `inner_optimizer` public, and Keras 3 only has the public one. The shim's
classes have both attributes on every version. So a program goes to the final API only if it reads
no `_loss_scale`, and `_optimizer` only of objects that are certain to be loss-scale optimizers.
Other private attributes of these, and their configs, need the shim, too. Other classes have
attributes of these names, which are left.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Group, Safety
from ...resolve.classes import is_loss_scale_optimizer, may_be_loss_scale_optimizer
from ...resolve.program import Program
from ...resolve.tree import is_stored
from ...rewrite.proposal import Proposal
from ..findings import place_needs_shim, report
from ..names import accesses
from ..rule import Example, Rule

__all__ = ["RULE"]

_PUBLIC = "use inner_optimizer, which is public since TensorFlow 2.4"
_PRIVATE = "the final class has no `{}` of this meaning on every Keras"
_DICTIONARY = (
    "the dictionary of an optimizer has other names in each Keras, and in the shim's class: read "
    "the attributes of the optimizer itself"
)
_KNOWN = ("_optimizer", "_loss_scale")
_CONFIGS = ("from_config", "get_config")


def check(program: Program) -> Iterator[Proposal]:
    """Proposes the public name for each read of a Keras loss-scale optimizer's attribute."""
    is_experimental = any(one.legacy.is_experimental_optimizer for one in program.references)
    if program.goes_to_shim(Group.KERAS_OPTIMIZERS) or not is_experimental:
        return
    for name in program.scopes.attributes:
        is_private = name.startswith("_") and not name.startswith("__")
        for attribute in program.attributes(name) if is_private or name in _CONFIGS else ():
            is_certain = is_loss_scale_optimizer(program, attribute.value)
            if name == "_optimizer" and is_certain and not is_stored(attribute, program.parents):
                symbol = "LossScaleOptimizer._optimizer"
                made = Proposal(attribute, "LS303", symbol, Safety.SAFE, _PUBLIC)
                edits = ((attribute, _public),)
                yield made._replace(edits=edits, group=Group.KERAS_OPTIMIZERS)
            elif is_certain or (
                name in _KNOWN and may_be_loss_scale_optimizer(program, attribute.value)
            ):
                yield _needs_shim(attribute, name)
    for call, name in accesses(program, _KNOWN):
        yield _needs_shim(call, name)._replace(code="LS305")


def reports(program: Program) -> Iterator[Proposal]:
    """Reports the dictionary of an optimizer."""
    calls = [program.call_of(one) for one in program.scopes.loads if one.value == "vars"]
    found = [(call, call.args[0].value) for call in calls if call is not None and call.args]
    for node, owner in [*found, *((one, one.value) for one in program.attributes("__dict__"))]:
        if is_loss_scale_optimizer(program, owner):
            yield report(node, "LS305", "LossScaleOptimizer.__dict__", _DICTIONARY)


def _needs_shim(node: cst.CSTNode, name: str) -> Proposal:
    code, symbol = "LS303" if name == "_optimizer" else "LS305", f"LossScaleOptimizer.{name}"
    return place_needs_shim(node, code, symbol, Group.KERAS_OPTIMIZERS, _PRIVATE.format(name))


def _public(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Attribute)
    return node.with_changes(attr=node.attr.with_changes(value="inner_optimizer"))


RULE = Rule(
    codes={
        "LS303": "_optimizer of a Keras LossScaleOptimizer",
        "LS305": "private attributes and configs of a Keras LossScaleOptimizer",
    },
    summary="optimizer._optimizer to optimizer.inner_optimizer",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    reports=reports,
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
            "under an isinstance check",
            """\
            import tensorflow as tf

            def learning_rate(opt):
                if isinstance(opt, tf.keras.mixed_precision.experimental.LossScaleOptimizer):
                    opt = opt._optimizer
                return opt.lr
            """,
            """\
            import tf_lossscale as tfls

            def learning_rate(opt):
                if isinstance(opt, tfls.keras.mixed_precision.experimental.LossScaleOptimizer):
                    opt = opt._optimizer
                return opt.lr
            """,
            Safety.SAFE,
        ),
    ),
)
