"""Reports uses of the methods of Keras 2's optimizer that mean something else on Keras 3.

Keras 2's loss-scale optimizer applies gradients as they are; Keras 3's (TensorFlow 2.16) divides
them by the scale first. So a loop that applies gradients which were never scaled hardly trains. The
shim's class raises a RuntimeError, because it cannot know whether the scaling was forgotten or is
not wanted (LS403).

Keras 3's class lacks `get_scaled_loss` and `get_unscaled_gradients`, so `hasattr(opt,
"get_scaled_loss")` is False: the loss is not scaled, but the gradients are still divided by the
scale. The shim's class has the methods, but a file that only tests for them does not show which
class it is called with (LS404).

`fit` on Keras 3 makes a step from `scale_loss` and `apply_gradients`, which gets gradients that are
still scaled, and does not call `get_scaled_loss`, `get_unscaled_gradients` or `minimize`. A
subclass keeps its base, in the shim, but its methods of these names, and those that replace them in
an object, do less there, or see other numbers (LS405).
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.classes import (
    inherits,
    is_loss_scale_optimizer,
    is_made_here,
    is_written_for_keras_3,
    may_compile,
    may_inherit,
)
from ...resolve.mentions import accesses
from ...resolve.values import class_named
from ..rule import Program, Proposal, Rule

__all__ = ["RULE"]

_SCALING = ("get_scaled_loss", "get_unscaled_gradients")
"""Methods that only a loss-scale optimizer has, if another file has its base class."""
_OF_OLDER = ("compute_gradients", "_compute_gradients")
"""Methods of older optimizers, which scale and unscale themselves; Keras 3 has none of them."""
_STEPS = (*_SCALING, "apply_gradients", "minimize")
_NAME = "LossScaleOptimizer"
_CLASSES = (_NAME, "from_loss_scale")
_UNSCALED = (
    "these gradients are not scaled, but Keras 3 divides them by the scale: scale the loss "
    "(get_scaled_loss, then get_unscaled_gradients), or use optimizer.inner_optimizer"
)
_LACKED = (
    "Keras 3's own class lacks this method: the loss stays unscaled, but gradients are divided by "
    "the scale; use tf_lossscale's class, and test with isinstance"
)
_NOT_CALLED = "does not call {}"
_SCALED = "gives apply_gradients gradients that are still scaled"
_OVERRIDDEN = (
    "fit on Keras 3 {}: override scale_loss, and apply of the inner optimizer, which gets unscaled "
    "gradients, or train in a loop that calls the methods itself"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports steps without scaling, tests for the methods, and overrides of them."""
    if not program.options.for_keras_3 and not program.options.to_shim:
        return
    is_scaled = any(program.attributes(name) for name in (*_SCALING, *_OF_OLDER))
    if not is_scaled and not program.cached(is_written_for_keras_3):
        for attribute in program.attributes("apply_gradients"):
            call = program.call_of(attribute)
            if call is not None and is_loss_scale_optimizer(program, attribute.value):
                yield Proposal.report(call, "LS403", f"{_NAME}.apply_gradients", _UNSCALED)
    for call, name in accesses(program, _SCALING):
        if not is_made_here(program, call.args[0].value) and not _makes_all(program):
            yield Proposal.report(call, "LS404", f"{_NAME}.{name}", _LACKED)
    for scope in program.scopes.all:
        owner = scope.node
        if not isinstance(owner, cst.ClassDef):
            continue
        bases = (class_named(program, base.value) for base in owner.bases)
        classes = [owner, *filter(None, bases)]
        names = {name for one in program.scopes.all if one.node in classes for name in one.bindings}
        may_wrap = may_inherit(program, owner) and not names.isdisjoint(_SCALING)
        if not names.isdisjoint(_STEPS) and (may_wrap or inherits(program, owner)):
            yield Proposal.report(owner.name, "LS405", owner.name.value, _overridden(names))
    for name in _SCALING:
        for attribute in program.attributes(name):
            is_own = isinstance(attribute.value, cst.Name) and attribute.value.value == "self"
            if program.is_stored(attribute) and not is_own:
                yield Proposal.report(attribute, "LS405", f"{_NAME}.{name}", _overridden({name}))


def _makes_all(program: Program) -> bool:
    """Whether the file makes its loss-scale optimizers itself, which become the shim's."""
    named = [one.node for one in program.references if one.legacy.is_keras_optimizer]
    named += [node for node, name in program.migrated if name in _CLASSES]
    is_called = any(program.call_of(node) is not None for node in named)
    return is_called and not may_compile(program)


def _overridden(names: set[str]) -> str:
    """What `fit` on Keras 3 does with methods of these names."""
    uncalled = [name for name in _STEPS if name in names and name != "apply_gradients"]
    found = [_NOT_CALLED.format(" and ".join(uncalled))] if uncalled else []
    return _OVERRIDDEN.format(" and ".join(found + [_SCALED] * ("apply_gradients" in names)))


RULE = Rule(
    codes={
        "LS403": "apply_gradients without scaling on Keras 3",
        "LS404": "a test for the methods that Keras 3's own class lacks",
        "LS405": "a subclass of tf.keras.mixed_precision.LossScaleOptimizer",
    },
    summary="methods that mean something else on Keras 3, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    cases="""
        # not on Keras 2
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
          opt.apply_gradients(zip(tape.gradient(loss, variables), variables))

        # a loop that takes any optimizer
        > manual, --keras 3: isinstance
          if hasattr(opt, "get_scaled_loss"):
              loss = opt.get_scaled_loss(loss)

        # a subclass that overrides a method of Keras 2
        > manual, --keras 3: scale_loss
        - from tensorflow.keras.mixed_precision import LossScaleOptimizer
        + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

          class Logging(LossScaleOptimizer):
              def get_scaled_loss(self, loss):
                  return super().get_scaled_loss(loss)
    """,
)
