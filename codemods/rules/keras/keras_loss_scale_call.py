"""Rewrites `optimizer.loss_scale()` to `optimizer.loss_scale`.

Up to TensorFlow 2.3 the attribute was a callable loss scale; since 2.4 (release notes 2.4.0) it is
a float32 tensor, and calling it raises a TypeError. On TensorFlow 2.3 the shim's is both. Other
classes have a method of this name, so the parentheses go where the object is seen to be a Keras
loss-scale optimizer. Calls on objects that may be one are reported, as is any use of the attribute
as a loss scale with methods, such as `optimizer.loss_scale.update(gradients)`. With `--to shim`, a
call whose value is kept is reported, too: on TensorFlow 2.3, the attribute changes with the scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Group
from ...resolve.classes import is_loss_scale_optimizer, is_made_here, may_be_loss_scale_optimizer
from ...resolve.guards import depends_on_version
from ...resolve.mentions import reads_of
from ...resolve.tree import last_name
from ...resolve.values import reads_of_value
from ..rule import Program, Proposal, Rule, Safety

__all__ = ["RULE"]

_SYMBOL = "LossScaleOptimizer.loss_scale"
_PERHAPS = (
    "if this is a Keras loss-scale optimizer, drop the parentheses: loss_scale is a property since "
    "TensorFlow 2.4, and calling it raises a TypeError"
)
_OBJECT = (
    "if this is a Keras loss-scale optimizer, loss_scale is a tensor since TensorFlow 2.4, and no "
    "loss scale with methods: use the attributes of the optimizer"
)
_OF_LOSS_SCALES = (
    "__call__", "_current_loss_scale", "_loss_scale_value", "_num_good_steps", "get_config",
    "increment_period", "initial_loss_scale", "multiplier", "update",
)  # fmt: skip

_KEPT = (
    "on TensorFlow 2.3, the attribute is the live loss scale, and not its value now: write "
    "tf.identity({}), or float(...) where it is read eagerly"
)
_KEEPING = (
    cst.AnnAssign, cst.Assign, cst.BaseComp, cst.Comparison, cst.ComparisonTarget, cst.DictElement,
    cst.Element, cst.Lambda, cst.NamedExpr, cst.Return, cst.Yield,
)  # fmt: skip
_COLLECTING = (
    "add", "append", "dict", "eval", "get_value", "insert", "put", "setdefault", "update",
)  # fmt: skip
"""Functions that keep a value; `get_value` and `eval` of Keras return what is no tensor as is."""
_KIND = ("callable", "getattr", "hasattr", "isinstance", "type")


def check(program: Program) -> Iterator[Proposal]:
    """Proposes to drop the parentheses where a Keras loss-scale optimizer's scale is called."""
    for read, owner in reads_of(program, "loss_scale"):
        if depends_on_version(program, read) or _has_other_form(program, read):
            continue  # right as it is: the branch for each version has its own form
        call = program.call_of(read)
        if call is None or call.args:
            is_used = _is_used_as_loss_scale(program, read)
            if is_used and may_be_loss_scale_optimizer(program, owner):
                yield Proposal.report(read, "LS302", _SYMBOL, _OBJECT)
        elif _is_plain(program, call) and is_loss_scale_optimizer(program, owner):
            if program.options.to_shim and _is_kept(program, call):
                yield Proposal.report(call, "LS302", _SYMBOL, _KEPT.format(program.code(read)))
                continue
            message = "loss_scale is a property since TensorFlow 2.4; parentheses dropped"
            made = Proposal(call, "LS302", _SYMBOL, Safety.SAFE, message)
            yield made._replace(edits=((call, _uncalled),), group=Group.KERAS_OPTIMIZERS)
        elif is_made_here(program, owner) or may_be_loss_scale_optimizer(program, owner):
            yield Proposal.report(call, "LS302", _SYMBOL, _PERHAPS)


def _has_other_form(program: Program, read: cst.CSTNode) -> bool:
    """Whether a handler or a test around a place has the form of the other versions, too."""
    below = read
    for above in program.ancestors(read):
        if isinstance(above, cst.Try) and below is above.body:
            return any("loss_scale" in program.code(one.body) for one in above.handlers)
        if isinstance(above, (cst.If, cst.IfExp)) and "callable(" in program.code(above.test):
            return True
        below = above
    return False


def _is_used_as_loss_scale(program: Program, read: cst.CSTNode) -> bool:
    """Whether a value is read or called as an object, directly or under a name it is bound to."""
    loads = reads_of_value(program, read)
    return any(program.call_of(load) is not None for load in loads) or any(
        _member(program, place) in _OF_LOSS_SCALES or _asks_kind(program, place)
        for place in [read, *loads]
    )


def _asks_kind(program: Program, node: cst.CSTNode) -> bool:
    """Whether a test asks what kind of object a value is."""
    argument = program.parents.get(node)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not argument:
        return False
    return isinstance(call.func, cst.Name) and call.func.value in _KIND


def _is_kept(program: Program, call: cst.Call) -> bool:
    """Whether the value of a call is kept as it is, and so may be read after the scale changes."""
    _, parent = program.outside(call, (cst.IfExp, cst.BooleanOperation))
    if isinstance(parent, cst.Arg):
        owner = program.parents.get(parent)
        return isinstance(owner, cst.Call) and last_name(owner.func) in _COLLECTING
    return isinstance(parent, _KEEPING)


def _is_plain(program: Program, call: cst.Call) -> bool:
    """Whether a call has no comment, and no word follows it at once, as in `[x()for x in y]`."""
    code, parent = program.code(call), program.parents.get(call)
    after = program.code(parent).partition(code)[2] if parent is not None else ""
    return "#" not in code and not after[:1].isalpha()


def _member(program: Program, node: cst.CSTNode) -> str:
    parent = program.parents.get(node)
    return parent.attr.value if isinstance(parent, cst.Attribute) else ""


def _uncalled(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Call)
    function = node.func
    left, right = [*node.lpar, *function.lpar], [*function.rpar, *node.rpar]
    return function.with_changes(lpar=left, rpar=right)


RULE = Rule(
    codes={"LS302": "loss_scale() of a Keras LossScaleOptimizer"},
    summary="optimizer.loss_scale() to optimizer.loss_scale",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0",
    check=check,
    cases="""
        # not where the optimizer may be of another class
        > manual: TypeError
          from tensorflow.keras.mixed_precision import LossScaleOptimizer

          def train(opt, fp16):
              if fp16:
                  opt = LossScaleOptimizer(opt)
              print(opt.loss_scale())

        # after the optimizer was wrapped
          import tensorflow as tf

          opt = tf.keras.optimizers.SGD()
        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
        + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)

          def log():
        -     print(float(opt.loss_scale()))
        +     print(float(opt.loss_scale))
    """,
)
