"""The plans for the constructor calls of Keras loss-scale optimizers, made once for each file.

Only a loss scale that the source shows in full becomes arguments of the final class: `"dynamic"`, a
number, and a loss scale that is made in the call, or bound once in its scope and read there only.
Everything else is decided at run time, by the shim's `from_loss_scale`.

Several rules read the plans: the rules of the experimental class, of the loss scales that become
its arguments, and of Keras 3.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ...resolve.scopes import Binding
from ...rewrite import arguments, comments
from ...rewrite.proposal import Edits
from ..rule import Decision, Program, Reference

__all__ = ["ConstructorPlan", "plan", "plans"]

_FROM_LOSS_SCALE = "tf_lossscale.keras.mixed_precision.from_loss_scale"
_BINDING_CALLS = ("exec", "globals", "vars", "locals")
_DEFAULTS = {"initial_loss_scale": 2.0**15, "increment_period": 2000}
_NAMES = {"initial_loss_scale": "initial_scale", "increment_period": "dynamic_growth_steps"}
_REPEATING = (cst.For, cst.While, cst.BaseComp, cst.FunctionDef, cst.Lambda)


class ConstructorPlan(NamedTuple):
    """What becomes of one constructor call.

    Attributes:
      path: the path of what is called then; empty for the final class.
      message: what is done.
      edits: the edits of arguments, and of statements that are no longer needed.
      removed: the loss scales that the edits take away.
      arguments: the final class's arguments that set the loss scale, with their values.
      problem: why there is no edit, so that the symbols go to the shim.
    """

    path: str = ""
    message: str = ""
    edits: Edits = ()
    removed: tuple[Reference, ...] = ()
    arguments: tuple[tuple[str, cst.BaseExpression], ...] = ()
    problem: str = ""


def plans(program: Program, decision: Decision) -> dict[cst.Call, ConstructorPlan]:
    """The plan for every constructor call of the experimental class; none on the shim."""
    if decision.optimizers_on_shim:
        return {}
    calls = [program.call_of(reference.node) for reference in program.references_to("LS301")]
    reads = decision.reads
    return {call: program.cached(plan, call, reads) for call in calls if call is not None}


def plan(program: Program, call: cst.Call, reads: frozenset[str] = frozenset()) -> ConstructorPlan:
    """What becomes of `call`, a constructor with the experimental class's arguments.

    `reads` has the top-level names that other files may read, which are not removed.
    """
    found = arguments.matched(call, ("opt", "loss_scale")) or arguments.matched(
        call, ("optimizer", "loss_scale")
    )
    if found is None or len(found) < 2:
        return ConstructorPlan(problem="these are not seen to be an optimizer and a loss scale")
    scale = found["loss_scale"]
    made = _of_scale(program, call, scale.value, reads)
    if made is None:
        return _at_run_time(call, "the loss scale cannot be determined statically")
    is_first = call.args[0] is scale
    like = call.args[0]  # one argument to a line, if these were
    if isinstance(like.comma, cst.Comma) and comments.comments_in(like.comma):
        like = like.with_changes(comma=cst.MaybeSentinel.DEFAULT)
    extras = [
        arguments.keyword(cst.Arg(value, comma=like.comma), name) for name, value in made.arguments
    ]

    def edit(node: cst.CSTNode) -> cst.Call:
        assert isinstance(node, cst.Call)
        inner = node.args[1 if is_first else 0]
        if inner.keyword is not None:
            inner = arguments.keyword(inner, "inner_optimizer")
        return arguments.with_arguments(node, [*extras, inner] if is_first else [inner, *extras])

    if arguments.loses_comments(call, edit(call)):
        return _at_run_time(call, "the arguments contain a comment")
    names = " and ".join(f"`{name}=`" for name, _ in made.arguments)
    now = f"the loss scale is now set with {names}"
    return made._replace(
        message=now if names else "dynamic scaling is the default; no argument needed",
        edits=((call, edit), *made.edits),
    )


def _at_run_time(call: cst.Call, why: str) -> ConstructorPlan:
    """The plan to call `from_loss_scale`, whose first parameter has another name."""

    def edit(node: cst.CSTNode) -> cst.CSTNode:
        assert isinstance(node, cst.Call)
        names = [
            argument.keyword.value if argument.keyword is not None else "" for argument in node.args
        ]
        pairs = zip(node.args, names)
        return node.with_changes(
            args=[
                arguments.keyword(argument, "optimizer") if name == "opt" else argument
                for argument, name in pairs
            ]
        )

    message = f"{why}; from_loss_scale decides at run time"
    return ConstructorPlan(_FROM_LOSS_SCALE, message, ((call, edit),))


def _of_scale(
    program: Program, call: cst.Call, scale: cst.BaseExpression, reads: frozenset[str]
) -> Optional[ConstructorPlan]:
    """The arguments that replace `scale` in `call`; None where only a run can tell."""
    if not isinstance(scale, cst.Name) or arguments.constant(scale) is not None:
        return _of_value(program, scale, scale)
    bindings = program.values.bindings_of(scale)
    binding = bindings[0] if len(bindings) == 1 else None
    if binding is None or binding.value is None or _may_be_bound_elsewhere(program, binding):
        return None
    found = _of_value(program, binding.value, scale)
    if found is None:
        return None
    is_read = binding.scope is program.scopes.module_scope and not reads.isdisjoint(
        {"*", binding.name}
    )
    removal = comments.without_statement(program, binding) if not is_read else None
    if arguments.constant(binding.value) is not None:
        return found if found.arguments else found._replace(edits=removal or ())
    if removal is None or _may_share(program, call, binding):
        return None
    return found._replace(edits=removal)


def _may_share(program: Program, call: cst.Call, binding: Binding) -> bool:
    """Whether several optimizers may get one loss scale: in a loop or function of their own."""
    assert isinstance(binding.value, cst.Call)
    around = set(program.ancestors(binding.node))
    between = [above for above in program.ancestors(call) if above not in around]
    is_constant = all(
        arguments.constant(argument.value) is not None for argument in binding.value.args
    )
    return not is_constant or any(isinstance(above, _REPEATING) for above in between)


def _may_be_bound_elsewhere(program: Program, binding: Binding) -> bool:
    """Whether a name of the module may be bound by what is executed or read at run time.

    Examples are `globals().update(settings)`, `exec(open("settings.py").read())` and a star import.
    """
    calls = (load for load in program.scopes.loads if load.value in _BINDING_CALLS)
    return binding.scope is program.scopes.module_scope and (
        bool(binding.scope.stars) or any(program.call_of(load) is not None for load in calls)
    )


def _of_value(
    program: Program, value: cst.BaseExpression, scale: cst.BaseExpression
) -> Optional[ConstructorPlan]:
    """The arguments for a value; `scale` is how a number is written."""
    if isinstance(value, cst.Call):
        return _of_loss_scale(program, value)
    found = arguments.constant(value)
    if found == ("dynamic",):
        return ConstructorPlan()
    if found is None or isinstance(found[0], bool) or not isinstance(found[0], (int, float)):
        return None
    return _fixed(scale)


def _fixed(scale: cst.BaseExpression) -> ConstructorPlan:
    return ConstructorPlan(arguments=(("dynamic", cst.Name("False")), ("initial_scale", scale)))


def _of_loss_scale(program: Program, call: cst.Call) -> Optional[ConstructorPlan]:
    """The arguments for `FixedLossScale(...)` and `DynamicLossScale(...)`."""
    reference = program.by_node.get(call.func)
    name = reference.legacy.name if reference is not None else ""
    made: Optional[ConstructorPlan] = None
    if name == "FixedLossScale":
        made = _of_fixed_scale(call)
    elif name == "DynamicLossScale":
        made = _of_dynamic_scale(call)
    if reference is None or made is None:
        return None
    return made._replace(removed=(reference,))


def _of_fixed_scale(call: cst.Call) -> Optional[ConstructorPlan]:
    found = arguments.matched(call, ("loss_scale_value",))
    if not found or isinstance(found["loss_scale_value"].value, cst.NamedExpr):
        return None
    scale = found["loss_scale_value"].value
    value = arguments.constant(scale)
    if value is not None and not (isinstance(value[0], (int, float)) and value[0] >= 1):
        return None
    return _fixed(scale)


def _of_dynamic_scale(call: cst.Call) -> Optional[ConstructorPlan]:
    """The plan for a DynamicLossScale; None if the final class cannot do the same."""
    found = arguments.matched(call, ("initial_loss_scale", "increment_period", "multiplier"))
    if found is None:
        return None
    multiplier = found.pop("multiplier", None)
    if multiplier is not None and arguments.constant(multiplier.value) not in ((2,), (2.0,)):
        return None
    given = tuple(
        (_NAMES[name], argument.value)
        for name, argument in found.items()
        if arguments.constant(argument.value) != (_DEFAULTS[name],)
    )
    return ConstructorPlan(arguments=given)
