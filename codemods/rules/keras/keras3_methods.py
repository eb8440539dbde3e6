"""Reports uses of the methods of Keras 2's optimizer that mean something else on Keras 3.

Keras 3's class (TensorFlow 2.16) lacks `get_scaled_loss` and `get_unscaled_gradients`. The shim's
classes have them. Where nothing in the run makes a loss-scale optimizer or sets a policy, a file
that tests for the methods (LS404) or calls them (LS407) may get an optimizer of Keras 3: a test is
False, so the loss is not scaled but the gradients are still divided by the scale; a call raises an
AttributeError.

`fit` on Keras 3 makes a step from `scale_loss` and `apply_gradients`, which gets gradients that are
still scaled, and does not call `get_scaled_loss`, `get_unscaled_gradients` or `minimize`. A
subclass keeps its base, in the shim, but its methods of these names, and those that replace them in
an object, do less there, or see other numbers (LS405).

LS403, for a loop that applies gradients without scaling, is no longer reported: with the shim's
classes such a step means on Keras 3 what it meant on Keras 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.vocabulary import SCALING
from ..rule import Decision, Options, Program, Proposal, Rule

__all__ = ["RULE"]

_STEPS = (*SCALING, "apply_gradients", "minimize")
_NAME = "LossScaleOptimizer"
_LACKED = (
    "Keras 3's own class lacks this method: the loss stays unscaled, but gradients are divided by "
    "the scale; use tf_lossscale's class, and test with isinstance"
)
_UNKNOWN = (
    "no class of Keras 3 has {}: wrap the optimizer where it is made, in "
    "tfls.keras.mixed_precision.LossScaleOptimizer(optimizer)"
)
_NOT_CALLED = "does not call {}"
_SCALED = "gives apply_gradients gradients that are still scaled"
_OVERRIDDEN = (
    "fit on Keras 3 {}: override scale_loss, and apply of the inner optimizer, which gets unscaled "
    "gradients, or train in a loop that calls the methods itself"
)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports overrides of the methods that steps use, and uses of Keras 2's methods.

    Tests for Keras 2's methods, and calls of them, are reported only if nothing in the run shows
    what makes its loss-scale optimizers.
    """
    if not options.for_keras_3 and not options.to_shim:
        return
    if not decision.is_origin_known:
        yield from _of_unknown_origin(program)
    yield from _overrides(program, decision)


def _of_unknown_origin(program: Program) -> Iterator[Proposal]:
    for use in program.keras_2_methods.foreign_uses:
        symbol = f"{_NAME}.{use.name}"
        if use.is_test:
            yield Proposal.report(use.node, "LS404", symbol, _LACKED)
        elif not use.is_compiled:
            yield Proposal.report(use.node, "LS407", symbol, _UNKNOWN.format(use.name))


def _overrides(program: Program, decision: Decision) -> Iterator[Proposal]:
    """The classes and objects of which methods are replaced that `fit` on Keras 3 does not call."""
    for scope in program.scopes.all:
        owner = scope.node
        if isinstance(owner, cst.ClassDef):
            yield from _overrides_of_class(program, owner, decision)
    for name in SCALING:
        for attribute in program.attributes(name):
            if not program.is_stored(attribute) or _is_missing(program, attribute):
                continue
            if _is_wrapper(program, attribute.value):
                yield Proposal.report(attribute, "LS405", f"{_NAME}.{name}", _overridden({name}))


def _overrides_of_class(
    program: Program, owner: cst.ClassDef, decision: Decision
) -> Iterator[Proposal]:
    """Reports a class that is, or may be, a loss-scale optimizer and has one of `_STEPS`.

    Methods of a base in the file count, too. A class with a base from another file may be one if it
    has a method of Keras 2 and other files make loss-scale optimizers.
    """
    bases = (program.values.class_named(base.value) for base in owner.bases)
    classes = [owner, *filter(None, bases)]
    scopes = (scope for scope in program.scopes.all if scope.node in classes)
    names = {name for scope in scopes for name in scope.bindings}
    if names.isdisjoint(_STEPS):
        return
    has_scaling = not names.isdisjoint(SCALING)
    may_inherit = decision.has_maker_elsewhere and program.classes.may_inherit(owner)
    if (may_inherit and has_scaling) or program.classes.inherits(owner):
        yield Proposal.report(owner.name, "LS405", owner.name.value, _overridden(names))


def _is_missing(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a method is assigned only where the object lacks it, and so is a plain optimizer.

    The innermost condition with the name of the method decides: the assignment must be in its body
    if it begins with `not`, as in `if not hasattr(opt, "get_scaled_loss")`, else in its `else`.
    """
    name = attribute.attr.value
    below: cst.CSTNode = attribute
    for above in program.ancestors(attribute):
        if isinstance(above, (cst.If, cst.IfExp)) and name in program.code(above.test):
            if below is above.test:
                return False
            is_negated = program.code(above.test).startswith("not ")
            is_in_body = below is above.body
            return is_in_body is is_negated
        below = above
    return False


def _is_wrapper(program: Program, node: cst.BaseExpression) -> bool:
    """Whether an object may be a loss-scale optimizer, and is no plain one of Keras."""
    is_own = isinstance(node, cst.Name) and node.value == "self"
    is_class = program.classes.is_loss_scale_class(node)  # reported as a class that is changed
    if is_own or is_class or not program.classes.may_be_loss_scale_optimizer(node):
        return False
    return program.classes.can_be_made_here(node) or not program.classes.is_made_here(node)


def _overridden(names: set[str]) -> str:
    """What `fit` on Keras 3 does with methods of these names."""
    uncalled = [name for name in _STEPS if name in names and name != "apply_gradients"]
    effects: list[str] = []
    if uncalled:
        effects.append(_NOT_CALLED.format(" and ".join(uncalled)))
    if "apply_gradients" in names:
        effects.append(_SCALED)
    return _OVERRIDDEN.format(" and ".join(effects))


RULE = Rule(
    codes={
        "LS403": "apply_gradients without scaling on Keras 3",
        "LS404": "a test for the methods that Keras 3's own class lacks",
        "LS405": "a subclass of tf.keras.mixed_precision.LossScaleOptimizer",
        "LS407": "get_scaled_loss or get_unscaled_gradients of an optimizer of unknown origin",
    },
    summary="methods that mean something else on Keras 3, reported",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    reports=reports,
    cases="""
        # not on Keras 2
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
          opt.apply_gradients(zip(tape.gradient(loss, variables), variables))

        # a loop that takes any optimizer
        > manual, --keras 3: isinstance
          if hasattr(opt, "get_scaled_loss"):
              loss = opt.get_scaled_loss(loss)

        # a conditional expression that takes any optimizer
        > manual, --keras 3
          is_scaled = hasattr(opt, "get_scaled_loss")
          loss = opt.get_scaled_loss(loss) if is_scaled else loss

        # a step with an optimizer from elsewhere
        > manual, --keras 3
          import tensorflow as tf

          def step(opt, tape, loss, variables):
              gradients = tape.gradient(opt.get_scaled_loss(loss), variables)
              opt.apply_gradients(zip(opt.get_unscaled_gradients(gradients), variables))

        # a trainer that is given an optimizer
        > manual, --keras 3
          import tensorflow as tf

          class Trainer:
              def __init__(self, optimizer):
                  self.optimizer = optimizer

              def scaled(self, loss):
                  return self.optimizer.get_scaled_loss(loss)

        # a subclass that overrides a method of Keras 2
        > manual, --keras 3: scale_loss
        - from tensorflow.keras.mixed_precision import LossScaleOptimizer
        + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

          class Logging(LossScaleOptimizer):
              def get_scaled_loss(self, loss):
                  return super().get_scaled_loss(loss)

        # a subclass that sees the gradients
        > manual, --keras 3
        - from tensorflow.keras.mixed_precision import LossScaleOptimizer
        + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

          class Clipping(LossScaleOptimizer):
              def apply_gradients(self, grads_and_vars):
                  return super().apply_gradients(clipped(grads_and_vars))
    """,
)
