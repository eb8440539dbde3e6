"""Holds back the edit of a name that other files read, or may read, from this one.

`from amp import Wrap` in another file gets what `amp.py` binds to `Wrap`. The edit of that import
or assignment is safe only if all files of the run that read the name are rewritten as well. With a
single file or standard input, other files are not known: a public name at the top level that
nothing in the file reads may be there for them.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Safety
from ..resolve.program import Program, Reference
from ..resolve.reaching_values import loads_of
from ..rewrite.proposal import Proposal

__all__ = ["held_for_others", "may_be_for_others", "reason_to_keep"]

_LEFT = "not rewritten: {file} reads `{name}` from here; resolve {file} first"
_MAY = "{file} may read `{name}` from here, in a way that cannot be resolved"
_UNREAD = "nothing in this file reads `{name}`, but other files may, and they are not known"


def held_for_others(program: Program, proposal: Proposal) -> Proposal:
    """The proposal, unsafe or manual if it changes a name that must keep its meaning."""
    if proposal.outcome is Safety.MANUAL:
        return proposal
    for reference, _ in proposal.moves:
        for name in _names_of(program, reference):
            why = reason_to_keep(program, name)
            if why and _is_certain(program, name):
                return proposal._replace(
                    outcome=Safety.MANUAL,
                    message=f"{why}: {proposal.message}",
                    moves=(),
                    removed=(),
                    edits=(),
                    blocks=True,
                )
            if why or may_be_for_others(program, name):
                why = why or _UNREAD.format(name=name)
                message = f"{why}: {proposal.message}"
                return proposal._replace(outcome=Safety.UNSAFE, message=message)
    return proposal


def reason_to_keep(program: Program, name: str) -> str:
    """Why a top-level name must keep its meaning; empty if it need not."""
    kept = program.neighbors.kept.get(name)
    if kept is None:
        return ""
    return (_LEFT if kept.is_certain else _MAY).format(file=kept.file, name=name)


def may_be_for_others(program: Program, name: str) -> bool:
    """Whether a top-level name of a file alone is public, and nothing in the file reads it."""
    if not program.neighbors.is_alone or name.startswith("_"):
        return False
    return not loads_of(program, program.scopes.module_scope, name)


def _is_certain(program: Program, name: str) -> bool:
    return program.neighbors.kept[name].is_certain


def _names_of(program: Program, reference: Reference) -> Iterator[str]:
    """The top-level names that the import or assignment at a reference binds."""
    scope = program.scopes.module_scope
    if reference.scope is not scope:
        return
    if reference.root is None:
        for name, bindings in scope.bindings.items():
            if any(binding.node is reference.node for binding in bindings):
                yield name
        return
    node, parent = reference.node, program.parents.get(reference.node)
    while isinstance(parent, cst.IfExp) and parent.test is not node:
        node, parent = parent, program.parents.get(parent)
    for target in parent.targets if isinstance(parent, cst.Assign) else ():
        if isinstance(target.target, cst.Name):
            yield target.target.value
