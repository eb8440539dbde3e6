"""Plain training loops: the only ones that `--unsafe` rewrites for Keras 3's own class.

Keras 3's optimizer unscales in `apply_gradients`. A loop is plain if nothing reads the gradients
between unscaling and applying them. In other loops (clipping, norms, accumulation, all-reduce) the
numbers would change silently, so the whole program stays on the shim's class.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program
from ...resolve.reaching_values import body_of, loads_of
from ...resolve.scopes import Scope
from ...resolve.tree import REMOVED, Edit, string_of
from ...rewrite.rename import FINAL, SHIM, references
from ._constructors import FINAL_CLASS, ConstructorPlan, has_loss_scale, plan, plan_constructors

__all__ = [
    "INSTALLED",
    "Loops",
    "final_class",
    "final_outcome",
    "plain_loops",
    "to_shim_class",
]

INSTALLED = (
    "Keras 3's own class has no floor or ceiling for the scale, checks the first replica's "
    "gradients only, does not advance iterations on a skipped step, and can fail under a strategy"
)
_LOOP_METHODS = ("get_scaled_loss", "get_unscaled_gradients")
_STATE = ("loss_scale", "dynamic", "dynamic_counter", "initial_scale")


class Loops(NamedTuple):
    """What changes in plain loops: the reads of the two methods, each with its edits."""

    edits: dict[cst.Attribute, tuple[tuple[cst.CSTNode, Edit], ...]]


def final_class(program: Program) -> str:
    """The path of the class that a migrated program constructs."""
    if to_shim_class(program):
        return f"{SHIM}.keras.mixed_precision.LossScaleOptimizer"
    return f"{FINAL}.LossScaleOptimizer"


def to_shim_class(program: Program) -> bool:
    """Whether TensorFlow's final class moves to the shim's, which has Keras 2's methods on Keras 3.

    For `--to shim` it always does: the result runs on every TensorFlow.
    """
    options = program.options
    if options.target is Target.SHIM:
        return True
    return options.for_keras_3 and program.cached(plain_loops) is None


def final_outcome(program: Program) -> Safety:
    """Whether the move to that class is safe or unsafe."""
    return Safety.SAFE if program.cached(plain_loops) is None else Safety.UNSAFE


def plain_loops(program: Program) -> Optional[Loops]:
    """The changes that Keras 3's own class needs; None where it must not be used."""
    options = program.options
    if options.for_keras_2 or not options.unsafe or options.target is Target.SHIM:
        return None
    if program.neighbors.needs_shim:
        return None
    wraps = [*program.cached(plan_constructors).values(), *_repairs(program)]
    if any(wrap.target != FINAL_CLASS or "dynamic" in wrap.arguments for wrap in wraps):
        return None
    if any(_is_keyword(program, "dynamic") or program.attributes(name) for name in _STATE):
        return None
    if not any(one.legacy.is_keras_optimizer for one in program.references):
        return None
    if any(string_of(string) in _LOOP_METHODS for string in program.scopes.strings):
        return None  # `hasattr(opt, "get_scaled_loss")`
    edits: dict[cst.Attribute, tuple[tuple[cst.CSTNode, Edit], ...]] = {}
    for attribute in program.attributes("get_scaled_loss"):
        call = program.call_of(attribute)
        if call is None or not _scales_a_tensor(program, call):
            return None
        edits[attribute] = ((attribute, _scaling),)
    for attribute in program.attributes("get_unscaled_gradients"):
        change = _without_unscaling(program, attribute)
        if change is None:
            return None
        edits[attribute] = change
    # Keras 3's class unscales whatever is applied, scaled or not.
    counts = {len(program.attributes(name)) for name in (*_LOOP_METHODS, "apply_gradients")}
    if len(counts) != 1 or program.attributes("minimize"):
        return None
    return Loops(edits)


def _repairs(program: Program) -> list[ConstructorPlan]:
    """What becomes of final classes that are called with the experimental class's arguments."""
    calls = [program.call_of(reference.node) for reference in references(program, "LS401")]
    return [plan(program, call) for call in calls if call is not None and has_loss_scale(call)]


def _is_keyword(program: Program, name: str) -> bool:
    calls = [
        program.call_of(reference.node)
        for reference in program.references
        if reference.legacy.name == "LossScaleOptimizer"
    ]
    return any(
        argument.keyword is not None and argument.keyword.value == name
        for call in calls
        if call is not None
        for argument in call.args
    )


def _scaling(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Attribute)
    return node.with_changes(attr=node.attr.with_changes(value="scale_loss"))


def _scales_a_tensor(program: Program, call: cst.Call) -> bool:
    """Whether a tensor is scaled, and not a function, which Keras 3 does not accept."""
    if len(call.args) != 1 or call.args[0].star:
        return False
    loss = call.args[0].value
    if isinstance(loss, cst.Lambda) or _is_callee(program, call):
        return False
    if isinstance(loss, cst.Name):
        scope = program.scopes.loads.get(loss)
        bindings = scope.bindings_of(loss.value) if scope is not None else []
        if any(each.kind == "function" or isinstance(each.value, cst.Lambda) for each in bindings):
            return False
    assign = program.parents.get(call)
    if not isinstance(assign, cst.Assign) or not isinstance(assign.targets[0].target, cst.Name):
        return True
    scaled = assign.targets[0].target
    scope = _scope_binding(program, scaled)
    reads = loads_of(program, scope, scaled.value) if scope is not None else []
    return not any(_is_callee(program, each) for each in reads)


def _is_callee(program: Program, node: cst.CSTNode) -> bool:
    parent = program.parents.get(node)
    return isinstance(parent, cst.Call) and parent.func is node


def _without_unscaling(
    program: Program, attribute: cst.Attribute
) -> Optional[tuple[tuple[cst.CSTNode, Edit], ...]]:
    """The edit that drops `g = opt.get_unscaled_gradients(s)`, if only applying reads `g`."""
    call = program.call_of(attribute)
    if call is None or len(call.args) != 1 or call.args[0].star:
        return None
    scaled = call.args[0].value
    assign = program.parents.get(call)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    target = assign.targets[0].target
    line = program.parents.get(assign)
    if not isinstance(target, cst.Name) or not isinstance(line, cst.SimpleStatementLine):
        return None
    scope = _scope_binding(program, target)
    if scope is None:
        return None
    reads = list(loads_of(program, scope, target.value))
    same = isinstance(scaled, cst.Name) and scaled.value == target.value
    if same:
        reads = [name for name in reads if name is not scaled]
    elif isinstance(scaled, cst.Name) and len(loads_of(program, scope, scaled.value)) != 1:
        return None
    if len(reads) != 1 or not _is_applied(program, reads[0], attribute.value):
        return None
    if not _comes_from_tape(program, scaled):
        return None
    if same and len(line.body) == 1 and not _comments(line):
        body = body_of(program, line)
        if body is not None and len(body) > 1:
            return ((line, lambda old: REMOVED),)
        return ((line, lambda old: old.with_changes(body=[cst.Pass()])),)
    return ((call, lambda old: old.args[0].value),)


def _comments(line: cst.SimpleStatementLine) -> bool:
    return line.trailing_whitespace.comment is not None or any(
        empty.comment for empty in line.leading_lines
    )


def _scope_binding(program: Program, target: cst.Name) -> Optional[Scope]:
    for scope in program.all_scopes():
        if any(binding.node is target for binding in scope.bindings.get(target.value, [])):
            return scope
    return None


def _is_applied(program: Program, name: cst.Name, optimizer: cst.BaseExpression) -> bool:
    """Whether `name` is read as `optimizer.apply_gradients(zip(name, ...))`."""
    argument = program.parents.get(name)
    zipped = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(zipped, cst.Call) or program.code(zipped.func) != "zip":
        return False
    outer = program.parents.get(zipped)
    call = program.parents.get(outer) if isinstance(outer, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and len(call.args) == 1
        and program.code(call.func) == f"{program.code(optimizer)}.apply_gradients"
    )


def _comes_from_tape(program: Program, scaled: cst.BaseExpression) -> bool:
    """Whether the gradients come straight from `tape.gradient`."""
    if isinstance(scaled, cst.Call):
        return program.code(scaled.func).endswith(".gradient")
    if not isinstance(scaled, cst.Name):
        return False
    scope = program.scopes.loads.get(scaled)
    bindings = scope.bindings_of(scaled.value) if scope is not None else []
    sources = [
        binding.value
        for binding in bindings
        if isinstance(binding.value, cst.Call)
        and not program.code(binding.value.func).endswith(".get_unscaled_gradients")
    ]
    others = [binding for binding in bindings if not isinstance(binding.value, cst.Call)]
    return not others and len(sources) == 1 and program.code(sources[0].func).endswith(".gradient")
