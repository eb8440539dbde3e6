"""The plan for the constructor calls of Keras loss-scale optimizers, made once for each program.

Several rules read it: those of the experimental class, of the loss scales that become its
arguments, and of Keras 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ...model import Group
from ...resolve.places import Reference
from ...resolve.program import Program
from ...resolve.tree import Edit
from ...rewrite.arguments import keyword, loses_comments, with_arguments
from ...rewrite.rename import FINAL, SHIM, references
from ._arguments import FinalArguments, to_final_arguments

__all__ = ["ConstructorPlan", "final_class", "plan", "plan_constructors"]

_FROM_LOSS_SCALE = f"{SHIM}.keras.mixed_precision.from_loss_scale"


class ConstructorPlan(NamedTuple):
    """What becomes of one constructor call.

    Attributes:
      path: the path of what is called then; empty for the final class.
      message: what is done.
      edits: the edits of arguments, and of statements that are no longer needed.
      removed: the loss scales that the edits take away.
      arguments: the names of the final class's arguments that set the loss scale.
      problem: why there is no edit, so that the symbols go to the shim.
    """

    path: str = ""
    message: str = ""
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()
    removed: tuple[Reference, ...] = ()
    arguments: tuple[str, ...] = ()
    problem: str = ""


def final_class(program: Program) -> str:
    """The final class for the target: on Keras 3 the shim's, which keeps the methods of Keras 2."""
    on_shim = program.options.for_keras_3 or program.goes_to_shim(Group.KERAS_OPTIMIZERS)
    package = f"{SHIM}.keras.mixed_precision" if on_shim else FINAL
    return f"{package}.LossScaleOptimizer"


def plan_constructors(program: Program) -> dict[cst.Call, ConstructorPlan]:
    """The plan for every constructor call of the experimental class; none on the shim."""
    if program.goes_to_shim(Group.KERAS_OPTIMIZERS):
        return {}
    calls = [program.call_of(reference.node) for reference in references(program, "LS301")]
    return {call: plan(program, call) for call in calls if call is not None}


def plan(program: Program, call: cst.Call) -> ConstructorPlan:
    """What becomes of `call`, a constructor with the experimental class's arguments."""
    inner, scale = _matched(call)
    if inner is None or scale is None:
        return ConstructorPlan(problem="these are not seen to be an optimizer and a loss scale")
    converted = to_final_arguments(program, call, scale.value)
    if converted is None:
        return _at_run_time(call, "the loss scale cannot be determined statically")
    new = _rewritten(call, inner, scale, converted)
    if loses_comments(call, new):
        return _at_run_time(call, "the arguments contain a comment")

    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        return new.with_changes(func=node.func, args=_merged(call, node, new))

    shown = " and ".join(f"`{name}=`" for name, _ in converted.arguments)
    return ConstructorPlan(
        message=f"the loss scale is now set with {shown}"
        if shown
        else "dynamic scaling is the default; no argument needed",
        edits=((call, edit), *converted.edits),
        removed=converted.removed,
        arguments=tuple(name for name, _ in converted.arguments),
    )


def _merged(call: cst.Call, edited: cst.Call, new: cst.Call) -> Sequence[cst.Arg]:
    """The arguments of `new`, with the edits inside the inner optimizer's argument."""
    now = {old.value: fresh.value for old, fresh in zip(call.args, edited.args)}
    return [
        argument.with_changes(value=now.get(argument.value, argument.value))
        for argument in new.args
    ]


def _at_run_time(call: cst.Call, why: str) -> ConstructorPlan:
    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        return node.with_changes(
            args=[
                argument.with_changes(keyword=cst.Name("optimizer"))
                if argument.keyword is not None and argument.keyword.value == "opt"
                else argument
                for argument in node.args
            ]
        )

    message = f"{why}; from_loss_scale decides at run time"
    return ConstructorPlan(_FROM_LOSS_SCALE, message, ((call, edit),))


def _matched(call: cst.Call) -> tuple[Optional[cst.Arg], Optional[cst.Arg]]:
    """The optimizer's and the loss scale's argument; None where they are not to be seen."""
    inner = scale = None
    for index, argument in enumerate(call.args):
        name = argument.keyword.value if argument.keyword is not None else None
        if argument.star or index > 1 or name not in (None, "opt", "optimizer", "loss_scale"):
            return None, None
        if name == "loss_scale" or (name is None and index == 1):
            scale = argument
        else:
            inner = argument
    return inner, scale


def _rewritten(call: cst.Call, inner: cst.Arg, scale: cst.Arg, new: FinalArguments) -> cst.Call:
    """The call with the final class's arguments where the loss scale stood."""
    if inner.keyword is not None:
        inner = inner.with_changes(keyword=cst.Name("inner_optimizer"))
    between = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    before = call.args[0] if call.args[0] is not scale else None
    if before is not None and isinstance(before.comma, cst.Comma):
        space = before.comma.whitespace_after
        if isinstance(space, cst.ParenthesizedWhitespace) and space.first_line.comment is None:
            between = before.comma
    extras = [
        keyword(cst.Arg(value=_argument_value(value), comma=between), name)
        for name, value in new.arguments
    ]
    if extras and scale.keyword is not None:
        extras = [extra.with_changes(equal=scale.equal) for extra in extras]
    order = [*extras, inner] if call.args[0] is scale else [inner, *extras]
    return with_arguments(call, order)


def _argument_value(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.NamedExpr) and not value.lpar:
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return value
