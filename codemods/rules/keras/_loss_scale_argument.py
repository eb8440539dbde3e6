"""Translates a loss-scale argument into arguments of the final Keras class.

A loss scale that the source shows in full becomes such arguments. One that the final class cannot
express is left to a person, and any other to `from_loss_scale` at run time.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ...resolve.possible_values import paths_of
from ...resolve.program import Program, Reference
from ...resolve.reaching_values import body_of, loads_of, reaching_values_of_attribute, statement_of
from ...resolve.scopes import Binding
from ...resolve.tree import Edit, walk
from ...rewrite.arguments import constant, matched
from ...rewrite.remove_statement import without_statement
from ...rewrite.rename import SHIM
from ._own_loss_scales import own_loss_scale

__all__ = [
    "NOT_CALLED",
    "FinalArguments",
    "has_other_multiplier",
    "manual_reason",
    "to_final_arguments",
]

NOT_CALLED = (
    "Keras calls no update() or __call__() of a loss scale since TensorFlow 2.4; subclass the "
    "optimizer, or use dynamic= and initial_scale="
)
"""What a finding says of a loss scale that overrides such a method."""
_BINDING_CALLS = ("exec", "globals", "vars", "locals")
_DYNAMIC_DEFAULTS = {"initial_loss_scale": 2.0**15, "increment_period": 2000}
_FINAL_NAMES = {"initial_loss_scale": "initial_scale", "increment_period": "dynamic_growth_steps"}


class FinalArguments(NamedTuple):
    """The arguments of the final class that replace a loss scale.

    Attributes:
      arguments: names and values, in order.
      removed: the loss scales that the edits take away.
      edits: the edits of statements that are no longer needed.
    """

    arguments: tuple[tuple[str, cst.BaseExpression], ...]
    removed: tuple[Reference, ...] = ()
    edits: tuple[tuple[cst.CSTNode, Edit], ...] = ()


def manual_reason(program: Program, scale: cst.BaseExpression) -> str:
    """Why a person must decide about this loss scale; empty where the rules can."""
    value = constant(scale)
    if value == (None,):
        return "a loss scale of None is an error in every version: decide what was meant"
    for node in walk(scale):
        if (
            isinstance(node, cst.Attribute)
            and node.attr.value == "loss_scale"
            and _is_policy(program, node.value)
        ):
            return (
                "policies no longer have a loss scale: write "
                "LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...) here"
            )
    own = own_loss_scale(program, scale)
    if own:
        return f"{own}: {NOT_CALLED}"
    call = _loss_scale_call(program, scale)
    if isinstance(scale, cst.Name):
        name = scale.value
        bound = _bindings(program, scale)
        calls = [_loss_scale_call(program, binding.value) for binding in bound]
        if any(calls) and len(_other_uses(program, bound[0])) > 1:
            return (
                f"the loss scale `{name}` is also used elsewhere, but the final class has its own "
                "state: use optimizer.loss_scale there, then migrate again"
            )
        if any(calls) and _is_shared(program, scale, bound[0]):
            return (
                f"the loss scale `{name}` is shared by several optimizers, but each final one "
                "has its own state: decide whether that will do"
            )
        if len(bound) == 1:
            call = calls[0]
    elif isinstance(scale, cst.Attribute):
        values = reaching_values_of_attribute(program, scale) or []
        if any(_loss_scale_call(program, one) for one in values) and _reads(program, scale) > 1:
            return (
                f"`{program.code(scale)}` is also used elsewhere, but the final class has its own "
                "state: use optimizer.loss_scale there, then migrate again"
            )
    if call is not None and _has_other_multiplier(program, call):
        return "the final class only doubles and halves: decide whether multiplier=2 will do"
    return ""


def has_other_multiplier(program: Program, scale: cst.BaseExpression) -> bool:
    """Whether a dynamic loss scale, made here or bound once, has a factor other than 2."""
    bound = _bindings(program, scale) if isinstance(scale, cst.Name) else []
    made = bound[0].value if len(bound) == 1 else scale
    if not isinstance(made, cst.Call):
        return False
    if _loss_scale_call(program, made) is None and not _is_dynamic_of_shim(program, made):
        return False
    return _has_other_multiplier(program, made)


def _has_other_multiplier(program: Program, call: cst.Call) -> bool:
    is_dynamic = _is_dynamic_of_shim(program, call) or _is_dynamic(program, call)
    found = _dynamic_arguments(call) if is_dynamic else None
    multiplier = constant(found["multiplier"].value) if found and "multiplier" in found else None
    return multiplier is not None and multiplier[0] != 2


def to_final_arguments(
    program: Program, call: cst.Call, scale: cst.BaseExpression
) -> Optional[FinalArguments]:
    """The arguments that replace `scale` in `call`; None where only a run can tell."""
    value = constant(scale)
    if value is not None:
        return _of_constant(value[0], scale)
    made = _loss_scale_call(program, scale)
    if made is not None:
        return _of_call(program, made)
    if not isinstance(scale, cst.Name):
        return None
    bound = _bindings(program, scale)
    if len(bound) != 1 or bound[0].value is None or _may_be_bound_elsewhere(program, bound[0]):
        return None
    binding = bound[0]
    value = constant(binding.value)
    if value is not None:
        found = _of_constant(value[0], scale)
        if found is None or found.arguments:
            return found
        return found._replace(edits=without_statement(program, binding) or ())
    made = _loss_scale_call(program, binding.value)
    if made is None or not _movable(program, made, binding, call):
        return None
    inlined = _of_call(program, made)
    removal = without_statement(program, binding)
    if inlined is None or removal is None:
        return None
    return inlined._replace(edits=removal)


def _may_be_bound_elsewhere(program: Program, binding: Binding) -> bool:
    """Whether names of the module may be bound by what is executed or read at run time.

    Examples are `globals().update(settings)`, `exec(open("settings.py").read())` and a star import.
    """
    if binding.scope.kind != "module":
        return False
    if binding.scope.stars:
        return True
    return any(
        name.value in _BINDING_CALLS and program.call_of(name) is not None
        for name in program.scopes.loads
    )


def _of_constant(value: object, scale: cst.BaseExpression) -> Optional[FinalArguments]:
    if value == "dynamic":
        return FinalArguments(())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return FinalArguments((("dynamic", cst.Name("False")), ("initial_scale", scale)))
    return None


def _of_call(program: Program, call: cst.Call) -> Optional[FinalArguments]:
    removed = (program.by_node[call.func],)
    if not _is_dynamic(program, call):
        if len(call.args) != 1 or call.args[0].star:
            return None
        given = call.args[0]
        value = constant(given.value)
        if given.keyword is not None and given.keyword.value != "loss_scale_value":
            return None
        if value is not None and (not isinstance(value[0], (int, float)) or value[0] < 1):
            return None
        return FinalArguments(
            (("dynamic", cst.Name("False")), ("initial_scale", given.value)), removed
        )
    found = _dynamic_arguments(call)
    if found is None:
        return None
    if "multiplier" in found and constant(found["multiplier"].value) is None:
        return None
    arguments = []
    for name, argument in found.items():
        if name == "multiplier":
            continue
        value = constant(argument.value)
        if value is None or value[0] != _DYNAMIC_DEFAULTS[name]:
            arguments.append((_FINAL_NAMES[name], argument.value))
    return FinalArguments(tuple(arguments), removed)


def _dynamic_arguments(call: cst.Call) -> Optional[dict[str, cst.Arg]]:
    return matched(call, ("initial_loss_scale", "increment_period", "multiplier"))


def _is_dynamic(program: Program, call: cst.Call) -> bool:
    return program.by_node[call.func].legacy.name == "DynamicLossScale"


def _is_dynamic_of_shim(program: Program, call: cst.Call) -> bool:
    """Whether the call makes a dynamic loss scale of the shim, as after an earlier run."""
    paths = paths_of(program, call.func)
    return bool(paths) and all(
        path.startswith(f"{SHIM}.") and path.endswith(".DynamicLossScale") for path in paths
    )


def _loss_scale_call(program: Program, node: Optional[cst.CSTNode]) -> Optional[cst.Call]:
    """`node`, if it makes a TensorFlow loss scale."""
    if not isinstance(node, cst.Call):
        return None
    reference = program.by_node.get(node.func)
    if reference is None or reference.legacy.name not in ("DynamicLossScale", "FixedLossScale"):
        return None
    return node


def _bindings(program: Program, name: cst.Name) -> list[Binding]:
    scope = program.scopes.loads.get(name)
    return scope.bindings_of(name.value) if scope is not None else []


def _other_uses(program: Program, binding: Binding) -> list[cst.Name]:
    """The reads of a variable that do more than test whether it has a value."""
    return [
        name
        for name in loads_of(program, binding.scope, binding.name)
        if not _only_tests(program, name)
    ]


def _only_tests(program: Program, name: cst.Name) -> bool:
    parent = program.parents.get(name)
    if isinstance(parent, (cst.If, cst.IfExp, cst.While)):
        return parent.test is name
    if isinstance(parent, cst.UnaryOperation):
        return isinstance(parent.operator, cst.Not)
    if isinstance(parent, cst.Comparison):
        return all(isinstance(one.operator, (cst.Is, cst.IsNot)) for one in parent.comparisons)
    return False


def _reads(program: Program, attribute: cst.Attribute) -> int:
    text = program.code(attribute)
    owner = next(
        (above for above in program.ancestors(attribute) if isinstance(above, cst.ClassDef)), None
    )
    if owner is None:
        return 0
    targets = {
        target.target
        for node in walk(owner)
        if isinstance(node, cst.Assign)
        for target in node.targets
    }
    return sum(
        1
        for node in walk(owner)
        if isinstance(node, cst.Attribute)
        and node not in targets
        and node.attr.value == attribute.attr.value
        and program.code(node) == text
    )


def _is_shared(program: Program, scale: cst.Name, binding: Binding) -> bool:
    """Whether one loss scale is used several times, in a loop or in calls of a function."""
    around_binding = set(program.ancestors(binding.node))
    for owner in program.ancestors(scale):
        if owner in around_binding:
            return False
        if isinstance(owner, (cst.For, cst.While, cst.BaseComp)):
            return True
        if isinstance(owner, cst.FunctionDef):
            name = owner.name.value
            calls = [load for load in program.scopes.loads if load.value == name]
            if len(calls) + len(program.attributes(name)) > 1:
                return True
    return False


def _is_policy(program: Program, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Name):
        return any(
            binding.value is not None and _is_policy(program, binding.value)
            for binding in _bindings(program, node)
        )
    if not isinstance(node, cst.Call):
        return False
    reference = program.by_node.get(node.func)
    return reference is not None and reference.legacy.returns_policy


def _movable(program: Program, made: cst.Call, binding: Binding, call: cst.Call) -> bool:
    """Whether `made` means the same at `call` as where it stands."""
    scope = next(
        (program.scopes.loads[node] for node in walk(call.func) if isinstance(node, cst.Name)), None
    )
    for argument in made.args:
        if constant(argument.value) is not None:
            continue
        if scope is not binding.scope:
            return False
        for node in walk(argument.value):
            if isinstance(node, (cst.Attribute, cst.Subscript)):
                if not _adjacent(program, binding.node, call):
                    return False  # what lies between may change what it reads
            elif isinstance(node, cst.Name):
                if len(_bindings(program, node)) > 1:
                    return False
            elif not isinstance(node, _PURE):
                return False
    return True


def _adjacent(program: Program, earlier: cst.CSTNode, later: cst.CSTNode) -> bool:
    first, second = statement_of(program, earlier), statement_of(program, later)
    body = body_of(program, first) if first is not None else None
    if body is None:
        return False
    index = next(i for i, one in enumerate(body) if one is first)
    return index + 1 < len(body) and body[index + 1] is second


_PURE = (
    cst.Integer,
    cst.Float,
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.SimpleString,
    cst.SubscriptElement,
    cst.Index,
)
