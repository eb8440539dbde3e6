"""The table of the experimental policy API: the final API, or the shim's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Target
from ...resolve.program import Program, Reference
from ...resolve.reaching_values import reaching_definition
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import FINAL
from ..moves import Move, Moves, Safe

__all__ = ["MOVES", "group_of", "reads_of_loss_scale"]


class _PolicyMoves(Moves):
    """The functions and classes of one program pass policies to each other."""

    def proposals(self, program: Program, reference: Reference) -> Iterator[Proposal]:
        """The final symbol, or the shim's."""
        if program.options.target is Target.SHIM:
            yield self.to_shim_of(program, reference)
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


def reads_of_loss_scale(program: Program) -> dict[cst.CSTNode, Reference]:
    """Each `policy.loss_scale`, with the symbol whose call made the policy."""
    found: dict[cst.CSTNode, Reference] = {}
    for attribute in program.attributes("loss_scale"):
        reference = _maker(program, attribute.value)
        if reference is not None:
            found[attribute] = reference
    return found


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
