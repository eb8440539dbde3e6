"""Evaluates constant expressions in bounded time and memory, whatever the source.

`((9**1024)**1024)**1024` has a few characters but needs more memory than any machine has. The size
of a power is therefore estimated before it is computed, and a large value is not evaluated.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from typing import Callable, Union

__all__ = ["Constant", "evaluated"]

Constant = Union[int, float, str, bool, None]
_Number = Union[int, float]

_LONGEST = 80
"""Characters of an expression; the arguments of loss scales are a few."""

_MOST_BITS = 1000
"""Bits of a whole number, which must fit into a floating-point number (1024)."""

_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluated(text: str) -> Constant:
    """The value of a constant expression: numbers and their arithmetic, or one string.

    >>> evaluated("2 ** 15")
    32768

    Raises:
      ValueError: the expression is not constant, or its value is too large.
    """
    if len(text) > _LONGEST:
        raise ValueError("too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings
            expression = ast.parse(f"({text})", mode="eval").body
        return _value(expression)
    except (SyntaxError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def _value(node: ast.expr) -> Constant:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, type(None))):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _number(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        operation = _OPERATIONS.get(type(node.op))
        if operation is not None:
            return operation(float(left), float(right))
    raise ValueError("not a constant")


def _power(base: _Number, exponent: _Number) -> _Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if base.bit_length() * exponent > _MOST_BITS:
            raise ValueError("too large")
        return int(base**exponent)
    # Floats overflow with an error; a root of a negative number would be complex.
    return math.pow(base, exponent)


def _number(node: ast.expr) -> _Number:
    value = _value(node)
    if isinstance(value, (bool, str)) or value is None:
        raise ValueError("not a number")
    return value
