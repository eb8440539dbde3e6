"""With `--unsafe` on the Keras 3 target, writes plain training loops for Keras 3's own class.

Keras 3 (TensorFlow 2.16) has `scale_loss` and unscales in `apply_gradients`; Keras 2 had
`get_scaled_loss` and `get_unscaled_gradients`. The result is the same only if the gradients go
straight from the tape to `apply_gradients`, in one function. In other loops (clipping, norms,
accumulation, all-reduce) the numbers would change silently, so the program stays on the shim's
class. A program stays on it, too, if other files of it make, use or test for optimizers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Optional

import libcst as cst

from ...resolve import tree
from ...resolve.vocabulary import STEP_AND_STATE
from ...rewrite.arguments import renamed_attribute
from ..rule import Decision, Options, Program, Proposal, Rule
from ._constructors import plan

__all__ = ["INSTALLED", "RULE", "plain_loops"]

INSTALLED = (
    "Keras 3's own class has no floor or ceiling for the scale, checks the first replica's "
    "gradients only, does not advance iterations on a skipped step, and can fail under a strategy"
)
_MESSAGE = f"Keras 3 scales with scale_loss and unscales in apply_gradients; {INSTALLED}"
_NOT_PLAIN = (
    "this loop stays on the shim's class, because Keras 3's unscales in apply_gradients; it can "
    "move if one function scales, unscales and applies, with nothing between unscaling and "
    "applying (clip with global_clipnorm= of the inner optimizer), and no state of it is read"
)
_RENAME = (
    "; after that, write tf.keras.mixed_precision.LossScaleOptimizer for the shim's class, and "
    "migrate again"
)
_OTHER_FILES = (
    "this loop stays on the shim's class, because other files make, use or test for loss-scale "
    "optimizers with the methods of Keras 2; it can move if one file makes and uses the optimizer"
)
_NAME = "LossScaleOptimizer"
_SCALE, _UNSCALE, _APPLY = "get_scaled_loss", "get_unscaled_gradients", "apply_gradients"
_STATE = frozenset(STEP_AND_STATE) - {_APPLY}

_CONDITIONS = (cst.BooleanOperation, cst.If, cst.IfExp, cst.Match, cst.Try, cst.TryStar)


_Edits = tuple[tuple[cst.CSTNode, tree.Edit], ...]


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes Keras 3's methods, where the whole program is plain; otherwise says why not."""
    loops = plain_loops(program, options, decision)
    if loops is None and _is_asked_for(options):
        yield from _why_not(program, decision)
    for attribute, edits in (loops or {}).items():
        symbol = f"LossScaleOptimizer.{attribute.attr.value}"
        yield Proposal.edited(attribute, "LS402", symbol, _MESSAGE, edits).as_unsafe(_MESSAGE)


def _is_asked_for(options: Options) -> bool:
    return options.keras == 3 and options.unsafe and not options.to_shim


def _why_not(program: Program, decision: Decision) -> Iterator[Proposal]:
    """A note at the first loop of a file, if no other note says why it stays on the shim."""
    calls = program.attributes(_SCALE)
    loops = [call for call in calls if program.classes.is_loss_scale_optimizer(call.value)]
    if not loops or decision.optimizers_on_shim:
        return
    why = _OTHER_FILES if decision.has_keras_2_elsewhere else _NOT_PLAIN
    if any(name == _NAME for _, name in program.migrated):
        why += _RENAME
    yield Proposal.note(loops[0], "LS402", f"LossScaleOptimizer.{_SCALE}", why)


def plain_loops(
    program: Program, options: Options, decision: Decision
) -> Optional[Mapping[cst.Attribute, _Edits]]:
    """The edits at each call of the two methods; None where Keras 3's class must not be used."""
    if not _is_asked_for(options):
        return None
    if decision.optimizers_on_shim or decision.has_keras_2_elsewhere:
        return None
    return program.cached(_plain_loops, decision.reads)


def _plain_loops(
    program: Program, reads: frozenset[str]
) -> Optional[Mapping[cst.Attribute, _Edits]]:
    """The edits of all loops that scale, unscale and apply; None if one is not exactly that.

    Keras 3's class unscales whatever is applied, so no loop may be left as it is.
    """
    if not _all_dynamic(program, reads) or any(program.attributes(name) for name in _STATE):
        return None
    if program.mentions.has_string((_SCALE, _UNSCALE)):
        return None  # `hasattr(opt, "get_scaled_loss")`
    scaled, unscaled, applied = map(program.attributes, (_SCALE, _UNSCALE, _APPLY))
    if not len(scaled) == len(unscaled) == len(applied):
        return None  # Keras 3's class unscales whatever is applied, scaled or not
    edits: dict[cst.Attribute, _Edits] = {}
    for step in zip(scaled, unscaled, applied):
        change = _without_unscaling(program, *step) if _is_plain(program, *step) else None
        if change is None or _is_passed_on(program, step[0].value):
            return None
        edits[step[0]], edits[step[1]] = ((step[0], renamed_attribute("scale_loss")),), change
    return edits


def _is_passed_on(program: Program, optimizer: cst.BaseExpression) -> bool:
    """Whether what a different file defines is called with the optimizer, and may use it."""
    name = program.code(optimizer)
    for read in [*program.scopes.loads, *program.attributes(tree.last_name(optimizer))]:
        argument = program.parents.get(read)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or program.code(read) != name:
            continue
        if program.paths_of(call.func) and not program.is_of_tensorflow(call.func):
            return True
    return False


def _all_dynamic(program: Program, reads: frozenset[str]) -> bool:
    """Whether the file names the class, and each optimizer that it makes scales dynamically.

    Imports and class tests name it, too, and make none.

    Args:
      program: the file.
      reads: the names of the file that other files may read.
    """
    classes = [
        reference.node for reference in program.references if reference.legacy.is_keras_optimizer
    ]
    calls = [call for call in map(program.call_of, classes) if call is not None]
    return bool(classes) and all(_is_dynamic(program, call, reads) for call in calls)


def _is_dynamic(program: Program, call: cst.Call, reads: frozenset[str]) -> bool:
    """Whether a call makes an optimizer of the final class without the argument `dynamic`.

    Keras 3's class has no such argument, and always scales dynamically: its second argument is the
    initial scale.
    """
    keywords = [argument.keyword.value for argument in call.args if argument.keyword is not None]
    if "dynamic" in keywords:
        return False
    if program.by_node[call.func].legacy.rule != "LS301":  # of the final class already
        is_unpacked = any(argument.star for argument in call.args)
        return not is_unpacked and len(call.args) - len(keywords) <= 1
    made = program.cached(plan, call, reads)
    is_final = not made.path and not made.problem
    return is_final and "dynamic" not in dict(made.arguments)


def _function_of(program: Program, attribute: cst.Attribute) -> Optional[cst.CSTNode]:
    """The function around a part of a step; the part itself if it runs only sometimes."""
    for above in program.ancestors(attribute):
        if isinstance(above, _CONDITIONS):
            return attribute
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return above
    return None


def _is_plain(program: Program, scale: cst.Attribute, *others: cst.Attribute) -> bool:
    """Whether one optimizer makes all parts of a step in one function, and scales no function."""
    function, optimizer = _function_of(program, scale), program.code(scale.value)
    for part in others:
        if _function_of(program, part) is not function or program.code(part.value) != optimizer:
            return False
    call = program.call_of(scale)
    if call is None or len(call.args) != 1 or call.args[0].star:
        return False
    sources = program.values.sources_of(call.args[0].value)
    is_function = any(isinstance(source, (cst.Lambda, cst.FunctionDef)) for source in sources)
    return not is_function and program.classes.is_loss_scale_optimizer(scale.value)


def _without_unscaling(
    program: Program, scale: cst.Attribute, unscale: cst.Attribute, apply: cst.Attribute
) -> Optional[_Edits]:
    """The edit that drops `g = opt.get_unscaled_gradients(s)`, if only applying reads `g`.

    The gradients must come straight from `tape.gradient`.
    """
    call, applying = program.call_of(unscale), program.call_of(apply)
    assign = program.parents.get(call) if call is not None else None
    if call is None or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    if len(call.args) != 1 or applying is None or len(applying.args) != 1:
        return None
    target, scaled = program.code(assign.targets[0].target), call.args[0].value
    names = {target, program.code(scaled)}
    reads = [load for load in program.scopes.loads if load.value in names and load is not scaled]
    is_applied = program.code(applying.args[0].value).startswith(f"zip({target},")
    if [load.value for load in reads] != [target] or not is_applied:
        return None
    if not _is_of_tape(program, scaled, call):
        return None
    line = program.parents[assign]
    body = tree.body_of(line, program.parents) or ()
    if len(names) == 1 and len(body) > 1 and "#" not in program.code(line):
        return ((line, lambda old: tree.REMOVED),)
    return ((call, lambda old: old.args[0].value),)


def _is_of_tape(program: Program, scaled: cst.BaseExpression, unscaling: cst.Call) -> bool:
    """Whether scaled gradients come straight from `tape.gradient`."""
    sources = [source for source in program.values.sources_of(scaled) if source is not unscaling]
    if len(sources) != 1 or not isinstance(sources[0], cst.Call):
        return False
    return program.code(sources[0].func).endswith(".gradient")


RULE = Rule(
    codes={"LS402": "get_scaled_loss and get_unscaled_gradients on Keras 3"},
    summary="plain loops for Keras 3's own LossScaleOptimizer (--unsafe)",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1",
    check=check,
    cases="""
        # not where the optimizer comes from elsewhere
        > manual, --keras 3, --unsafe: where it is made
          import tensorflow as tf

          def step(opt, tape, loss, variables):
              loss = opt.get_scaled_loss(loss)
              grads = opt.get_unscaled_gradients(tape.gradient(loss, variables))
              opt.apply_gradients(zip(grads, variables))

        # a plain loop
        > unsafe, --keras 3, --unsafe: floor
          import tensorflow as tf

        - opt = tf.keras.mixed_precision.experimental.LossScaleOptimizer(opt, "dynamic")
        + opt = tf.keras.mixed_precision.LossScaleOptimizer(opt)
          with tf.GradientTape() as tape:
        -     loss = opt.get_scaled_loss(model(x))
        +     loss = opt.scale_loss(model(x))
          grads = tape.gradient(loss, model.variables)
        - grads = opt.get_unscaled_gradients(grads)
          opt.apply_gradients(zip(grads, model.variables))

        # a plain step in a function
        > unsafe, --keras 3, --unsafe
          import tensorflow as tf

          opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))

          @tf.function
          def step(x):
              with tf.GradientTape() as tape:
        -         scaled = opt.get_scaled_loss(model(x))
        +         scaled = opt.scale_loss(model(x))
              scaled_gradients = tape.gradient(scaled, model.variables)
        -     gradients = opt.get_unscaled_gradients(scaled_gradients)
        +     gradients = scaled_gradients
              opt.apply_gradients(zip(gradients, model.variables))
    """,
)
