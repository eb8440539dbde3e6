"""What the rules of policies share: the final paths, and what no policy can say any more."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...model import Group
from ...resolve.places import Reference
from ...resolve.program import Program
from ...rewrite.arguments import constant, matched
from ...rewrite.proposal import Proposal
from ...rewrite.rename import FINAL
from ..findings import moved, needs_shim, report

__all__ = ["has_own_loss_scale", "reports_of_call", "to_final", "to_shim_because"]

_PATHS = {
    "set_policy": (f"{FINAL}.set_global_policy", "the same function, renamed"),
    "global_policy": (f"{FINAL}.global_policy", "the same function"),
    "Policy": (f"{FINAL}.Policy", "the same policy"),
}
_NAMES = {"LS601": ("set_policy", "set_global_policy"), "LS602": ("Policy",)}
"""The symbols of each rule, also at their last path, which a first run writes."""
_REMOVED_NAME = (
    "no TensorFlow since 2.4 has a policy of this name: use float32, mixed_float16 or "
    "mixed_bfloat16"
)
_NONE = 'Keras 3 does not accept None, which resets the policy: write "float32"'
_OTHER = (
    "from TensorFlow 2.9 on, policies have no loss scale, and compile scales dynamically under "
    "mixed_float16, even for None: drop the argument, and wrap the optimizer in "
    "LossScaleOptimizer(optimizer, dynamic=..., initial_scale=...)"
)


def to_final(program: Program, reference: Reference) -> Iterator[Proposal]:
    """Proposes the final symbol, unless the reference has its path already."""
    path, why = _PATHS[reference.legacy.name]
    made = moved(program, reference, path, why)
    if made is not None:
        yield made


def to_shim_because(reference: Reference, why: str) -> Proposal:
    """A place that the final policies do not fit."""
    legacy = reference.legacy
    return needs_shim(reference.node, legacy.rule, legacy.name, Group.POLICIES, why)


def reports_of_call(program: Program, code: str) -> Iterator[Proposal]:
    """Reports the arguments that no current TensorFlow accepts, wherever the symbol goes."""
    for reference in program.references:
        call = program.call_of(reference.node)
        if call is None or not reference.legacy.is_policy:
            continue
        if reference.legacy.name not in _NAMES[code]:
            continue
        first = constant(call.args[0].value) if call.args and not call.args[0].star else None
        guidance = ""
        if first is not None and isinstance(first[0], str) and _is_removed(first[0]):
            guidance = _REMOVED_NAME
        elif code == "LS601" and first == (None,) and program.options.for_keras_3:
            guidance = _NONE
        elif code == "LS602" and has_own_loss_scale(call):
            guidance = _OTHER
        if guidance:
            yield report(call, code, _NAMES[code][0], guidance)


def _is_removed(name: str) -> bool:
    return name.startswith("infer") or name.endswith("_float32_vars")


def has_own_loss_scale(call: cst.Call) -> bool:
    """Whether a policy is made with another loss scale than the one that compile uses."""
    found = matched(call, ("name", "loss_scale"))
    if found is None:
        return True
    if "loss_scale" not in found:
        return False
    scale = constant(found["loss_scale"].value)
    name = constant(found["name"].value) if "name" in found else None
    if scale == ("auto",):
        return False
    if name == ("mixed_float16",):
        return scale != ("dynamic",)
    return name is None or scale != (None,)
