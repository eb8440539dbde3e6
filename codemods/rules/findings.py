"""Makes the findings of rules: what is rewritten, what needs the shim, what a person must do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

import libcst as cst

from ..model import Group, Safety
from ..resolve.legacy_symbols import namespace_of, root_of
from ..resolve.places import Place, Reference
from ..resolve.program import Program
from ..resolve.tree import Edit
from ..rewrite.proposal import SHIM, V1, Proposal

__all__ = [
    "moved",
    "needs_of_place",
    "needs_shim",
    "place_needs_shim",
    "report",
    "safe",
    "shown_path",
    "symbol_of",
    "unsafe",
]

Edits = tuple[tuple[cst.CSTNode, Edit], ...]


def safe(
    reference: Reference,
    message: str,
    *,
    path: str = "",
    edits: Edits = (),
    removed: tuple[Reference, ...] = (),
    group: Optional[Group] = None,
) -> Proposal:
    """A rewrite that keeps the behavior.

    Args:
      reference: the place.
      message: what is done, and why.
      path: what the reference means afterwards; empty where it keeps its meaning or goes.
      edits: further edits, each at a node; its children are already edited.
      removed: the references that the edits take away.
      group: the symbols that are decided together with it; None: those of its own symbol.
    """
    if reference.legacy.never_existed:
        message = f"this path never existed in TensorFlow; {message}"
    return Proposal(
        node=reference.node,
        code=reference.legacy.rule,
        symbol=reference.legacy.name,
        outcome=Safety.SAFE,
        message=message,
        moves=((reference, path),) if path else (),
        edits=edits,
        removed=removed,
        group=reference.legacy.group if group is None else group,
    )


def unsafe(reference: Reference, caveat: str, *, path: str, edits: Edits = ()) -> Proposal:
    """A rewrite that is made with `--unsafe` only; `caveat` says how the behavior can differ."""
    made = safe(reference, caveat, path=path, edits=edits)
    return made._replace(outcome=Safety.UNSAFE)


def moved(program: Program, reference: Reference, path: str, why: str) -> Optional[Proposal]:
    """The same symbol under its last path; None if the reference has that path already."""
    legacy = reference.legacy
    if legacy.root == "v1" and path == f"{V1}.{legacy.namespace}.{legacy.name}":
        return None
    return safe(reference, f"use {shown_path(path)}; {why}", path=path)


def needs_shim(reference: Reference, why: str) -> Proposal:
    """A reference that the final API does not fit, which sends its group of symbols to the shim."""
    legacy = reference.legacy
    return place_needs_shim(reference.node, legacy.rule, legacy.name, legacy.group, why)


def place_needs_shim(node: cst.CSTNode, code: str, symbol: str, group: Group, why: str) -> Proposal:
    """Another place that sends a group of symbols to the shim."""
    return Proposal(node, code, symbol, Safety.SAFE, why, group=group, blocks=True)


def needs_of_place(program: Program, place: Place, code: str, why: str) -> Iterator[Proposal]:
    """Sends the symbols that a place leads to, of a module all that it has, to the shim."""
    if isinstance(place, Reference):
        groups = [place.legacy.group]
    else:
        module = namespace_of(place.path)
        if module is None or module.name.startswith("keras"):
            groups = [Group.KERAS_OPTIMIZERS, Group.POLICIES]
        else:
            groups = [Group(module.family.value)]
    for group in groups:
        if not program.goes_to_shim(group):
            yield place_needs_shim(place.node, code, symbol_of(program, place), group, why)


def symbol_of(program: Program, place: Place) -> str:
    """The symbol or module that a place leads to, as findings show it."""
    if isinstance(place, Reference):
        return place.legacy.name
    module = namespace_of(place.path)
    return module.name if module is not None else place.path


def report(node: cst.CSTNode, code: str, symbol: str, guidance: str) -> Proposal:
    """A place that a person must look at; `guidance` says what to do."""
    return Proposal(node, code, symbol, Safety.MANUAL, guidance)


def shown_path(path: str) -> str:
    """A path as programs write it: `tf.keras...`, `tfls.keras...`."""
    first, _, rest = path.partition(".")
    return f"{'tfls' if first == SHIM else 'tf' if root_of(path) else first}.{rest}"
