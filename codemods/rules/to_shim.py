"""Every legacy name becomes its twin in the shim: with `--to shim`, and where a program needs it.

A rename is always safe, because the shim makes it so at run time: its classes pass the class tests
of TensorFlow's and the other way around, and its constructors take the same arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tf_lossscale._paths import SYMBOLS

from ..model import Group, Safety
from ..resolve.classes import is_written_for_keras_3
from ..resolve.legacy_symbols import Family, legacy_of, root_of
from ..resolve.mentions import names_bound
from ..resolve.places import Reference
from ..resolve.program import Program
from ..rewrite.arguments import has_loss_scale
from ..rewrite.proposal import Proposal, shim_path, shown_path

__all__ = ["RENAMED", "needs_of_exports", "notes", "renames", "replaced", "to_shim"]

_PATHS = [f"tensorflow.{space}.{symbol.name}" for symbol in SYMBOLS for space in symbol.namespaces]
RENAMED: dict[str, Group] = {
    legacy.rule: legacy.group for legacy in map(legacy_of, _PATHS) if legacy and legacy.rule
}
"""The codes of the rules whose symbols the shim has, each with the group of these symbols."""

_SAME = "it behaves as the original, on every TensorFlow"
_EVERYWHERE = "it also runs on GPUs and CPUs"
_BACKEND = (
    "the shim's class needs the TensorFlow backend, but this file imports only keras, which can "
    "run on another one"
)
_REPLACED = (
    "the program puts something else in the place of this symbol, which only code that reads it "
    "under the new name gets: pass it on another way"
)
_ELSE = "the program puts something else in its place"
_READ = "other files may read `{}` from here"
_UNREAD = "nothing in this file reads `{}`, but other files may"
_KERAS = (Group.KERAS_OPTIMIZERS, Group.POLICIES)
_GROUPS = {
    Group.CONTRIB: "contrib classes",
    Group.V1: "v1 loss scales and optimizers",
    Group.CROSS_SHARD: "cross-shard symbols",
    Group.POLICIES: "policies",
    Group.KERAS_OPTIMIZERS: "Keras loss-scale optimizers",
}


def renames(program: Program, code: str) -> Iterator[Proposal]:
    """The renames of the symbols of one rule."""
    for reference in program.references_to(code):
        if reference.legacy.is_on_shim and program.options.to_shim:
            continue
        if reference.legacy.family is not Family.FINAL or _leaves_final(program, reference):
            yield _renamed_to_shim(program, reference)


def _leaves_final(program: Program, reference: Reference) -> bool:
    """Whether a final class goes to the shim: it is not tf-keras's, nor used as Keras 3's.

    LS304 repairs a call with a loss scale, but on the way to the final API only.
    """
    call = program.call_of(reference.node)
    if call is not None and has_loss_scale(call) and not program.options.to_shim:
        return False
    return reference.legacy.root != "tf_keras" and not program.cached(is_written_for_keras_3)


def _renamed_to_shim(program: Program, reference: Reference) -> Proposal:
    decides = program.notes.get(reference.node)
    note = because(decides) if isinstance(decides, Proposal) else ""
    if reference.legacy.is_on_shim:
        return Proposal.safe(
            reference, f"stays on the shim; {note}" if note else "stays on the shim"
        )._replace(stays=True)
    if program.options.to_shim:
        is_cross_shard = reference.legacy.family is Family.CROSS_SHARD
        note = _EVERYWHERE if is_cross_shard else _SAME
    return to_shim(program, reference, note)


def needs_of_exports(program: Program, code: str) -> Iterator[Proposal]:
    """The places that bind a symbol of a rule for other files, or replace it.

    `from amp import Wrap` in another file gets what `amp.py` binds to `Wrap`, and calls it with the
    legacy arguments. So a class whose arguments change goes to the shim if other files may read it,
    or if nothing in its own file does. The shim's names keep their meaning everywhere.
    """
    for reference in program.references_to(code):
        legacy = reference.legacy
        if program.is_stored(reference.node) and not legacy.is_final_path:
            yield Proposal.needs_shim(reference, _ELSE)
        if reference.scope is not program.scopes.module_scope:
            continue
        for name in names_bound(program, reference):
            why = ""
            if program.is_read_elsewhere(reference.scope, name):
                why = _READ.format(name)
            elif legacy.group in _KERAS and not program.loads_of(reference.scope, name):
                why = _UNREAD.format(name)
            if why and not legacy.is_final_path:
                yield Proposal.needs_shim(reference, why)


def replaced(program: Program, code: str) -> Iterator[Proposal]:
    """Reports the places that put something else in the place of a symbol."""
    for reference in program.references_to(code):
        if program.is_stored(reference.node):
            yield Proposal.report(reference.node, code, reference.legacy.name, _REPLACED)


def because(decides: Proposal) -> str:
    """Why the symbols of a group go to the shim, from the proposal of the place that decides it."""
    group = decides.group
    assert group is not None
    return f"{decides.message}, so the {_GROUPS[group]} of this program go to the shim"


def notes(program: Program, proposals: Sequence[Proposal]) -> Iterator[Proposal]:
    """What decides that a group goes to the shim, for places that have no proposal of their own."""
    known = {one.node for one in proposals}
    groups = {one.legacy.group for one in program.references}
    for node, decides in program.notes.items():
        if node not in known and isinstance(decides, Proposal):
            yield decides._replace(
                outcome=Safety.SAFE,
                message=because(decides) if decides.group in groups else decides.message,
                moves=(),
                edits=(),
                removed=(),
                blocks=False,
                stays=True,
            )


def to_shim(program: Program, reference: Reference, why: str) -> Proposal:
    """The rename of one reference to its twin in the shim."""
    path = shim_path(reference)
    if reference.legacy.root == "keras" and not program.cached(_imports_tensorflow):
        return Proposal.safe(reference, _BACKEND, path=path)._replace(outcome=Safety.UNSAFE)
    return Proposal.safe(
        reference, f"use {shown_path(path)}" + (f"; {why}" if why else ""), path=path
    )


def _imports_tensorflow(program: Program) -> bool:
    """Whether the program imports TensorFlow, and so does not run on another backend of Keras."""
    roots = (root_of(binding.path) for binding in program.imports())
    return any(root is not None and root.name not in ("keras", "tf_keras") for root in roots)
