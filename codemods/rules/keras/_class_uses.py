"""Finds uses of a loss-scale class whose result depends on which class it is, and not on its base.

From TensorFlow 2.11 to 2.15, the public class of Keras 2 is only a base of the class that a call
creates an instance of, and so is that of the shim. `type(optimizer) is LossScaleOptimizer` is False
there, and the public class of Keras 2 has no `apply_gradients` of its own. A place that replaces a
method of the class affects every part of the program.
"""

from __future__ import annotations

import libcst as cst

from ...model import Target
from ...resolve.program import Program
from ...resolve.reaching_values import is_stored
from ..findings import OR_TO_SHIM

__all__ = ["OF_EVERY_CLASS", "unportable_use"]

_PATCHED = (
    "this replaces a method or attribute of the class, but the methods that make a step differ "
    "between versions: write a subclass by hand, or wrap the optimizer"
)
_EXACT = (
    "from TensorFlow 2.11 to 2.15, an optimizer is an instance of a subclass of this class, so a "
    "comparison of its type is False: use isinstance, then migrate again"
)
_MISSING = (
    "from TensorFlow 2.9 on, the public class of Keras 2 lacks most attributes of an optimizer: "
    f"read them from an instance{OR_TO_SHIM}"
)
OF_EVERY_CLASS = frozenset(["__class__", "__doc__", "__module__", "__name__", "__qualname__"])
_PATCHES = frozenset(["setattr", "delattr", "patch.object", "mock.patch.object"])
_TABLES = (cst.Element, cst.Tuple, cst.List, cst.Set)


def unportable_use(program: Program, node: cst.CSTNode, to_installed: bool = False) -> str:
    """Why this use of the class cannot move to another class; empty if it can.

    Args:
      program: the program.
      node: the place that refers to the class.
      to_installed: whether it moves to the class of an installed Keras 2.
    """
    parent = program.parents.get(node)
    if isinstance(parent, cst.Attribute) and parent.value is node:
        if is_stored(program, parent):
            return _PATCHED
        name = parent.attr.value
        if to_installed and name not in OF_EVERY_CLASS and name != "from_config":
            return _MISSING
        return ""
    if _is_patched(program, node):
        return _PATCHED
    only_keras_3 = program.options.target is not Target.SHIM and not program.options.for_keras_2
    return "" if only_keras_3 or not _is_compared(program, node) else _EXACT


def _is_patched(program: Program, node: cst.CSTNode) -> bool:
    """Whether `node` is the class in `setattr(LossScaleOptimizer, ...)` or the like."""
    argument = program.parents.get(node)
    call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not argument:
        return False
    function = program.code(call.func)
    return function in _PATCHES or function.rpartition(".")[2] in ("setattr", "delattr")


def _is_compared(program: Program, node: cst.CSTNode) -> bool:
    """Whether the type of an object is compared with the class, or looked up in a table by it."""
    parent = program.parents.get(node)
    if isinstance(parent, cst.DictElement) and parent.key is node:
        return True
    while isinstance(parent, _TABLES):
        node, parent = parent, program.parents.get(parent)
    if isinstance(parent, cst.ComparisonTarget):
        parent = program.parents.get(parent)
    if not isinstance(parent, cst.Comparison):
        return False
    return any(map(_is_type, [parent.left, *(one.comparator for one in parent.comparisons)]))


def _is_type(node: cst.BaseExpression) -> bool:
    """Whether `node` is `type(x)` or `x.__class__`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == "__class__"
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "type"
        and len(node.args) == 1
    )
