"""Matches the arguments of a call to parameters, evaluates, removes and renames them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional, Union

import libcst as cst

from ..resolve.tree import Edit, string_of
from .comments import comments_in

__all__ = [
    "Constant",
    "argument_of_scale",
    "constant",
    "has_comments",
    "has_loss_scale",
    "keyword",
    "loses_comments",
    "matched",
    "renamed_arguments",
    "renamed_attribute",
    "with_arguments",
]

Constant = Union[int, float, str, bool, None]
_NAMES = {"None": None, "True": True, "False": False}
_LONGEST = 80
"""Digits of a number; the arguments of loss scales have a few."""
_MOST_BITS = 1000
"""The largest power of two, which must fit into a floating-point number."""


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
    """The value of a literal, or of a power of two literals, in a tuple; None if it is large.

    >>> constant(cst.parse_expression("2 ** 15"))
    (32768,)
    >>> constant(cst.parse_expression("scale"))
    """
    if isinstance(node, (cst.Integer, cst.Float)):
        return (node.evaluated_value,) if len(node.value) <= _LONGEST else None
    if isinstance(node, cst.Name):
        return (_NAMES[node.value],) if node.value in _NAMES else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = constant(node.expression)
        return (-value[0],) if value and isinstance(value[0], (int, float)) else None
    if isinstance(node, cst.BinaryOperation):
        return _power_of_two(node)
    text = string_of(node) if node is not None else None
    return None if text is None else (text,)


def _power_of_two(node: cst.BinaryOperation) -> Optional[tuple[Constant]]:
    if not isinstance(node.operator, cst.Power):
        return None
    base, exponent = constant(node.left), constant(node.right)
    if base not in ((2,), (2.0,)) or exponent is None or not isinstance(exponent[0], (int, float)):
        return None
    return (base[0] ** exponent[0],) if 0 <= exponent[0] < _MOST_BITS else None


def has_loss_scale(call: cst.Call) -> bool:
    """Whether a call of the final class has an argument that only the experimental one took."""
    return argument_of_scale(call) is not call


def argument_of_scale(call: cst.Call) -> cst.CSTNode:
    """The argument of a call that only the experimental class took; the call if it has none."""
    for index, argument in enumerate(call.args):
        if argument.keyword is not None and argument.keyword.value == "loss_scale":
            return argument
        if index == 1 and argument.keyword is None and not argument.star:
            value = constant(argument.value)
            if value is not None and isinstance(value[0], str):
                return argument
    return call


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
        ending = {"comma": old[-1].comma, "whitespace_after_arg": old[-1].whitespace_after_arg}
        last = last.with_changes(**ending)
    return call.with_changes(args=[*most, last])


def renamed_arguments(renames: Mapping[str, Optional[str]]) -> Edit:
    """The edit that gives the arguments of a call the names of other parameters.

    Args:
      renames: maps each parameter, in order, to its new name; None removes the argument.
    """

    def edit(call: cst.CSTNode) -> cst.Call:
        """Renames, removes and orders the arguments; each comment stays with its argument."""
        assert isinstance(call, cst.Call)
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

    return edit


def renamed_attribute(name: str) -> Edit:
    """The edit of an attribute that gives it another name."""

    def edit(node: cst.CSTNode) -> cst.Attribute:
        """Renames, removes and orders the arguments; each comment stays with its argument."""
        assert isinstance(node, cst.Attribute)
        return node.with_changes(attr=node.attr.with_changes(value=name))

    return edit


def has_comments(call: cst.Call) -> bool:
    """Whether a comment stands between the arguments of a call."""
    return bool(comments_in(call))


def loses_comments(call: cst.Call, new: cst.Call) -> bool:
    """Whether `new` lacks a comment that is between the arguments of `call`."""
    return sorted(comments_in(call)) != sorted(comments_in(new))
