"""Finds what a subclass of a Keras loss-scale optimizer overrides."""

from __future__ import annotations

from typing import Optional

import libcst as cst

from ...resolve.optimizer_kinds import class_named
from ...resolve.program import Program

__all__ = ["overridden_by"]

_OWN = frozenset(["__init__", "__repr__", "__str__", "__doc__", "__slots__"])
"""Names that a subclass may define without changing what a step calls."""
_PLAIN_BASES = frozenset(["object", "abc.ABC", "ABC"])
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


def overridden_by(program: Program, node: cst.CSTNode) -> Optional[list[str]]:
    """The names that the subclass with the base `node` defines; None if `node` is no base.

    Names that cannot be seen are shown as `...`.
    """
    argument = program.parents.get(node)
    owner = program.parents.get(argument) if argument is not None else None
    if isinstance(owner, cst.ClassDef) and any(base is argument for base in owner.bases):
        return _overridden(program, owner, node)
    if isinstance(argument, cst.Element):  # `type("Scaled", (LossScaleOptimizer,), {...})`
        given = program.parents.get(program.parents[argument])
        call = program.parents.get(given) if isinstance(given, cst.Arg) else None
        if isinstance(call, cst.Call) and program.code(call.func) in ("type", "types.new_class"):
            return ["..."]
    return None


def _overridden(program: Program, subclass: cst.ClassDef, base: cst.CSTNode) -> list[str]:
    """The names of the optimizer that a subclass, or a class below it, defines, in order.

    The other bases count, too: a mixin may come before the optimizer. Statements that may define
    any name (an `if`, a loop, `a, b = ...`) and bases of other files are shown as `...`.
    """
    found: dict[str, None] = {}
    below = _inheriting(program, subclass)
    for each in below:
        for name in _defined_by(program, each, base, below):
            private = name.startswith("_") and name not in _OWN
            if private or name in _HOOKS or name == "...":
                found[name] = None
    return list(found)


def _defined_by(
    program: Program, owner: cst.ClassDef, base: cst.CSTNode, known: list[cst.ClassDef]
) -> list[str]:
    """The names that a class defines in its body or inherits from other bases than those known."""
    names = [name for statement in owner.body.body for name in _defined(statement)]
    for one in owner.bases:
        if one.value is base or program.code(one.value) in _PLAIN_BASES:
            continue
        inherited = class_named(program, one.value)
        if inherited is None:
            names.append("...")
        elif inherited not in known:
            names += _defined_by(program, inherited, base, [*known, inherited])
    return names


def _inheriting(program: Program, owner: cst.ClassDef) -> list[cst.ClassDef]:
    """The class and the classes of the program that inherit from it."""
    found = [owner]
    classes = [
        binding.node
        for scope in program.all_scopes()
        for bindings in scope.bindings.values()
        for binding in bindings
        if isinstance(binding.node, cst.ClassDef)
    ]
    for each in found:
        for one in classes:
            if one not in found and any(
                class_named(program, base.value) is each for base in one.bases
            ):
                found.append(one)
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
