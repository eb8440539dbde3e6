"""Moves the final class to the shim's for Keras 3, and repairs calls of it with `loss_scale`.

Keras 3 (TensorFlow 2.16, release notes 2.16.1) has a different class of the same name. It lacks
`get_scaled_loss`, `get_unscaled_gradients`, `loss_scale` and fixed scales. Its scale can reach 0 or
infinity. It checks the gradients of the first replica only, and does not advance `iterations` on a
skipped step. The shim's class subclasses it and keeps the methods and numbers of Keras 2. With
`--unsafe`, plain loops use the installed class itself (LS402).

A program is written for Keras 3's class, which then stays, if it calls `scale_loss` of an optimizer
that is certainly a loss-scale optimizer. If another file of it calls `get_scaled_loss` instead, it
needs the shim's class, which has both. On Keras 2, the public class cannot be subclassed from
TensorFlow 2.9 on; the shim's can.

`tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")` is what a search and
replace of `experimental.` leaves behind (LS304). No TensorFlow accepts it: a TypeError up to 2.15,
a ValueError in Keras 3, where `LossScaleOptimizer(opt, "dynamic")` even constructs and fails at the
first step.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...facts import Need
from ...model import Group
from ...resolve.legacy_symbols import root_of
from ...resolve.mentions import Mention
from ...resolve.places import Reference
from ...rewrite.arguments import argument_of_scale, has_loss_scale
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, Safety, When
from ..to_shim import to_shim
from ._class_uses import reports_of_class
from ._constructors import final_class, plan
from .keras3_plain_loop import plain_loops

__all__ = ["RULE"]

_NAME = "LossScaleOptimizer"
_BUG = "the final class never took loss_scale, in any TensorFlow"
_WRITE = "write LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)"
_SHIM_CLASS = (
    "the shim's class keeps the methods and numbers of Keras 2; the class of this name in Keras 3 "
    "does not"
)
_BACKEND = (
    "the shim's class needs the TensorFlow backend, but this file imports only keras, which can "
    "run on a different one"
)
_PRIVATE = "the module of this path is private, and is in no current TensorFlow"
_BASE = "from TensorFlow 2.9 on, the public class of Keras 2 cannot be subclassed"
_MEMBER = "from TensorFlow 2.9 on, the public class of Keras 2 lacks most attributes"
_ON_SHIM = "the program uses the shim's final class already"
_SCALING = ("get_scaled_loss", "get_unscaled_gradients")


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """On Keras 2, subclasses and attributes of the class need the shim's."""
    if options.for_keras_3:
        return
    for reference in _moving(program):
        why = {Mention.BASE: _BASE, Mention.MEMBER: _MEMBER}.get(program.mentions.of(reference))
        if why:
            yield Obstacle.at(reference, why, When.IF_NOT_FOR_KERAS_3)
    for node, name in program.migrated:
        if name == _NAME:  # an earlier run has sent the classes of the program there together
            need = Need(Group.KERAS_OPTIMIZERS, "LS401", _NAME, _ON_SHIM)
            yield Obstacle(node, need._replace(when=When.IF_NOT_FOR_KERAS_3))


def _moving(program: Program) -> Iterator[Reference]:
    """The places of the final class that can move; a call with a loss scale is repaired."""
    for reference in program.references_to("LS401"):
        call = program.call_of(reference.node)
        is_repaired = call is not None and has_loss_scale(call)
        if reference.legacy.root != "tf_keras" and not is_repaired:
            yield reference


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the shim's class on Keras 3, and the public path of the class on Keras 2."""
    if decision.is_for_keras_3:
        return
    if plain_loops(program, options, decision) is not None:
        return
    for reference in _moving(program):
        if not options.for_keras_3:
            if reference.legacy.is_private:
                path = final_class(options, decision)
                made = Proposal.moved(reference, path, _PRIVATE)
                assert made is not None
                yield made
        elif _may_run_elsewhere(program, reference):
            made = to_shim(reference, "")
            yield made._replace(outcome=Safety.UNSAFE, message=_BACKEND)
        else:
            yield to_shim(reference, _SHIM_CLASS)


def _may_run_elsewhere(program: Program, reference: Reference) -> bool:
    """Whether a file imports only `keras`, and nothing shows that it is Keras 2's."""
    if reference.legacy.root != "keras" or reference.legacy.is_private:
        return False
    if any(program.attributes(name) for name in _SCALING):
        return False
    roots = (root_of(binding.path) for binding in program.imports())
    return not any(root is not None and root.name not in ("keras", "tf_keras") for root in roots)


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Repairs calls with a loss scale; reports uses that depend on the exact class."""
    for reference in program.references_to("LS401"):
        call = program.call_of(reference.node)
        if call is not None and has_loss_scale(call):
            yield _repaired(program, reference, call, options, decision)
    for node, name in program.migrated:
        call = program.call_of(node)
        if name == _NAME and call is not None and has_loss_scale(call):
            yield _repaired_on_shim(program, call, options, decision)
    yield from reports_of_class(program, "LS401", decision)


def _repaired_on_shim(
    program: Program, call: cst.Call, options: Options, decision: Decision
) -> Proposal:
    """The call of the shim's final class, which a first run has written."""
    made = plan(program, call, decision.reads)
    if made.problem or made.path or options.to_shim:
        return Proposal.report(argument_of_scale(call), "LS304", _NAME, f"{_BUG}: {_WRITE}")
    repaired = Proposal(call, "LS304", _NAME, Safety.SAFE, f"{_BUG}; {made.message}")
    return repaired._replace(edits=made.edits, removed=made.removed)


def _repaired(
    program: Program,
    reference: Reference,
    call: cst.Call,
    options: Options,
    decision: Decision,
) -> Proposal:
    """The call with the final class's own arguments; `--to shim` edits no arguments."""
    made = plan(program, call, decision.reads)
    if made.problem or options.to_shim:
        return Proposal.report(argument_of_scale(call), "LS304", _NAME, f"{_BUG}: {_WRITE}")
    path = made.path or final_class(options, decision)
    if reference.legacy.root == "tf_keras" and not made.path:
        path = ""
    message = f"{_BUG}; {made.message}"
    repaired = Proposal.safe(reference, message, path=path, edits=made.edits, removed=made.removed)
    return repaired._replace(code="LS304")


RULE = Rule(
    codes={
        "LS304": "the final LossScaleOptimizer with loss_scale=",
        "LS401": "tf.keras.mixed_precision.LossScaleOptimizer on Keras 3",
    },
    summary="the final Keras LossScaleOptimizer to the shim's, for Keras 3; loss_scale= repaired",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    needs=needs,
    check=check,
    reports=reports,
    cases="""
        # not on Keras 2
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)

        # on Keras 3
        > --keras 3: keeps the methods
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)

        # dynamic, and a number
        > safe: never took loss_scale
          from tensorflow.keras import mixed_precision

        - opt = mixed_precision.LossScaleOptimizer(opt, loss_scale='dynamic')
        - opt = mixed_precision.LossScaleOptimizer(opt, loss_scale=128.0)
        + opt = mixed_precision.LossScaleOptimizer(opt)
        + opt = mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=128.0)

        # a loss scale, for the shim
        > manual, --to shim
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")
        + opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt, loss_scale="dynamic")

        # on Keras 3, with an import and a class test
        > --keras 3
        - from tensorflow.keras.mixed_precision import LossScaleOptimizer
        + from tf_lossscale.keras.mixed_precision import LossScaleOptimizer

          if not isinstance(opt, LossScaleOptimizer):
              opt = LossScaleOptimizer(opt, dynamic=False, initial_scale=128)
    """,
)
