"""With `--unsafe` on the Keras 3 target, writes plain training loops for Keras 3's own class.

Keras 3 (TensorFlow 2.16) has `scale_loss` and unscales in `apply_gradients`; Keras 2 had
`get_scaled_loss` and `get_unscaled_gradients`. The result is the same only if the gradients go
straight from the tape to `apply_gradients`, in one function. In other loops (clipping, norms,
accumulation, all-reduce) the numbers would change silently, so the program stays on the shim's
class. So does a program of which other files make optimizers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

import libcst as cst

from ...model import Group, Safety, Target
from ...resolve.classes import is_loss_scale_optimizer
from ...resolve.program import Program
from ...resolve.tree import REMOVED, Edit, body_of, string_of
from ...resolve.values import bindings_of
from ...rewrite.proposal import Proposal
from ..rule import Example, Rule
from ._constructors import plan_constructors

__all__ = ["INSTALLED", "RULE", "plain_loops"]

INSTALLED = (
    "Keras 3's own class has no floor or ceiling for the scale, checks the first replica's "
    "gradients only, does not advance iterations on a skipped step, and can fail under a strategy"
)
_MESSAGE = f"Keras 3 scales with scale_loss and unscales in apply_gradients; {INSTALLED}"
_SCALE, _UNSCALE, _APPLY = "get_scaled_loss", "get_unscaled_gradients", "apply_gradients"
_STATE = ("loss_scale", "dynamic", "dynamic_counter", "initial_scale", "minimize", "_optimizer")

_CONDITIONS = (cst.BooleanOperation, cst.If, cst.IfExp, cst.Match, cst.Try, cst.TryStar)

_Edits = tuple[tuple[cst.CSTNode, Edit], ...]


def check(program: Program) -> Iterator[Proposal]:
    """Proposes Keras 3's methods, where the whole program is plain."""
    for attribute, edits in (program.cached(plain_loops) or {}).items():
        yield Proposal(
            node=attribute,
            code="LS402",
            symbol=f"LossScaleOptimizer.{attribute.attr.value}",
            outcome=Safety.UNSAFE,
            message=_MESSAGE,
            edits=edits,
        )


def plain_loops(program: Program) -> Optional[Mapping[cst.Attribute, _Edits]]:
    """The edits at each call of the two methods; None where Keras 3's class must not be used."""
    options = program.options
    if options.keras != 3 or not options.unsafe or options.target is Target.SHIM:
        return None
    if program.goes_to_shim(Group.KERAS_OPTIMIZERS) or program.surroundings.makes_optimizers:
        return None
    makers = [one for one in program.references if one.legacy.is_keras_optimizer]
    calls = [call for call in (program.call_of(one.node) for one in makers) if call is not None]
    plans = program.cached(plan_constructors).values()
    if not makers or any(
        plan.path or plan.problem or "dynamic" in plan.arguments for plan in plans
    ):
        return None
    names = {one.keyword.value for call in calls for one in call.args if one.keyword is not None}
    if "dynamic" in names or any(program.attributes(name) for name in _STATE):
        return None
    if any(string_of(string) in (_SCALE, _UNSCALE) for string in program.scopes.strings):
        return None  # `hasattr(opt, "get_scaled_loss")`
    counts = {len(program.attributes(name)) for name in (_SCALE, _UNSCALE, _APPLY)}
    if len(counts) != 1:
        return None  # Keras 3's class unscales whatever is applied, scaled or not
    steps = [one for name in (_SCALE, _UNSCALE, _APPLY) for one in program.attributes(name)]
    if any(_is_conditional(program, one) for one in steps):
        return None  # Keras 3's class always unscales
    edits: dict[cst.Attribute, _Edits] = {}
    for attribute in program.attributes(_SCALE):
        is_known = is_loss_scale_optimizer(program, attribute.value)
        if not is_known or not _scales_a_tensor(program, attribute):
            return None
        edits[attribute] = ((attribute, _scaling),)
    for attribute in program.attributes(_UNSCALE):
        change = _without_unscaling(program, attribute)
        if change is None:
            return None
        edits[attribute] = change
    return edits


def _is_conditional(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a part of a step runs only sometimes."""
    for above in program.ancestors(attribute):
        if isinstance(above, _CONDITIONS):
            return True
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return False
    return False


def _scaling(node: cst.CSTNode) -> object:
    assert isinstance(node, cst.Attribute)
    return node.with_changes(attr=node.attr.with_changes(value="scale_loss"))


def _scales_a_tensor(program: Program, attribute: cst.Attribute) -> bool:
    """Whether a tensor is scaled, and not a function, which Keras 3 does not accept."""
    call = program.call_of(attribute)
    if (
        call is None
        or len(call.args) != 1
        or call.args[0].star
        or program.call_of(call) is not None
    ):
        return False
    loss = call.args[0].value
    given = bindings_of(program, loss) if isinstance(loss, cst.Name) else []
    if isinstance(loss, cst.Lambda) or any(one.kind == "function" for one in given):
        return False
    if any(isinstance(one.value, cst.Lambda) for one in given):
        return False
    target = _only_target(program, call)
    return target is None or not any(
        program.call_of(name) is not None for name in _reads(program, target)
    )


def _only_target(program: Program, call: cst.Call) -> Optional[cst.Name]:
    """The `g` of `g = call`."""
    assign = program.parents.get(call)
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    target = assign.targets[0].target
    return target if isinstance(target, cst.Name) else None


def _reads(program: Program, target: cst.Name) -> list[cst.Name]:
    for scope in program.all_scopes():
        if any(one.node is target for one in scope.bindings.get(target.value, ())):
            return program.loads_of(scope, target.value)
    return []


def _without_unscaling(program: Program, attribute: cst.Attribute) -> Optional[_Edits]:
    """The edit that drops `g = opt.get_unscaled_gradients(s)`, if only applying reads `g`."""
    call = program.call_of(attribute)
    target = _only_target(program, call) if call is not None else None
    if call is None or target is None or len(call.args) != 1 or call.args[0].star:
        return None
    line = program.parents.get(program.parents[call])
    if not isinstance(line, cst.SimpleStatementLine):
        return None
    scaled = call.args[0].value
    reads = [name for name in _reads(program, target) if name is not scaled]
    is_same = isinstance(scaled, cst.Name) and scaled.value == target.value
    if isinstance(scaled, cst.Name) and not is_same:
        scope = program.scopes.loads[scaled].owner(scaled.value)
        if scope is None or len(program.loads_of(scope, scaled.value)) != 1:
            return None
    if len(reads) != 1 or not _is_applied(program, reads[0], attribute.value):
        return None
    if not _comes_from_tape(program, scaled):
        return None
    if is_same and len(line.body) == 1 and not _has_comment(line):
        body = body_of(line, program.parents)
        if body is not None and len(body) > 1:
            return ((line, lambda old: REMOVED),)
        return ((line, lambda old: old.with_changes(body=[cst.Pass()])),)
    return ((call, lambda old: old.args[0].value),)


def _has_comment(line: cst.SimpleStatementLine) -> bool:
    return line.trailing_whitespace.comment is not None or any(
        empty.comment for empty in line.leading_lines
    )


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
        and program.code(call.func) == f"{program.code(optimizer)}.{_APPLY}"
    )


def _comes_from_tape(program: Program, scaled: cst.BaseExpression) -> bool:
    """Whether the gradients come straight from `tape.gradient`."""
    if isinstance(scaled, cst.Call):
        return program.code(scaled.func).endswith(".gradient")
    values = (
        [one.value for one in bindings_of(program, scaled)] if isinstance(scaled, cst.Name) else []
    )
    calls = [value.func for value in values if isinstance(value, cst.Call)]
    sources = [one for one in map(program.code, calls) if not one.endswith(f".{_UNSCALE}")]
    return len(calls) == len(values) and len(sources) == 1 and sources[0].endswith(".gradient")


RULE = Rule(
    codes={"LS402": "get_scaled_loss and get_unscaled_gradients on Keras 3"},
    summary="plain loops for Keras 3's own LossScaleOptimizer (--unsafe)",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    examples=(
        Example(
            "not without --unsafe",
            """\
            import tensorflow as tf

            def step(opt, tape, loss, variables):
                loss = opt.get_scaled_loss(loss)
                grads = opt.get_unscaled_gradients(tape.gradient(loss, variables))
                opt.apply_gradients(zip(grads, variables))
            """,
            keras=3,
        ),
        Example(
            "a loop that scales a function stays on the shim's class",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            scaled_loss = opt.get_scaled_loss(lambda: model(x))
            with tf.GradientTape() as tape:
                loss = scaled_loss()
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
            opt.apply_gradients(zip(grads, model.variables))
            """,
            """\
            import tensorflow as tf
            import tf_lossscale as tfls

            opt = tfls.keras.mixed_precision.LossScaleOptimizer(opt)
            scaled_loss = opt.get_scaled_loss(lambda: model(x))
            with tf.GradientTape() as tape:
                loss = scaled_loss()
            grads = opt.get_unscaled_gradients(tape.gradient(loss, model.variables))
            opt.apply_gradients(zip(grads, model.variables))
            """,
            Safety.SAFE,
            keras=3,
            unsafe=True,
        ),
        Example(
            "a plain loop",
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
            with tf.GradientTape() as tape:
                loss = opt.get_scaled_loss(model(x))
            grads = tape.gradient(loss, model.variables)
            grads = opt.get_unscaled_gradients(grads)
            opt.apply_gradients(zip(grads, model.variables))
            """,
            """\
            import tensorflow as tf

            opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
            with tf.GradientTape() as tape:
                loss = opt.scale_loss(model(x))
            grads = tape.gradient(loss, model.variables)
            opt.apply_gradients(zip(grads, model.variables))
            """,
            Safety.UNSAFE,
            keras=3,
            unsafe=True,
            message_contains="floor",
        ),
    ),
)
