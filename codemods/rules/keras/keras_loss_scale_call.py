"""Rewrites `optimizer.loss_scale()` to `optimizer.loss_scale` on the way to the final API.

Up to TensorFlow 2.3 the attribute was a callable loss scale; since 2.4 (release notes 2.4.0) it is
a float32 tensor, and calling it raises a TypeError. The shim's experimental class reads both ways,
on every TensorFlow. So a program goes to the final API only if each call is on an object that is
seen to be made in the same file, where the parentheses can go; otherwise it stays on the shim, and
no call is edited.

A loss scale with methods, as in `optimizer.loss_scale.update(gradients)`, is in no class since
TensorFlow 2.4. It is reported; the shim's classes have it as `_loss_scale`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...resolve.tree import string_of
from ..rule import Decision, Obstacle, Options, Program, Proposal, Rule, When

__all__ = ["RULE"]

_SYMBOL = "LossScaleOptimizer.loss_scale"
_UNSEEN = "loss_scale() is called on an object that is not seen to be made in this file"
_OF_OBJECT = "the loss scale of the final class is a tensor without methods of its own"
_OBJECT = (
    "if this is a Keras loss-scale optimizer, loss_scale is a tensor since TensorFlow 2.4, and has "
    "no {}: write {}, which the shim's classes have"
)
_OF_LOSS_SCALES = (
    "_current_loss_scale", "_increment_period", "_initial_loss_scale", "_loss_scale_value",
    "_multiplier", "_num_good_steps", "_weights", "get_config", "increment_period",
    "initial_loss_scale", "multiplier", "update",
)  # fmt: skip
"""The attributes of loss scales that tensors do not have."""
_KIND = ("getattr", "hasattr")


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The calls that cannot be edited; the shim's experimental class accepts them."""
    for read, owner in _reads(program):
        member = _member(program, read)
        if not _needs_shim(program, read, owner, member):
            continue
        classes = program.classes
        # A plain optimizer of this file can be replaced by another file.
        if classes.may_be_loss_scale_optimizer(owner) or classes.is_made_here(owner):
            why = _OF_OBJECT if member else _UNSEEN
            yield Obstacle.of_optimizers(read, "LS302", _SYMBOL, why, When.IF_EXPERIMENTAL)
            # What compile has made is of the experimental class only under the shim's policy.
            when = When.ALWAYS if program.keras_2_methods.is_compiled(owner) else When.IF_COMPILED
            yield Obstacle.of_policies(read, "LS302", _SYMBOL, why, when)


def _needs_shim(
    program: Program, read: cst.CSTNode, owner: cst.BaseExpression, member: str
) -> bool:
    """Whether a loss scale is called, and the call cannot be edited, or a member is read."""
    call = program.call_of(read)
    if call is not None:
        return not _is_editable(program, call, owner)
    return bool(member) or _is_called(program, read)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes to drop the parentheses where a Keras loss-scale optimizer's scale is called."""
    if decision.optimizers_on_shim:
        return
    for read, owner in _reads(program):
        call = program.call_of(read)
        if call is not None and _is_editable(program, call, owner):
            message = "loss_scale is a property since TensorFlow 2.4; parentheses dropped"
            yield Proposal.edited(call, "LS302", _SYMBOL, message, ((call, _uncalled),))


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports uses of the attribute as a loss scale with methods."""
    if not decision.has_maker and not decision.is_alone:
        return
    for read, owner in _reads(program):
        name = _member(program, read)
        if name and program.classes.may_be_loss_scale_optimizer(owner):
            written = f"{program.code(owner)}._loss_scale.{name}"
            yield Proposal.report(read, "LS302", _SYMBOL, _OBJECT.format(name, written))


def _reads(program: Program) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Each read of a loss scale with its owner, but for those that each version reads its way."""
    for read, owner in program.mentions.reads_of("loss_scale"):
        if program.is_stored(read) or _has_other_form(program, read):
            continue
        if not program.guards.depends_on_version(read):
            yield read, owner


def _has_other_form(program: Program, read: cst.CSTNode) -> bool:
    """Whether a handler or a test around a place has the form of the other versions, too."""
    below = read
    for above in program.ancestors(read):
        if isinstance(above, cst.Try) and below is above.body:
            return any("loss_scale" in program.code(handler.body) for handler in above.handlers)
        if isinstance(above, (cst.If, cst.IfExp)) and "callable(" in program.code(above.test):
            return True
        below = above
    return False


def _is_editable(program: Program, call: cst.Call, owner: cst.BaseExpression) -> bool:
    """Whether the parentheses of a call can go."""
    if call.args or not _is_plain(program, call):
        return False
    return program.classes.is_loss_scale_optimizer(owner)


def _is_called(program: Program, read: cst.CSTNode) -> bool:
    """Whether a value is called under a name that it is bound to, or by its `__call__`."""
    loads = program.values.reads_of(read)
    parent = program.parents.get(read)
    is_method = isinstance(parent, cst.Attribute) and parent.attr.value == "__call__"
    return is_method or any(program.call_of(load) is not None for load in loads)


def _member(program: Program, read: cst.CSTNode) -> str:
    """The attribute of loss scales that is read from a value, directly or under a name."""
    for place in [read, *program.values.reads_of(read)]:
        parent = program.parents.get(place)
        if isinstance(parent, cst.Attribute) and parent.attr.value in _OF_LOSS_SCALES:
            return parent.attr.value
        call = program.parents.get(parent) if isinstance(parent, cst.Arg) else None
        if not isinstance(call, cst.Call) or call.args[0] is not parent or len(call.args) < 2:
            continue
        name = string_of(call.args[1].value)
        if isinstance(call.func, cst.Name) and call.func.value in _KIND and name in _OF_LOSS_SCALES:
            return str(name)
    return ""


def _is_plain(program: Program, call: cst.Call) -> bool:
    """Whether a call has no comment, and no word follows it at once, as in `[x()for x in y]`."""
    code, parent = program.code(call), program.parents.get(call)
    after = program.code(parent).partition(code)[2] if parent is not None else ""
    return "#" not in code and not after[:1].isalpha()


def _uncalled(node: cst.CSTNode) -> cst.CSTNode:
    assert isinstance(node, cst.Call)
    function = node.func
    left, right = [*node.lpar, *function.lpar], [*function.rpar, *node.rpar]
    return function.with_changes(lpar=left, rpar=right)


RULE = Rule(
    codes={"LS302": "loss_scale() of a Keras LossScaleOptimizer"},
    summary="optimizer.loss_scale() to optimizer.loss_scale",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    needs=needs,
    check=check,
    reports=reports,
    cases="""
        # not with --to shim, as the shim's class reads both ways
        > --to shim
          from tf_lossscale.keras.mixed_precision.experimental import LossScaleOptimizer

          class Logged(LossScaleOptimizer):
              def log(self):
                  print(self.loss_scale())

        # after the optimizer was wrapped
          import tensorflow as tf

          opt = tf.keras.optimizers.SGD()
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
        + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)

          def log():
        -     print(float(opt.loss_scale()))
        +     print(float(opt.loss_scale))

        # on the shim where the optimizer comes from elsewhere
        > safe: is not seen to be made in this file
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(make(), "dynamic")
        + opt = tfls.keras.mixed_precision.experimental.LossScaleOptimizer(make(), "dynamic")

          def log(optimizer):
              print(float(optimizer.loss_scale()))
    """,
)
