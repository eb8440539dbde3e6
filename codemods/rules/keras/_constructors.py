"""The plan for the constructor calls of Keras loss-scale optimizers, made once for each program.

Several rules read it: those of the experimental class, of the loss scales that become its
arguments, and of Keras 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional

import libcst as cst

from ...model import Target
from ...resolve.program import Program, Reference
from ...resolve.tree import Edit
from ...rewrite.arguments import constant, keyword, loses_comments, with_arguments
from ...rewrite.rename import SHIM, references
from ._loss_scale_argument import FinalArguments, manual_reason, to_final_arguments

__all__ = [
    "FINAL_CLASS",
    "ConstructorPlan",
    "has_loss_scale",
    "loss_scale_of",
    "plan",
    "plan_constructors",
]

FINAL_CLASS = "the final class"
"""The target of a call whose arguments are known; which class that is depends on the Keras."""
_FROM_LOSS_SCALE = f"{SHIM}.keras.mixed_precision.from_loss_scale"
_FINAL_ARGUMENTS = frozenset(["dynamic", "initial_scale", "dynamic_growth_steps"])


class ConstructorPlan(NamedTuple):
    """What becomes of one constructor call.

    Attributes:
      target: `FINAL_CLASS`, the path of another callee, or empty where it must stay.
      message: what is done, or what a person must do.
      edits: the edits of arguments, and of statements that are no longer needed.
      removed: the loss scales that the edits take away.
      arguments: the names of the final class's arguments that set the loss scale.
    """

    target: str
    message: str
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()
    removed: tuple[Reference, ...] = ()
    arguments: tuple[str, ...] = ()


def plan_constructors(program: Program) -> dict[cst.Call, ConstructorPlan]:
    """The plan for every constructor call of the experimental class; none for `--to shim`."""
    if program.options.target is Target.SHIM:
        return {}
    found = {}
    for reference in references(program, "LS301"):
        call = program.call_of(reference.node)
        if call is not None:
            found[call] = plan(program, call)
    return found


def plan(program: Program, call: cst.Call) -> ConstructorPlan:
    """What becomes of `call`, a constructor with the experimental class's arguments."""
    arguments = _matched(call)
    if arguments is None and _is_final_already(call):
        return ConstructorPlan(FINAL_CLASS, "the arguments are already those of the final class")
    if arguments is None and _mixes(call):
        return ConstructorPlan(
            "", "has arguments of both classes, which neither accepts: fix the call first"
        )
    if arguments is None:
        return _at_run_time(call, "the arguments cannot be determined statically")
    inner, scale = arguments
    if inner is None or scale is None:
        return ConstructorPlan("", "the optimizer or the loss scale is missing: fix the call first")
    problem = manual_reason(program, scale.value)
    if problem:
        return ConstructorPlan("", problem)
    converted = to_final_arguments(program, call, scale.value)
    if converted is None:
        return _at_run_time(call, "the loss scale cannot be determined statically")
    new = _rewritten(call, inner, scale, converted)
    if loses_comments(call, new):
        return _at_run_time(call, "the arguments contain a comment")

    def edit(node: cst.CSTNode) -> object:
        assert isinstance(node, cst.Call)
        return new.with_changes(func=node.func, args=_merged(call, node, new))

    names = " and ".join(f"`{name}=`" for name, _ in converted.arguments)
    return ConstructorPlan(
        FINAL_CLASS,
        f"the loss scale is now set with {names}"
        if names
        else "dynamic scaling is the default; no argument needed",
        ((call, edit), *converted.edits),
        converted.removed,
        tuple(name for name, _ in converted.arguments),
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

    return ConstructorPlan(
        _FROM_LOSS_SCALE, f"{why}; from_loss_scale decides at run time", ((call, edit),)
    )


def loss_scale_of(call: cst.Call) -> Optional[cst.BaseExpression]:
    """The loss scale that a constructor with the experimental class's arguments is given."""
    arguments = _matched(call)
    return arguments[1].value if arguments is not None and arguments[1] is not None else None


def has_loss_scale(call: cst.Call) -> bool:
    """Whether a call of the final class has an argument that only the experimental one took."""
    for index, argument in enumerate(call.args):
        if argument.keyword is not None and argument.keyword.value == "loss_scale":
            return True
        if index == 1 and argument.keyword is None and not argument.star:
            value = constant(argument.value)
            if value is not None and isinstance(value[0], str):
                return True
    return False


def _matched(call: cst.Call) -> Optional[tuple[Optional[cst.Arg], Optional[cst.Arg]]]:
    """The optimizer's and the loss scale's argument; None where stars hide them."""
    inner = scale = None
    for index, argument in enumerate(call.args):
        name = argument.keyword.value if argument.keyword is not None else None
        if argument.star or index > 1 or name not in (None, "opt", "optimizer", "loss_scale"):
            return None
        if name == "loss_scale" or (name is None and index == 1):
            scale = argument
        else:
            inner = argument
    return inner, scale


def _is_final_already(call: cst.Call) -> bool:
    """Whether the experimental class is called with the final class's arguments (a bug)."""
    names = {argument.keyword.value for argument in call.args[1:] if argument.keyword is not None}
    if call.args[0].star:
        return False
    return len(names) == len(call.args) - 1 and names <= _FINAL_ARGUMENTS


def _mixes(call: cst.Call) -> bool:
    """Whether arguments of both classes are given, which neither accepts."""
    names = {argument.keyword.value for argument in call.args if argument.keyword is not None}
    return "loss_scale" in names and bool(names & _FINAL_ARGUMENTS)


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
        keyword(
            cst.Arg(value=_argument_value(value), comma=between),
            name,
        )
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
