"""Translates a loss scale into the arguments of the final Keras class that mean the same.

Only what the source shows in full is translated: `"dynamic"`, a number, and a loss scale that is
made in the call, or bound once in its scope and read there only. Everything else is decided at run
time, by the shim's `from_loss_scale`.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ...resolve.places import Reference
from ...resolve.program import Program
from ...resolve.scopes import Binding
from ...resolve.tree import Edit, walk
from ...resolve.values import bindings_of, only_binding
from ...rewrite.arguments import constant, matched
from ...rewrite.remove_statement import without_statement

__all__ = ["FinalArguments", "to_final_arguments"]

_BINDING_CALLS = ("exec", "globals", "vars", "locals")
_DEFAULTS = {"initial_loss_scale": 2.0**15, "increment_period": 2000}
_NAMES = {"initial_loss_scale": "initial_scale", "increment_period": "dynamic_growth_steps"}
_REPEATING = (cst.For, cst.While, cst.BaseComp, cst.FunctionDef, cst.Lambda)
_PURE = (cst.Integer, cst.Float, cst.BinaryOperation, cst.UnaryOperation, cst.Name)


class FinalArguments(NamedTuple):
    """The arguments of the final class that replace a loss scale.

    Attributes:
      arguments: names and values, in order; empty for dynamic scaling with the defaults.
      removed: the loss scales that the edits take away.
      edits: the edits of statements that are no longer needed.
    """

    arguments: tuple[tuple[str, cst.BaseExpression], ...]
    removed: tuple[Reference, ...] = ()
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()


def to_final_arguments(
    program: Program, call: cst.Call, scale: cst.BaseExpression
) -> Optional[FinalArguments]:
    """The arguments that replace `scale` in `call`; None where only a run can tell."""
    value = constant(scale)
    if value is not None:
        return _of_constant(value[0], scale)
    if isinstance(scale, cst.Call):
        return _of_call(program, scale)
    binding = only_binding(program, scale) if isinstance(scale, cst.Name) else None
    if binding is None or binding.value is None or _may_be_bound_elsewhere(program, binding):
        return None
    if constant(binding.value) is None and _is_repeated(program, binding, call):
        return None
    value = constant(binding.value)
    if value is not None:
        found = _of_constant(value[0], scale)
        if found is None or found.arguments:
            return found
        return found._replace(edits=without_statement(program, binding) or ())
    made = binding.value if isinstance(binding.value, cst.Call) else None
    removal = without_statement(program, binding)
    inlined = _of_call(program, made) if made is not None else None
    if made is None or inlined is None or removal is None or not _movable(program, made, call):
        return None
    return inlined._replace(edits=removal)


def _may_be_bound_elsewhere(program: Program, binding: Binding) -> bool:
    """Whether a name of the module may be bound by what is executed or read at run time.

    Examples are `globals().update(settings)`, `exec(open("settings.py").read())` and a star import.
    """
    if binding.scope.kind != "module":
        return False
    return bool(binding.scope.stars) or any(
        name.value in _BINDING_CALLS and program.call_of(name) is not None
        for name in program.scopes.loads
    )


def _is_repeated(program: Program, binding: Binding, call: cst.Call) -> bool:
    """Whether `call` is in a loop or function of its own, so that calls may share a loss scale."""
    around = set(program.ancestors(binding.node))
    return any(
        isinstance(above, _REPEATING) and above not in around for above in program.ancestors(call)
    )


def _of_constant(value: object, scale: cst.BaseExpression) -> Optional[FinalArguments]:
    if value == "dynamic":
        return FinalArguments(())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return FinalArguments((("dynamic", cst.Name("False")), ("initial_scale", scale)))
    return None


def _of_call(program: Program, call: cst.Call) -> Optional[FinalArguments]:
    """The arguments for `FixedLossScale(...)` and `DynamicLossScale(...)`."""
    reference = program.by_node.get(call.func)
    name = reference.legacy.name if reference is not None else ""
    if reference is None or name not in ("DynamicLossScale", "FixedLossScale"):
        return None
    if name == "FixedLossScale":
        found = matched(call, ("loss_scale_value",))
        given = found.get("loss_scale_value") if found is not None else None
        value = constant(given.value) if given is not None else None
        if given is None or (value is not None and not _is_scale(value[0])):
            return None
        fixed = (("dynamic", cst.Name("False")), ("initial_scale", given.value))
        return FinalArguments(fixed, (reference,))
    found = matched(call, ("initial_loss_scale", "increment_period", "multiplier"))
    if found is None:
        return None
    multiplier = found.pop("multiplier", None)
    if multiplier is not None and constant(multiplier.value) not in ((2,), (2.0,)):
        return None
    arguments = tuple(
        (_NAMES[name], argument.value)
        for name, argument in found.items()
        if constant(argument.value) != (_DEFAULTS[name],)
    )
    return FinalArguments(arguments, (reference,))


def _is_scale(value: object) -> bool:
    return isinstance(value, (int, float)) and value >= 1


def _movable(program: Program, made: cst.Call, call: cst.Call) -> bool:
    """Whether the arguments of `made` mean the same at `call` as where it stands."""
    scopes = {
        program.scopes.loads.get(node)
        for one in (made.func, call.func)
        for node in walk(one)
        if isinstance(node, cst.Name) and node in program.scopes.loads
    }
    for argument in made.args:
        if constant(argument.value) is not None:
            continue
        if len(scopes) > 1:
            return False
        for node in walk(argument.value):
            if not isinstance(node, _PURE):
                return False
            if isinstance(node, cst.Name) and len(bindings_of(program, node)) != 1:
                return False
    return True
