"""Finds the legacy names that a file binds for others.

`from amp import Wrap` in another file gets what `amp.py` binds to `Wrap`, and calls it with the
legacy arguments. So a class whose arguments change goes to the shim if other files may read it, or
if nothing in its own file does. The shim's names keep their meaning everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Group
from ..resolve.places import Reference
from ..resolve.program import Program
from ..rewrite.proposal import Proposal
from ..rewrite.rename import references
from .findings import needs_shim

__all__ = ["names_bound", "needs_of_exports"]

_READ = "other files may read `{}` from here"
_UNREAD = "nothing in this file reads `{}`, but other files may"
_KERAS = (Group.KERAS_OPTIMIZERS, Group.POLICIES)


def needs_of_exports(program: Program, code: str) -> Iterator[Proposal]:
    """The places that bind a top-level name to a symbol of a rule for other files."""
    for reference in references(program, code):
        legacy = reference.legacy
        if reference.scope is not program.scopes.module_scope:
            continue
        for name in names_bound(program, reference):
            why = ""
            if program.is_read_elsewhere(reference.scope, name):
                why = _READ.format(name)
            elif legacy.group in _KERAS and not program.loads_of(reference.scope, name):
                why = _UNREAD.format(name)
            if why and not legacy.is_final_path:
                yield needs_shim(reference, why)


def names_bound(program: Program, reference: Reference) -> list[str]:
    """The names that the import or assignment at a reference binds, also to a tuple with it."""
    if reference.root is None:
        found = reference.scope.bindings.items()
        return [name for name, bound in found if any(one.node is reference.node for one in bound)]
    parent = program.parents.get(reference.node)
    while isinstance(parent, (cst.Element, cst.Tuple, cst.List, cst.Set)):
        parent = program.parents.get(parent)
    targets = [one.target for one in parent.targets] if isinstance(parent, cst.Assign) else []
    return [target.value for target in targets if isinstance(target, cst.Name)]
