"""Moves the experimental policies to `tf.keras.mixed_precision`.

TensorFlow 2.9 removed the experimental module (release notes 2.9.0: "set_policy is replaced by
set_global_policy"). `tf.keras.mixed_precision.set_policy`, which some programs call after
`experimental.` was dropped, never existed; it is repaired too.

The final policy (2.4) has no loss scale: under `mixed_float16`, `compile` wraps the optimizer in
Keras's own LossScaleOptimizer, which scales dynamically. So `loss_scale="dynamic"` is dropped. With
any other value, the policies of the program stay on the shim. Under the shim's policies, `compile`
wraps in the shim's LossScaleOptimizer, with the loss scale of the policy, on every TensorFlow.
`loss_scale=None`, which meant no scaling, would otherwise *add* it.

`get_layer_policy(layer)` becomes `layer.dtype_policy`, which layers have since 2.4. An import of
the function goes with the calls that read it.

Policies flow from `Policy` through `set_policy` to `global_policy` and the layers, so one decision
is made for all of them. Class tests, subclasses, and the class or a function as a value need the
shim's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...rewrite import arguments
from ..rule import Decision, Mention, Obstacle, Options, Program, Proposal, Reference, Rule

__all__ = ["RULE"]

_NAMES = {
    "set_policy": ("LS601", "set_global_policy", "the same function, renamed"),
    "set_global_policy": ("LS601", "set_global_policy", ""),
    "Policy": ("LS602", "Policy", "the same policy"),
    "global_policy": ("LS603", "global_policy", "the same function"),
}
"""The code of each symbol, its final name, which a first run writes, and what differs."""
_DROPPED = "loss_scale='dynamic' is the default of compile under mixed_float16; argument dropped"
_WITHOUT_SCALE = arguments.renamed_arguments({"name": "name", "loss_scale": None})
_ATTRIBUTE = "use layer.dtype_policy"
_SIMPLE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
"""What an attribute can follow without parentheses."""
_PASSED = "the function is passed on, so its calls and their arguments cannot be seen"
_NO_SCALE = (
    "the final policy has no loss scale, which would have to go to "
    "tfls.keras.mixed_precision.from_loss_scale(optimizer, {})"
)
_UNSCALED = "loss_scale=None means no scaling here, but compile scales under a final policy"
_RESET = "Keras 3's set_global_policy does not accept None, which resets the policy"
_BUG = "the final Policy never took loss_scale, in any TensorFlow"
_LEAVE_OUT = f"{_BUG}: leave the argument out, because compile scales dynamically"
_EXPERIMENTAL = (
    f"{_BUG}: write tfls.keras.mixed_precision.experimental.{{}}, and set the policy with "
    "tfls.keras.mixed_precision.experimental.set_policy"
)
_COMMENT = "a comment stands between the arguments"
_WHY = {
    Mention.BASE: "the constructor of the final policy takes other arguments",
    Mention.MEMBER: "configs of the experimental policy have a loss scale",
    Mention.TEST: "in TensorFlow 2.4 to 2.8, the policies of layers are not experimental ones",
    Mention.VALUE: "the class is passed on as a value",
}
_REMOVED_NAME = (
    "no TensorFlow since 2.4 has a policy of this name: use float32, mixed_float16 or "
    "mixed_bfloat16"
)
_NONE = 'Keras 3 does not accept None, which resets the policy: write "float32"'
_SCALED = ("name", "loss_scale")


def needs(program: Program, options: Options) -> Iterator[Obstacle]:
    """The uses that the final symbols do not fit."""
    for reference in program.references_to("LS602"):
        why = _why_shim(program, reference, program.call_of(reference.node))
        if why:
            yield Obstacle.at(reference, why)
    for reference in program.references_to("LS604"):
        if _layer_policy(program, reference) is None:
            yield Obstacle.at(reference, _PASSED)
    for reference in program.references_to("LS601") if options.for_keras_3 else ():
        is_experimental = reference.legacy.name == "set_policy"
        if is_experimental and _first_constant(program, reference) == (None,):
            yield Obstacle.at(reference, _RESET)


def check(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Proposes the final symbols."""
    for reference in program.references_to("LS601", "LS602", "LS603"):
        _, name, words = _NAMES[reference.legacy.name]
        keras = "tf_keras" if reference.legacy.root == "tf_keras" else "tensorflow.keras"
        made = Proposal.moved(reference, f"{keras}.mixed_precision.{name}", words)
        call = program.call_of(reference.node) if reference.legacy.name == "Policy" else None
        if made is not None and call is not None and len(call.args) > 1:
            made = made._replace(message=_DROPPED, edits=((call, _WITHOUT_SCALE),))
        if made is not None:
            yield made
    for reference in program.references_to("LS604"):
        layer = _layer_policy(program, reference)
        if layer is not None:
            yield layer


def _layer_policy(program: Program, reference: Reference) -> Optional[Proposal]:
    """The attribute of a layer in the place of `get_layer_policy`; None if that does not fit."""
    call = program.call_of(reference.node)
    found = (
        arguments.matched(call, ("layer",))
        if call is not None and not arguments.has_comments(call)
        else None
    )
    if call is not None and found and isinstance(found["layer"].value, _SIMPLE):
        return Proposal.safe(
            reference, _ATTRIBUTE, edits=((call, _attribute),), removed=(reference,)
        )
    names = program.mentions.names_bound(reference)
    is_exported = program.mentions.has_string(names)
    if program.mentions.of(reference) is Mention.IMPORT and not is_exported:
        return Proposal.safe(reference, _ATTRIBUTE, removed=(reference,))
    return None


def _attribute(node: cst.CSTNode) -> cst.CSTNode:
    assert isinstance(node, cst.Call)
    name = cst.Name("dtype_policy")
    return cst.Attribute(node.args[0].value, name, lpar=node.lpar, rpar=node.rpar)


def _why_shim(program: Program, reference: Reference, call: Optional[cst.Call]) -> str:
    """Why the final class does not fit this place; empty if it does."""
    if call is not None and _has_own_loss_scale(call):
        return _why_own_scale(program, call)
    if call is not None and arguments.has_comments(call):
        return _COMMENT
    return _WHY.get(program.mentions.of(reference), "")


def _why_own_scale(program: Program, call: cst.Call) -> str:
    scale = (arguments.matched(call, _SCALED) or {}).get("loss_scale")
    if scale is None:
        return _NO_SCALE.format("...")
    if arguments.constant(scale.value) == (None,):
        return _UNSCALED
    return _NO_SCALE.format(program.code(scale.value))


def reports(program: Program, options: Options, decision: Decision) -> Iterator[Proposal]:
    """Reports the arguments that no current TensorFlow accepts, wherever the symbol goes."""
    for reference in program.references:
        if not reference.legacy.is_policy or reference.legacy.name not in _NAMES:
            continue
        yield from _of_scale_of_final(program, reference, options)
        guidance = _of_first_argument(program, reference, options)
        call = program.call_of(reference.node)
        if guidance and call is not None:
            name = reference.legacy.name
            symbol = "Policy" if name == "Policy" else "set_policy"
            yield Proposal.report(call.args[0], _NAMES[name][0], symbol, guidance)


def _of_scale_of_final(
    program: Program, reference: Reference, options: Options
) -> Iterator[Proposal]:
    """Repairs or reports a final policy with a loss scale, which search and replace leaves."""
    call = program.call_of(reference.node)
    found = arguments.matched(call, _SCALED) if call is not None else None
    is_policy = reference.legacy.name == "Policy" and reference.legacy.is_of_final_api
    if call is None or not found or "loss_scale" not in found or not is_policy:
        return
    is_default = not _has_own_loss_scale(call)
    if is_default and not options.to_shim and not arguments.has_comments(call):
        message = f"{_BUG}; argument dropped, because compile scales dynamically"
        yield Proposal.edited(call, "LS602", "Policy", message, ((call, _WITHOUT_SCALE),))
        return
    given = ", ".join(program.code(argument).rstrip(", ") for argument in call.args)
    guidance = _LEAVE_OUT if is_default else _EXPERIMENTAL.format(f"Policy({given})")
    yield Proposal.report(found["loss_scale"], "LS602", "Policy", guidance)


def _of_first_argument(program: Program, reference: Reference, options: Options) -> str:
    """Why a policy of this name cannot be made or set; empty if it can."""
    first = _first_constant(program, reference)
    if first is None:
        return ""
    written = str(first[0])
    if written.startswith("infer") or written.endswith("_float32_vars"):
        return _REMOVED_NAME
    is_reset = first == (None,) and reference.legacy.name == "set_global_policy"
    return _NONE if is_reset and options.for_keras_3 else ""


def _first_constant(program: Program, reference: Reference) -> Optional[tuple[arguments.Constant]]:
    """The constant that is the first argument of a call, in a tuple; None if there is none."""
    call = program.call_of(reference.node)
    argument = call.args[0] if call is not None and call.args else None
    return (
        arguments.constant(argument.value) if argument is not None and not argument.star else None
    )


def _has_own_loss_scale(call: cst.Call) -> bool:
    """Whether a policy is made with another loss scale than the one that compile uses."""
    found = arguments.matched(call, _SCALED)
    if found is None:
        return True
    if "loss_scale" not in found:
        return False
    scale = arguments.constant(found["loss_scale"].value)
    name = arguments.constant(found["name"].value) if "name" in found else None
    if scale == ("auto",):
        return False
    if name == ("mixed_float16",):
        return scale != ("dynamic",)
    return name is None or scale != (None,)


RULE = Rule(
    codes={
        "LS601": "tf.keras.mixed_precision.experimental.set_policy",
        "LS602": "tf.keras.mixed_precision.experimental.Policy",
        "LS603": "tf.keras.mixed_precision.experimental.global_policy",
        "LS604": "tf.keras.mixed_precision.experimental.get_layer_policy",
    },
    summary="experimental policies to the final ones",
    upstream="https://github.com/tensorflow/tensorflow/releases/tag/v2.9.0",
    needs=needs,
    check=check,
    reports=reports,
    cases="""
        # not the final API, nor another object's set_policy
          from tensorflow.keras import mixed_precision

          agent.set_policy("mixed_float16")
          mixed_precision.set_global_policy("float32")
          print(mixed_precision.Policy("float32"), mixed_precision.global_policy().compute_dtype)

        # a policy by its name
          import tensorflow as tf

        - tf.keras.mixed_precision.experimental.set_policy("mixed_float16")
        - print(tf.keras.mixed_precision.experimental.global_policy().compute_dtype)
        + tf.keras.mixed_precision.set_global_policy("mixed_float16")
        + print(tf.keras.mixed_precision.global_policy().compute_dtype)

        # a policy with a loss scale of its own
        - import tensorflow as tf
        + import tf_lossscale as tfls

        - policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=scale)
        - tf.keras.mixed_precision.experimental.set_policy(policy)
        + policy = tfls.keras.mixed_precision.experimental.Policy("mixed_float16", loss_scale=scale)
        + tfls.keras.mixed_precision.experimental.set_policy(policy)

        # the policy of a layer under another name
        - from tensorflow.keras.mixed_precision import experimental as prec
        -
        - dtype = prec.get_layer_policy(layer).compute_dtype
        + dtype = layer.dtype_policy.compute_dtype

        # a policy without a loss scale of its own
        - from tensorflow.keras.mixed_precision import experimental as mixed_precision
        + from tensorflow.keras import mixed_precision

        - policy = mixed_precision.Policy("mixed_float16", loss_scale="dynamic")
        - mixed_precision.set_policy(policy)
        + policy = mixed_precision.Policy("mixed_float16")
        + mixed_precision.set_global_policy(policy)
          dtype = mixed_precision.global_policy().compute_dtype

        # the policy of a layer
        - import tensorflow as tf
        - from tensorflow.keras.mixed_precision.experimental import get_layer_policy
        -
        - print(get_layer_policy(model).name, get_layer_policy(layer).name)
        - print(tf.keras.mixed_precision.experimental.get_layer_policy(model.layers[0]))
        + print(model.dtype_policy.name, layer.dtype_policy.name)
        + print(model.layers[0].dtype_policy)
    """,
)
