"""Matches the arguments of a call to parameters, evaluates, removes and renames them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

import libcst as cst

from .comments import comments_in
from .constants import Constant, evaluated

__all__ = [
    "Constant",
    "constant",
    "has_loss_scale",
    "keyword",
    "loses_comments",
    "matched",
    "with_arguments",
    "with_renamed",
]


def matched(call: cst.Call, parameters: Sequence[str]) -> Optional[dict[str, cst.Arg]]:
    """The argument of `call` for each parameter; None if they cannot be matched."""
    found: dict[str, cst.Arg] = {}
    for index, argument in enumerate(call.args):
        if argument.star:
            return None
        if argument.keyword is not None:
            name = argument.keyword.value
        elif index < len(parameters):
            name = parameters[index]
        else:
            return None
        if name not in parameters or name in found:
            return None
        found[name] = argument
    return found


def constant(node: Optional[cst.CSTNode]) -> Optional[tuple[Constant]]:
    """The value of a constant expression (numbers and their arithmetic, strings), in a tuple.

    >>> constant(cst.parse_expression("2 ** 15"))
    (32768,)
    >>> constant(cst.parse_expression("scale"))
    """
    if node is None:
        return None
    try:
        return (evaluated(cst.Module([]).code_for_node(node)),)
    except ValueError:
        return None


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


def keyword(argument: cst.Arg, name: str) -> cst.Arg:
    """`argument` as a keyword argument `name=`, with the same commas, comments and spaces."""
    return argument.with_changes(
        keyword=cst.Name(name),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )


def with_arguments(call: cst.Call, arguments: Sequence[cst.Arg]) -> cst.Call:
    """`call` with `arguments`; the comma and spaces of the last argument are kept."""
    old = call.args
    if not arguments:
        return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
    if not old:
        return call.with_changes(args=list(arguments))
    *most, last = arguments
    most = [
        argument
        if isinstance(argument.comma, cst.Comma)
        else argument.with_changes(
            comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")),
            whitespace_after_arg=cst.SimpleWhitespace(""),
        )
        for argument in most
    ]
    if last is not old[-1]:
        last = _taking_over(last, old[-1])
    return call.with_changes(args=[*most, last])


def with_renamed(call: cst.Call, renames: Mapping[str, Optional[str]]) -> cst.Call:
    """`call` with its arguments converted to keywords with new names.

    Args:
      call: a call whose arguments can be matched to the parameters.
      renames: maps each parameter, in order, to its new name; None removes the argument.
    """
    found = matched(call, tuple(renames))
    assert found is not None
    arguments: list[cst.Arg] = []
    for name, argument in found.items():
        new = renames[name]
        if new is None:
            continue
        if argument.keyword is not None:
            argument = argument.with_changes(keyword=cst.Name(new))
        elif len(arguments) < call.args.index(argument):  # an argument before it is removed
            argument = keyword(argument, new)
        arguments.append(argument)
    if len(arguments) == len(call.args):
        return call.with_changes(args=arguments)
    return with_arguments(call, arguments)


def _taking_over(argument: cst.Arg, last: cst.Arg) -> cst.Arg:
    """`argument` with the comma and spaces of `last`, and with its own trailing comment."""
    comma = argument.comma
    own = comma.whitespace_after if isinstance(comma, cst.Comma) else None
    if (
        not isinstance(comma, cst.Comma)
        or not isinstance(own, cst.ParenthesizedWhitespace)
        or not comments_in(own)
    ):
        return argument.with_changes(
            comma=last.comma, whitespace_after_arg=last.whitespace_after_arg
        )
    theirs = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else None
    if not isinstance(theirs, cst.ParenthesizedWhitespace):
        return argument
    comment = theirs.first_line.comment
    lines = []
    if comment is not None:
        lines = [cst.EmptyLine(indent=own.indent, whitespace=own.last_line, comment=comment)]
    joined = theirs.with_changes(
        first_line=own.first_line,
        empty_lines=[*own.empty_lines, *lines, *theirs.empty_lines],
    )
    return argument.with_changes(comma=comma.with_changes(whitespace_after=joined))


def loses_comments(call: cst.Call, new: cst.Call) -> bool:
    """Whether `new` lacks a comment that is between the arguments of `call`."""
    return sorted(comments_in(call)) != sorted(comments_in(new))
