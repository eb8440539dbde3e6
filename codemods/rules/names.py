"""Finds the names that a place binds, also for other files, and attributes named by strings.

`from amp import Wrap` in another file gets what `amp.py` binds to `Wrap`, and calls it with the
legacy arguments. So a class whose arguments change goes to the shim if other files may read it, or
if nothing in its own file does. The shim's names keep their meaning everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from ..model import Group
from ..resolve.places import Place
from ..resolve.program import Program
from ..resolve.tree import is_stored, string_of
from ..rewrite.proposal import Proposal
from ..rewrite.rename import references
from .findings import needs_shim

__all__ = ["accesses", "names_assigned", "names_bound", "needs_of_exports"]

_ACCESS = ("delattr", "getattr", "hasattr", "setattr")
_REPLACED = "the program puts something else in its place"
_READ = "other files may read `{}` from here"
_UNREAD = "nothing in this file reads `{}`, but other files may"
_KERAS = (Group.KERAS_OPTIMIZERS, Group.POLICIES)


def needs_of_exports(program: Program, code: str) -> Iterator[Proposal]:
    """The places that bind a symbol of a rule for other files, or replace it."""
    for reference in references(program, code):
        legacy = reference.legacy
        if is_stored(reference.node, program.parents) and not legacy.is_final_path:
            yield needs_shim(reference, _REPLACED)
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


def names_bound(program: Program, place: Place) -> list[str]:
    """The names that the import or assignment at a place binds, also to a tuple with it."""
    if place.root is not None:
        return names_assigned(program, place.node)
    found = place.scope.bindings.items()
    return [name for name, bound in found if any(one.node is place.node for one in bound)]


def names_assigned(program: Program, node: cst.CSTNode) -> list[str]:
    """The names that an assignment binds to an expression, or to a tuple with it."""
    parent = program.parents.get(node)
    while isinstance(parent, (cst.Element, cst.Tuple, cst.List, cst.Set)):
        parent = program.parents.get(parent)
    targets = [one.target for one in parent.targets] if isinstance(parent, cst.Assign) else []
    return [target.value for target in targets if isinstance(target, cst.Name)]


def accesses(program: Program, names: Sequence[str]) -> Iterator[tuple[cst.Call, str]]:
    """Each `getattr(x, "name")`, `hasattr(x, "name")` and the like, with the name."""
    for string in program.scopes.strings:
        name = string_of(string)
        argument = program.parents.get(string)
        call = program.parents.get(argument) if isinstance(argument, cst.Arg) else None
        if name not in names or not isinstance(call, cst.Call) or argument not in call.args[1:2]:
            continue
        if name is not None and program.code(call.func) in _ACCESS:
            yield call, name
