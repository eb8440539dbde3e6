"""Reports uses of `model.optimizer` that Keras 3 lacks, where `compile` may have wrapped it.

Under a `mixed_float16` policy, `compile` wraps the optimizer of a model in the class of the
installed Keras. The class of Keras 3 (TensorFlow 2.16) has no `get_scaled_loss`, no
`get_unscaled_gradients` and no `loss_scale`: a training step that uses them raises an
AttributeError. No edit of the step alone is right, so a person must wrap the optimizer in the
shim's class before `compile`. Where the file does so, nothing is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.classes import (
    is_configuration,
    is_loss_scale_optimizer,
    may_be_loss_scale_optimizer,
    sets_policy,
)
from ...resolve.guards import depends_on_version
from ...resolve.tree import walk
from ...resolve.values import sources_of
from ..rule import Program, Proposal, Rule

__all__ = ["RULE"]

_METHODS = ("get_scaled_loss", "get_unscaled_gradients")
_SCALE = "loss_scale"
_COMPILED = "optimizer"
"""The attribute in which a Keras model keeps its optimizer."""
_CHECKPOINT = "Checkpoint"
"""A part of the names of classes that only save an optimizer."""
_MESSAGE = (
    "compile may have wrapped this optimizer in the class of the installed Keras, and that of "
    "Keras 3 has no {}: wrap the optimizer in tf_lossscale's class before compile"
)


def check(program: Program) -> Iterator[Proposal]:
    """Reports the first use in a file that no test of the optimizer guards."""
    if not program.options.for_keras_3 and not program.options.to_shim:
        return
    if program.cached(_compiles_wrapped):
        return
    found: list[cst.Attribute] = []
    for name in (*_METHODS, _SCALE):
        for read in program.attributes(name):
            is_call = program.call_of(read) is not None
            if is_call is (name == _SCALE) or program.is_stored(read) or _is_guarded(program, read):
                continue  # LS302 reports calls of the scale
            if name == _SCALE and not _may_scale(program, read.value):
                continue
            if any(_is_compiled(program, one) for one in sources_of(program, read.value)):
                found.append(read)
    if found:
        names = ", ".join(dict.fromkeys(one.attr.value for one in found))
        symbol = f"LossScaleOptimizer.{found[0].attr.value}"
        yield Proposal.report(found[0], "LS406", symbol, _MESSAGE.format(names))


def _may_scale(program: Program, node: cst.BaseExpression) -> bool:
    if program.cached(sets_policy):
        return not is_configuration(program, node)
    return may_be_loss_scale_optimizer(program, node)


def _compiles_wrapped(program: Program) -> bool:
    """Whether every `compile` with an optimizer in this file gets a loss-scale optimizer."""
    given = []
    for attribute in program.attributes("compile"):
        call = program.call_of(attribute)
        for index, argument in enumerate(call.args if call is not None else ()):
            name = argument.keyword.value if argument.keyword is not None else ""
            if name == _COMPILED or (not index and not name and not argument.star):
                given.append(argument.value)
    return bool(given) and all(is_loss_scale_optimizer(program, one) for one in given)


def _is_compiled(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is `model.optimizer`, and nothing here assigns an optimizer to it."""
    if not isinstance(node, cst.Attribute) or node.attr.value != _COMPILED:
        return False
    owners = [one for one in sources_of(program, node.value) if isinstance(one, cst.Call)]
    if owners and all(_CHECKPOINT in program.code(one.func) for one in owners):
        return False  # as in TensorSpeech/TensorFlowTTS
    return not any(program.is_stored(one) for one in program.attributes(_COMPILED))


def _is_guarded(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a test decides about the use that is false for what `compile` makes.

    That is one for the method itself, such as `hasattr`, or for the experimental class, which LS301
    reports; or one of the version, which LS908 reports.
    """
    if depends_on_version(program, attribute):
        return True
    below: cst.CSTNode = attribute
    for above in program.ancestors(attribute):
        if isinstance(above, (cst.If, cst.IfExp)) and below is not above.test:
            test = program.code(above.test)
            if any(name in test for name in (*_METHODS, _SCALE)):
                return True
            nodes = set(walk(above.test)) if below is above.body else set()
            named = (one for one in program.references if one.legacy.is_experimental_optimizer)
            if any(one.node in nodes for one in named):
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
    cases="""
        # not on Keras 2
          import tensorflow as tf

          class Scaled(tf.keras.Model):
              def train_step(self, data):
                  return self.optimizer.get_scaled_loss(self.loss_of(data))

        # a step of a model
        > manual, --keras 3: before compile
          import tensorflow as tf

          class Scaled(tf.keras.Model):
              def train_step(self, data):
                  return self.optimizer.get_scaled_loss(self.loss_of(data))
    """,
)
