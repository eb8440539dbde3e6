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
from ...resolve.tree import Edit
from ...resolve.values import only_binding
from ...rewrite.arguments import constant, matched
from ...rewrite.remove_statement import without_statement

__all__ = ["FinalArguments", "to_final_arguments"]

_BINDING_CALLS = ("exec", "globals", "vars", "locals")
_DEFAULTS = {"initial_loss_scale": 2.0**15, "increment_period": 2000}
_NAMES = {"initial_loss_scale": "initial_scale", "increment_period": "dynamic_growth_steps"}
_REPEATING = (cst.For, cst.While, cst.BaseComp, cst.FunctionDef, cst.Lambda)


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
    if not isinstance(scale, cst.Name) or constant(scale) is not None:
        return _of_value(program, scale, scale)
    binding = only_binding(program, scale)
    if binding is None or binding.value is None or _may_be_bound_elsewhere(program, binding):
        return None
    found = _of_value(program, binding.value, scale)
    removal = without_statement(program, binding)
    if found is None or constant(binding.value) is not None:
        return found if found is None or found.arguments else found._replace(edits=removal or ())
    assert isinstance(binding.value, cst.Call)
    is_constant = all(constant(argument.value) is not None for argument in binding.value.args)
    if removal is None or not is_constant or _is_repeated(program, binding, call):
        return None
    return found._replace(edits=removal)


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


def _of_value(
    program: Program, value: cst.BaseExpression, scale: cst.BaseExpression
) -> Optional[FinalArguments]:
    """The arguments for a value; `scale` is how a number is written."""
    if isinstance(value, cst.Call):
        return _of_call(program, value)
    found = constant(value)
    if found == ("dynamic",):
        return FinalArguments(())
    if found is None or isinstance(found[0], bool) or not isinstance(found[0], (int, float)):
        return None
    return FinalArguments((("dynamic", cst.Name("False")), ("initial_scale", scale)))


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
