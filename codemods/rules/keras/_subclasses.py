"""Finds what a subclass of a Keras loss-scale optimizer overrides."""

from __future__ import annotations

from typing import Optional

import libcst as cst

from ...resolve.program import Program

__all__ = ["overridden", "subclass_of"]

_OWN = frozenset(["__init__", "__repr__", "__str__", "__doc__", "__slots__"])
"""Names that a subclass may define without changing what a step calls."""
_HOOKS = frozenset(
    [
        "aggregate_gradients",
        "apply",
        "apply_gradients",
        "compute_gradients",
        "dynamic",
        "dynamic_counter",
        "dynamic_growth_steps",
        "get_gradients",
        "get_scaled_loss",
        "get_unscaled_gradients",
        "get_updates",
        "initial_scale",
        "inner_optimizer",
        "iterations",
        "learning_rate",
        "loss_scale",
        "minimize",
        "scale_loss",
        "stateless_apply",
        "update_step",
    ]
)
"""What takes part in a step, or in the state of the loss scale, on Keras 2 or Keras 3."""


def subclass_of(program: Program, node: cst.CSTNode) -> Optional[cst.ClassDef]:
    """The class statement that has `node` as a base; None if there is none."""
    argument = program.parents.get(node)
    owner = program.parents.get(argument) if argument is not None else None
    if isinstance(owner, cst.ClassDef) and any(base is argument for base in owner.bases):
        return owner
    return None


def overridden(subclass: cst.ClassDef) -> list[str]:
    """The names of the optimizer that the body of a subclass defines, in order.

    Statements that may define any name (an `if`, a loop, `a, b = ...`) are shown as `...`.
    """
    found = []
    for statement in subclass.body.body:
        for name in _defined(statement):
            private = name.startswith("_") and name not in _OWN
            if private or name in _HOOKS or name == "...":
                found.append(name)
    return found


def _defined(statement: cst.CSTNode) -> list[str]:
    if isinstance(statement, cst.FunctionDef):
        return [statement.name.value]
    if isinstance(statement, cst.ClassDef):
        return []
    names: list[str] = []
    for each in statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]:
        if isinstance(each, cst.Assign):
            names += [_name(one.target) for one in each.targets]
        elif isinstance(each, cst.AnnAssign):
            names.append(_name(each.target))
        elif not isinstance(each, (cst.Expr, cst.Pass)):
            names.append("...")
    return names


def _name(target: cst.CSTNode) -> str:
    return target.value if isinstance(target, cst.Name) else "..."
