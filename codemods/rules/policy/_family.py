"""Where the experimental policy API goes: to the final one, or to the shim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ...model import Target
from ...resolve.program import Program, Reference
from ...resolve.reaching_values import reaching_definition
from ...rewrite.proposal import Group, Proposal
from ...rewrite.rename import FINAL, move, references, shim_path

__all__ = [
    "NEVER_EXISTED",
    "SHIM_MESSAGE",
    "final_path",
    "group_of",
    "proposals",
    "reads_of_loss_scale",
]

SHIM_MESSAGE = "the shim's policy API does what TensorFlow 2.8's did"
NEVER_EXISTED = "a bug found: the path it had exists in no TensorFlow; "
_NAMES = {"set_policy": "set_global_policy"}


def final_path(reference: Reference) -> str:
    """The final API's twin of a policy symbol."""
    name = reference.legacy.name
    return f"{FINAL}.{_NAMES.get(name, name)}"


def reads_of_loss_scale(program: Program) -> dict[cst.CSTNode, Reference]:
    """Each `policy.loss_scale`, with what surely made the policy."""
    found: dict[cst.CSTNode, Reference] = {}
    for attribute in program.attributes("loss_scale"):
        reference = _maker(program, attribute.value)
        if reference is not None:
            found[attribute] = reference
    return found


def _maker(program: Program, node: cst.CSTNode) -> Optional[Reference]:
    """What makes the policy that `node` surely is."""
    if isinstance(node, cst.Name):
        binding = reaching_definition(program, node)
        made = binding.value if binding is not None else None
        return _maker(program, made) if isinstance(made, cst.Call) else None
    if not isinstance(node, cst.Call):
        return None
    reference = program.by_node.get(node.func)
    if reference is None or reference.legacy.rule not in ("LS602", "LS603", "LS604"):
        return None
    return reference


def group_of(program: Program, reference: Reference) -> Group:
    """The group whose places move together: all of the policy API where a loss scale is read.

    What `global_policy` returns is what `set_policy` made, and only that of the experimental module
    carries a loss scale.
    """
    legacy = reference.legacy
    is_read = program.cached(reads_of_loss_scale)
    return Group(f"{legacy.family}.{'policies' if is_read else legacy.name}")


def proposals(program: Program, rule: str, message: str) -> Iterator[Proposal]:
    """Moves every reference of `rule`."""
    for reference in references(program, rule, "experimental"):
        bug = NEVER_EXISTED if reference.legacy.never_existed else ""
        if program.options.target is Target.SHIM:
            yield move(program, reference, shim_path(reference), bug + SHIM_MESSAGE)
        else:
            group = group_of(program, reference)
            yield move(program, reference, final_path(reference), bug + message, group=group)
