"""The table of the experimental policy API: the final API, or the shim's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Safety, Target
from ...resolve.program import Program, Reference
from ...resolve.reaching_values import reaching_definition
from ...resolve.tree import string_of
from ...rewrite.arguments import constant, matched
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import FINAL
from ..moves import Move, Moves, Safe

__all__ = [
    "MOVES",
    "REMOVED_NAME",
    "group_of",
    "may_read_loss_scale",
    "reads_of_loss_scale",
    "removed_name",
]

REMOVED_NAME = (
    "no TensorFlow since 2.4 has a policy of this name: use float32, mixed_float16 or "
    "mixed_bfloat16"
)
_REFUSED = (
    "from TensorFlow 2.9 on, the shim's policy refuses a loss scale that compile would ignore: "
    "drop the argument, and wrap the optimizer in LossScaleOptimizer(optimizer, dynamic=..., "
    "initial_scale=...) for a loss scale, or in one with dynamic=False, initial_scale=1 for None"
)
_ACCESS = ("getattr", "hasattr", "setattr")


class _PolicyMoves(Moves):
    """The functions and classes of one program pass policies to each other."""

    def proposals(self, program: Program, reference: Reference) -> Iterator[Proposal]:
        """The final symbol, or the shim's."""
        if program.options.target is Target.SHIM:
            proposal = self.to_shim_of(program, reference, group_of(reference))
            caveat = _caveat_of_shim(program, reference)
            if caveat:
                proposal = proposal._replace(outcome=Safety.UNSAFE, message=caveat)
            yield proposal
        else:
            yield from self.to_final(program, reference, group_of(reference))


MOVES = _PolicyMoves(
    [
        Move("set_policy", Safe(f"{FINAL}.set_global_policy", "the same function, renamed")),
        Move("global_policy", Safe(f"{FINAL}.global_policy", "the same function")),
        Move("Policy", Safe(f"{FINAL}.Policy", "the same policy")),
    ],
    shim="it behaves as in TensorFlow 2.8",
)


def _caveat_of_shim(program: Program, reference: Reference) -> str:
    """What the shim refuses at a call of the experimental API; empty if that is nothing."""
    call = program.call_of(reference.node)
    if call is None:
        return ""
    if reference.legacy.name in ("Policy", "set_policy") and removed_name(call):
        return REMOVED_NAME
    if reference.legacy.name != "Policy":
        return ""
    found = matched(call, ("name", "loss_scale"))
    return "" if found is not None and _is_what_compile_does(found) else _REFUSED


def _is_what_compile_does(found: dict[str, cst.Arg]) -> bool:
    """Whether `compile` scales as the policy says, in every TensorFlow and with constants only."""
    if "loss_scale" not in found:
        return True
    scale = constant(found["loss_scale"].value)
    name = constant(found["name"].value) if "name" in found else None
    if name is None or not isinstance(name[0], str):
        return scale == ("auto",)
    is_scaled = name[0] == "mixed_float16"
    return scale in (("auto",), ("dynamic",) if is_scaled else (None,))


def reads_of_loss_scale(program: Program) -> dict[cst.CSTNode, Reference]:
    """Each `policy.loss_scale`, with the symbol whose call made the policy."""
    found: dict[cst.CSTNode, Reference] = {}
    for attribute in program.attributes("loss_scale"):
        reference = _maker(program, attribute.value)
        if reference is not None:
            found[attribute] = reference
    return found


def may_read_loss_scale(program: Program) -> dict[cst.CSTNode, Reference]:
    """Each `loss_scale` of what can be a policy by its name, with a symbol of the policy API.

    A policy that is a parameter, or the attribute of an object, cannot be followed to its maker.
    """
    policies = [one for one in program.references if one.legacy.is_policy and one.legacy.rule]
    if not policies:
        return {}
    certain = program.cached(reads_of_loss_scale)
    found: dict[cst.CSTNode, Reference] = {}
    for attribute in program.attributes("loss_scale"):
        if attribute not in certain and _is_named_policy(attribute.value):
            found[attribute] = policies[0]
    for string in program.scopes.strings:
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if not isinstance(call, cst.Call) or string_of(string) != "loss_scale":
            continue
        is_access = program.code(call.func) in _ACCESS and argument in call.args[1:2]
        if is_access and _is_named_policy(call.args[0].value):
            found[call] = policies[0]
    return found


def _is_named_policy(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Attribute):
        node = node.attr
    return isinstance(node, cst.Name) and "policy" in node.value.lower()


def removed_name(call: cst.Call) -> bool:
    """Whether the first argument is the name of a policy that TensorFlow 2.1 to 2.4 removed."""
    found = constant(call.args[0].value) if call.args and not call.args[0].star else None
    name = found[0] if found is not None else None
    return isinstance(name, str) and (name.startswith("infer") or name.endswith("_float32_vars"))


def _maker(program: Program, node: cst.CSTNode) -> Optional[Reference]:
    """The symbol whose call makes `node`, if it is certainly a policy."""
    if isinstance(node, cst.Name):
        binding = reaching_definition(program, node)
        made = binding.value if binding is not None else None
        return _maker(program, made) if isinstance(made, cst.Call) else None
    if not isinstance(node, cst.Call):
        return None
    reference = program.by_node.get(node.func)
    if reference is None or not reference.legacy.returns_policy:
        return None
    return reference


def group_of(reference: Reference) -> Group:
    """The group of all places of a policy API, whose functions pass policies to each other.

    `set_policy` takes what `Policy` makes, and `global_policy` and `get_layer_policy` return it. A
    policy that must stay experimental cannot be followed to every place that it reaches, so all
    places of the API wait for it.
    """
    return Group(f"{reference.legacy.family.value}.policies")
